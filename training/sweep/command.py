"""``python -m training sweep``: Optuna searches the weights of the reward, resumable."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

from suite.mlstore import masked
from suite.provenance import commit
from training.errors import ConfigError, TrainingError
from training.options import add_options, from_options
from training.pace import TimeBox
from training.sweep.config import SweepConfig, mistakes

if TYPE_CHECKING:
    from training.sweep.runner import Runner
    from training.sweep.study import Session

HELP = "search the reward's weights for what makes fast and right programs"
Say = Callable[[str], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, SweepConfig)
    parser.add_argument(
        "--apply",
        action="store_true",
        help="make the winner's weights the default of rl, once --confirm found them better",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; a session that stops early is no error.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, SweepConfig)
    wrong = mistakes(config)
    if arguments.apply and config.dry == "on":
        wrong.append("--apply: the figures of a dry study are no results; leave out --dry")
    if arguments.apply and not config.confirm:
        wrong.append("--apply: needs --confirm 3, which trains winner and start again")
    if wrong:
        raise ConfigError(wrong)
    sweep(config, TimeBox(config.minutes), lambda line: print(line, flush=True), arguments.apply)
    return 0


def sweep(config: SweepConfig, box: TimeBox, say: Say, apply: bool = False) -> None:
    """Works on a study until there are enough trials or the session ends, and reports.

    Raises:
        ConfigError: The study of this name was asked for something else.
        TrainingError: The machine or the database fails.
    """
    from training.sweep.study import Session

    config.out.mkdir(parents=True, exist_ok=True)
    with box.signals(), closing(runner_of(config, box, say)) as runner:
        if config.dry == "on":
            say("dry: no GPU, no model; recorded times. The figures are no results.")
        session = Session(config, runner, box, say)
        done = False
        try:
            done = session.go()
        finally:
            _report(config, session, say, done)
        if not done:
            say("stopped, what was tried is kept; the same command goes on")
        elif config.confirm:
            _confirm(config, session, runner, box, say, apply)


def runner_of(config: SweepConfig, box: TimeBox, say: Say) -> Runner:
    """What runs the trials of a configuration."""
    if config.dry == "on":
        return _dry(config, box)
    from training.sweep.gpu import GpuRunner

    assert config.adapter is not None
    runner = GpuRunner(config, config.adapter, box, say)
    if not runner.timed:
        runner.close()
        raise TrainingError(
            "there is no GPU here, and nothing else has speeds; try it with --dry on"
        )
    return runner


def _dry(config: SweepConfig, box: TimeBox) -> Runner:
    from suite.harness.evaluate import Evaluator, Settings
    from suite.problem import Problem
    from suite.program import KernelProgram
    from training.judging import Judge, Judged
    from training.measured import Measurements, device_key
    from training.sweep.dry import DryRunner
    from training.sweep.recorded import load

    with closing(Evaluator("emulator", Settings(None, compilers=0))) as emulator:
        key = device_key(emulator.facts, emulator.settings)
        with closing(Measurements(config.known_file, key)) as known:
            judge = Judge(emulator, known)

            def judged(pairs: Sequence[tuple[Problem, KernelProgram]]) -> Sequence[Judged]:
                judge.compile(pairs)
                return judge.judge(pairs)

            return DryRunner(config, box, load(config.recorded, judged))


def _report(config: SweepConfig, session: Session, say: Say, done: bool) -> None:
    from training.sweep.objective import winner
    from training.sweep.plots import draw, importances
    from training.sweep.storage import failures
    from training.sweep.study import started, tried

    with failures(config.url):
        ended = tried(session.study.trials)
        best, start = winner(ended, config.goal), started(session.study)
        plots = config.out / "plots"
        for line in draw(session.study, config.goal, plots):
            say(f"no plot of {line}")
        weights = importances(session.study)
    figures = {f"importance.{name}": value for name, value in weights.items()}
    figures |= {"trials": float(len(ended))}
    for name, one in (("best", best), ("start", start)):
        if one is not None:
            say(
                f"{name}: trial {one.number}, speedup {one.look.speedup:.3f},"
                f" right {one.look.correct:.1%}"
            )
            figures |= {
                f"{name}.speedup": one.look.speedup,
                f"{name}.correct_rate": one.look.correct,
            }
    if best is None and ended:
        say(f"no trial has {config.least_correct:.0%} right programs")
    if weights:
        say("importance: " + ", ".join(f"{name} {value:.0%}" for name, value in weights.items()))
    tags = {"best_trial": str(best.number)} if best else {}
    session.log.finish(figures, tags, plots, "FINISHED" if done else "KILLED")
    if session.log.failure:
        say(session.log.failure)
    elif session.log.where:
        say(f"MLflow: {session.log.where}")
    say(f"plots: {plots}; optuna-dashboard {masked(config.url)}")


def _confirm(
    config: SweepConfig, session: Session, runner: Runner, box: TimeBox, say: Say, apply: bool
) -> None:
    from training.reward import NAMED, named
    from training.sweep.apply import apply as write
    from training.sweep.confirm import compared, confirm, pairs_of
    from training.sweep.objective import winner
    from training.sweep.space import setting
    from training.sweep.study import started, tried

    study = session.study
    best, start = winner(tried(study.trials), config.goal), started(study)
    if best is None or (start is not None and best.number == start.number):
        say("nothing is better than the start; it stays")
        return
    if not confirm(config, runner, study, best, box, say):
        say("not confirmed yet; the same command goes on")
        return
    found = compared(pairs_of(study, best))
    assert found is not None
    say(f"confirmed: {found}")
    session.log.finish(
        {f"confirmed.{k}": float(v) for k, v in asdict(found).items()},
        {},
        config.out / "plots",
        "FINISHED",
    )
    if not found.better(config.goal):
        say("the winner is not better than the start beyond what seeds explain; the start stays")
        return
    if apply:
        chosen = setting(best.params, named(config.start))
        about = {
            "study": config.study,
            "trial": best.number,
            "device": runner.device,
            "commit": commit().id,
            "mode": config.mode,
            "penalty": config.penalty,
            "budget_s": config.budget,
            "options": dict(chosen.options),
            "speedup": best.look.speedup,
            "correct_rate": best.look.correct,
            "confirmed": asdict(found),
        }
        write(NAMED, chosen.weights, about)
        say(f"{NAMED}: rl uses these weights now")
