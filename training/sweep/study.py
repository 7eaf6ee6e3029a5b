"""One worker's session on a study: asks for trials, runs them, records whatever becomes of them."""

from __future__ import annotations

import math
import os
import socket
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from suite.provenance import commit
from training.curve import Point
from training.errors import TrainingError
from training.pace import TimeBox
from training.reward import named
from training.sweep.config import SweepConfig, decisive
from training.sweep.log import StudyLog, final
from training.sweep.objective import Look, Tried
from training.sweep.runner import LOOKS, Runner
from training.sweep.space import setting, suggested
from training.sweep.storage import (
    START,
    WORKER,
    compare,
    failures,
    open_storage,
    open_study,
    release_silent,
    run_again,
    settle,
)
from training.tracking import RunLog

if TYPE_CHECKING:
    from optuna import Study
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

BROKEN = 3  # trials in a row that fail before a session gives up
STARTUP = 8  # trials at random, of which the first is the start
PARENT = "mlflow_run"
WALL = "wall_s"


NOTHING = Look(math.nan, math.nan, math.nan)


class NotANumber(RuntimeError):
    """A trial ended without an objective."""


class Cut(RuntimeError):
    """The session ended before the trial did."""


class Session:
    """Opens a study and works on it.

    Args:
        config: What to do.
        runner: Runs trials.
        box: When to stop.
        say: Gets lines for a person.
        worker: Name of this one; host and process if left out.

    Attributes:
        study: Optuna's.
        log: Its parent run in MLflow.

    Raises:
        ConfigError: The study was asked for something else.
        TrainingError: The database cannot be used.
    """

    def __init__(
        self,
        config: SweepConfig,
        runner: Runner,
        box: TimeBox,
        say: Callable[[str], None],
        worker: str = "",
    ) -> None:
        self._config, self._runner, self._box, self._say = config, runner, box, say
        self._domains, self._start = config.domains, named(config.start)
        self._worker = worker or f"{socket.gethostname()}:{os.getpid()}"
        self._broken, self._why, self._current = 0, "", -1
        from optuna.exceptions import ExperimentalWarning

        asked = decisive(config) | {f"runner.{k}": v for k, v in runner.asked.items()}
        with failures(config.url):
            storage = open_storage(config.url, config.heartbeat, config.retries)
            self.study, made = open_study(storage, config.study, len(config.goal.names))
            if made:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ExperimentalWarning)
                    self.study.set_metric_names(list(config.goal.names))
                self.study.set_user_attr("dry", config.dry == "on")
                self.study.set_user_attr("device", runner.device)
            else:
                compare(self.study, asked)
            self.log = self._parent(asked)
            if made:
                self.study.set_user_attr(PARENT, self.log.run)
                settle(self.study, asked)
            if not self._has_start():  # new, or all that came of it were failures
                self.study.enqueue_trial(config.first(), user_attrs={START: True})
        self.study.sampler, self.study.pruner = self._sampler(), self._pruner()

    def go(self) -> bool:
        """Runs trials until there are enough, or the session is over.

        Returns:
            Whether there are enough.

        Raises:
            TrainingError: The database fails, or one trial after the other.
        """
        said = False
        with failures(self._config.url):
            while not self._box.asked:
                release_silent(self.study, self._config.heartbeat)
                done, running, waiting = self._counts()
                if done >= self._config.trials:
                    return True
                if self._box.left < longest(self.study, self._runner):
                    return False
                if not waiting and done + running >= self._config.trials:
                    if not said:
                        self._say(f"waits for {running} trials of other workers")
                    said = True
                    time.sleep(min(self._config.heartbeat, 2))
                    continue
                self._one()
        return False

    # Inside

    def _one(self) -> None:
        from optuna.exceptions import UpdateFinishedTrialError

        try:
            self.study.optimize(self._objective, n_trials=1, catch=(Exception,))
        except (ValueError, UpdateFinishedTrialError):
            number = self._current
            if number < 0 or not self.study.trials[number].state.is_finished():
                raise
            self._say(f"trial {number}: another worker took it for dead; runs again")
        if self._broken >= BROKEN:
            raise TrainingError(
                f"{BROKEN} trials failed one after the other, the last: {self._why};"
                " the same command goes on"
            )

    def _objective(self, trial: Trial) -> float | tuple[float, ...]:
        from optuna import TrialPruned

        config, goal = self._config, self._config.goal
        self._current = trial.number
        trial.set_user_attr(WORKER, self._worker)
        values = suggested(trial, self._domains)
        folder = config.out / "trials" / f"{trial.number:04}"
        folder.mkdir(parents=True, exist_ok=True)
        log = self.log.child(trial.number, folder, values, self._worker)
        seen: list[tuple[int, Look, Sequence[Point]]] = []
        pruned = False
        began = time.monotonic()
        self._say(f"trial {trial.number} begins")

        def watch(part: int, look: Look, points: Sequence[Point]) -> bool:
            nonlocal pruned
            figures = dict(zip(goal.names, goal.values(look), strict=True))
            kept = final(
                points, {f"objective.{k.replace(' ', '_')}": v for k, v in figures.items()}
            )
            seen.append((part, look, kept))
            log.log(kept)
            if not look.known:
                return True
            if len(goal.names) == 1:
                trial.report(look.speedup, part)
                hopeless = part < LOOKS and trial.should_prune()
                pruned = hopeless and START not in trial.user_attrs
            return pruned

        try:
            self._runner.run(setting(values, self._start), config.seed, folder, watch)
            part, look, points = seen[-1] if seen else (0, NOTHING, [])
            if seen and not look.known:
                raise NotANumber(f"the look after part {part} of {LOOKS} has no speed")
            if part < LOOKS and not pruned:
                raise Cut("the session ended first")
        except BaseException as error:
            self._failed(trial, error, log, seen[-1][2] if seen else [])
            raise
        seconds = time.monotonic() - began
        self._note(trial, look, seconds)
        if config.mode == "constraint":
            trial.set_constraint("correct_rate", goal.violation(look))
        log.log(points, "KILLED" if pruned else "FINISHED")
        self._broken = 0
        self._say(_line(trial.number, look, seconds, pruned))
        if pruned:
            raise TrialPruned(f"after {part} of {LOOKS} parts")
        return goal.values(look)

    def _note(self, trial: Trial, look: Look, seconds: float) -> None:
        for name in ("speedup", "correct", "compiled", "steps"):
            trial.set_user_attr(name, getattr(look, name))
        trial.set_user_attr("charged_s", look.seconds)
        trial.set_user_attr(WALL, seconds)

    def _failed(
        self,
        trial: Trial,
        error: BaseException,
        log: RunLog,
        points: Sequence[Point],
    ) -> None:
        """Records why; parameters whose trial was only cut short are tried again."""
        self._why = f"{type(error).__name__}: {error}".splitlines()[0]
        cut = isinstance(error, Cut) or not isinstance(error, Exception)
        self._broken += not cut
        with suppress(Exception):  # the database may be what failed
            trial.set_user_attr("error", self._why)
        log.log(points, "KILLED" if cut else "FAILED")
        if cut:
            run_again(self.study, self.study.trials[trial.number])
        self._say(f"trial {trial.number} {'was cut' if cut else 'failed'}: {self._why}")

    def _has_start(self) -> bool:
        from optuna.trial import TrialState

        return any(
            START in trial.user_attrs and trial.state is not TrialState.FAIL
            for trial in self.study.get_trials(deepcopy=False)
        )

    def _counts(self) -> tuple[int, int, int]:
        from optuna.trial import TrialState

        states = [trial.state for trial in self.study.get_trials(deepcopy=False)]
        done = states.count(TrialState.COMPLETE) + states.count(TrialState.PRUNED)
        return done, states.count(TrialState.RUNNING), states.count(TrialState.WAITING)

    def _sampler(self) -> BaseSampler:
        from optuna.samplers import TPESampler

        # Another seed for each session and worker, so that none draws what another has drawn.
        seed = f"{self._config.seed} {len(self.study.trials)} {self._worker}"
        return TPESampler(n_startup_trials=STARTUP, seed=hash_of(seed))

    def _pruner(self) -> BasePruner:
        from optuna.pruners import HyperbandPruner, NopPruner, SuccessiveHalvingPruner

        made: dict[str, Callable[[], BasePruner]] = {
            "halving": lambda: SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
            "hyperband": lambda: HyperbandPruner(1, LOOKS, reduction_factor=2),
            "off": NopPruner,
        }
        return made[self._config.pruner]()

    def _parent(self, asked: dict[str, str]) -> StudyLog:
        config = self._config
        tags = {"stage": "sweep", "study": config.study, "dry": config.dry}
        tags |= {"device": self._runner.device, "commit": commit().id}
        run = str(self.study.user_attrs.get(PARENT, ""))
        return StudyLog(config.study, run, asked, tags, config.tracking == "on")


def tried(trials: Sequence[FrozenTrial]) -> list[Tried]:
    """The trials that ran to their end."""
    from optuna.trial import TrialState

    return [
        Tried(trial.number, trial.params, _look(trial))
        for trial in trials
        if trial.state is TrialState.COMPLETE
    ]


def started(study: Study) -> Tried | None:
    """The trial of the start, where it ran to its end."""
    found = [trial for trial in study.trials if trial.user_attrs.get(START)]
    return next(iter(tried(found)), None)


def longest(study: Study, runner: Runner) -> float:
    """Seconds that the longest trial of a study took, or a guess where none has ended."""
    trials = study.get_trials(deepcopy=False)
    known = (float(trial.user_attrs.get(WALL, 0.0)) for trial in trials)
    return max(known, default=0.0) or runner.expected


def hash_of(text: str) -> int:
    """A seed from a text, the same in every process."""
    import hashlib

    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())


def _look(trial: FrozenTrial) -> Look:
    said = trial.user_attrs
    return Look(
        said["speedup"], said["correct"], said["compiled"], said["steps"], said["charged_s"]
    )


def _line(number: int, look: Look, seconds: float, pruned: bool) -> str:
    end = "ended early" if pruned else "done"
    return (
        f"trial {number} {end}: speedup {look.speedup:.3f}, right {look.correct:.1%},"
        f" {look.steps} steps, {seconds:.0f} s"
    )
