"""Reinforcement learning on measured programs: GRPO of TRL around the suite's own evaluator.

TRL has the loop and the loss; ``rollout_func`` gives it programs of the current policy and what
they are worth; advantages come of ``training.algorithms``. A run is cut by steps: what is asked at
a step, and what is sampled, follow from the step, and a checkpoint holds the rest, so the same
command goes on as if it had not stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch

from suite.harness.evaluate import DeviceUnavailable, Evaluator, Settings
from suite.harness.timing import Precision
from suite.matrices.splits import Split
from suite.models.decode import Choice
from suite.models.generate import Generator
from suite.problem import Problem
from suite.provenance import commit
from training import checkpoint
from training.algorithms import ALGORITHMS, Rewards, spread_out
from training.curve import Curve, Point
from training.errors import ConfigError, TrainingError
from training.guide import guided
from training.judging import Evaluates, Judge
from training.measured import Measurements, device_key
from training.pace import TimeBox, clock_text
from training.reward import RewardWeights, named, plain
from training.rl_config import RlConfig, decisive, mistakes
from training.rl_figures import figures, shares_of_time, strategy_shares
from training.rl_policy import Learner, load
from training.rl_trainer import trainer
from training.rollout import Roller, Sample
from training.session import alone
from training.shelf import Kept, Shelf
from training.tracking import STATE, RunLog
from training.watching import Watch

CHECKPOINT = "checkpoint.pt"
ADAPTER = "adapter"
KNOWN = "known.sqlite"
FROM_TRL = {
    "loss": "loss",
    "grad_norm": "gradient_norm",
    "learning_rate": "lr",
    "entropy": "entropy",
    "completions/mean_length": "program.tokens",
    "completions/clipped_ratio": "program.unfinished",
    "frac_reward_zero_std": "groups_without_spread",
}


class Device(Evaluates, Protocol):
    """What a run needs of an evaluator."""

    settings: Settings

    def load(self, problem: Problem) -> None:
        """Brings a problem to the device."""
        ...

    def close(self) -> None:
        """Ends its processes."""
        ...


@dataclass(frozen=True)
class Outcome:
    """Where a session left the run.

    Attributes:
        step: Steps done, of all sessions.
        steps: Steps in all.
        adapter: Folder of the adapter as it is now.
        figures: Of the last step.
        log: Which MLflow run has the curve, or why none has.
    """

    step: int
    steps: int
    adapter: Path
    figures: dict[str, float]
    log: str


def open_device(config: RlConfig) -> Device:
    """The evaluator that a configuration asks for; it has the GPU to itself while it is open.

    Raises:
        TrainingError: There is no such device.
    """
    precision = Precision(relative=0.02, least=5, most=30, budget_ms=config.budget_ms)
    settings = Settings(precision, run_s=config.run_s, compilers=0, exclusive=True)
    try:
        evaluator = Evaluator(config.device, settings)
    except DeviceUnavailable as error:
        raise TrainingError(f"--device {config.device}: {error}") from error
    return cast("Device", evaluator)


def train(
    config: RlConfig,
    say: Callable[[str], None],
    box: TimeBox | None = None,
    weights: RewardWeights | None = None,
    opened: Callable[[RlConfig], Device] = open_device,
    watch: Watch | None = None,
    kept: Kept | None = None,
) -> Outcome:
    """Trains, resuming where the folder's checkpoint is.

    Args:
        config: What to do.
        say: Gets a line for each step.
        box: When to stop; by default the configuration's minutes.
        weights: Of the reward; by default those of the configuration's name.
        opened: Opens what judges programs.
        watch: Asks for looks at validation matrices, and may end the session after one.
        kept: Matrices that runs of one process share.

    Raises:
        ConfigError: Lists every mistake of the configuration.
        TrainingError: Weights, device or checkpoint cannot be used, or the machine fails.
    """
    wrong = mistakes(config)
    if wrong:
        raise ConfigError(wrong)
    with alone(config.out), ExitStack() as closing:
        box = box or TimeBox(config.minutes)
        weights = weights or named(config.reward)
        return _Run(config, say, box, weights, opened, closing, watch, kept).go()


class _Run:
    """One session."""

    def __init__(
        self,
        config: RlConfig,
        say: Callable[[str], None],
        box: TimeBox,
        weights: RewardWeights,
        opened: Callable[[RlConfig], Device],
        closing: ExitStack,
        watch: Watch | None,
        kept: Kept | None,
    ) -> None:
        self._config, self._say, self._box, self._weights = config, say, box, weights
        self._watch, self._kept = watch, kept
        self._algorithm = ALGORITHMS[config.algorithm]
        self._device = opened(config)
        closing.callback(self._device.close)
        self._on_gpu = self._device.facts.kind == "cuda"
        self._learner = load(config.base, config.adapter, "cuda" if self._on_gpu else "cpu")
        self._decisive = decisive(config) | {
            "base": self._learner.policy.base,
            "adapter": self._learner.adapter,
            **{f"reward.{name}": str(value) for name, value in plain(weights).items()},
        }
        self._path = config.out / CHECKPOINT
        for half in config.out.glob(f".{CHECKPOINT}.*"):  # of a session that was killed
            half.unlink()
        self._optimizer = torch.optim.AdamW(
            self._learner.trained.values(), lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0
        )
        resumed = checkpoint.load(self._path, self._decisive)
        self.step = self._saved = resumed.step if resumed else 0
        if resumed:
            self._restore(resumed)
        else:
            for name in (STATE, "curve.jsonl"):  # of a run whose checkpoint was deleted
                (config.out / name).unlink(missing_ok=True)
        self._curve = Curve(config.out, self.step)
        self._log = RunLog(
            config.out,
            f"rl {config.algorithm} {config.reward}",
            {**vars(config), **{f"reward.{k}": v for k, v in plain(weights).items()}},
            _tags(self._device, self._learner),
            config.tracking == "on",
        )
        known = Measurements(
            config.known or config.out / KNOWN,
            device_key(self._device.facts, self._device.settings),
        )
        closing.callback(known.close)
        self._judge = Judge(self._device, known, config.recheck, config.seed)
        self._curriculum = config.curriculum(self._device.facts.kind)
        self._shelf = Shelf(self._curriculum, config.builders, config.steps, kept)
        closing.callback(self._shelf.close)
        self._roller = self._make_roller()
        closing.callback(self._roller.close)
        self._validation: list[Problem] = []
        self.advantages: Rewards = np.zeros((config.problems, config.group))
        self._figures: dict[str, float] = {}
        self._skipped = 0
        self._first, self._longest = self.step, 0.0  # step of this session, seconds of a step
        self._began = time.monotonic()

    def go(self) -> Outcome:
        """Trains to the end or to the end of the session."""
        config, status = self._config, "KILLED"
        try:
            if self.step < config.steps and not self._box.over:
                trainer(self, config, self._learner, self._optimizer, self._on_gpu).train()
            if self.step == config.steps:
                status = "FINISHED"
        except BaseException:
            status = "FAILED"
            raise
        finally:
            self._log.log(self._covered(), status)
        if self._saved != self.step:
            self._save()
        source = f"rl: {config.algorithm}, reward {config.reward}, {self.step} steps"
        self._learner.save(config.out / ADAPTER, source)
        return Outcome(
            step=self.step,
            steps=config.steps,
            adapter=config.out / ADAPTER,
            figures=dict(self._curve.points[-1].figures) if self._curve.points else {},
            log=self._log.failure or self._log.where,
        )

    # What the trainer calls

    def begin(self) -> None:
        """Looks at the validation matrices before anything was learnt."""
        if self._config.validate_every and self.step == 0:
            self._curve.add(0, self._validate())
        self._began = time.monotonic()

    def roll(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        """TRL's ``rollout_func``: programs for the problems of this step, and their rewards."""
        config = self._config
        torch.manual_seed((config.seed << 32) + self.step)  # TRL mixes the samples of a step
        with self._roller.timed("build"):
            problems = self._shelf.take(self.step)
        self._roller.load(problems)
        self._learner.refresh()
        samples = self._roller.roll(problems, config.group, draw=self.step)
        self._note(samples)
        if config.guide == "on":
            samples = guided(samples, config.group, self._judge.known, self._roller.example)
        rewards = np.array([one.reward.total if one.reward else math.nan for one in samples])
        right = np.array([one.judged.outcome.ok for one in samples])
        shape = (config.problems, config.group)
        names = [one.strategy for one in samples]
        grouped = [names[at : at + config.group] for at in range(0, len(names), config.group)]
        spread = spread_out(
            rewards.reshape(shape), right.reshape(shape), grouped, config.diversity, config.margin
        )
        self.advantages = self._algorithm.advantages(spread, right.reshape(shape), config.noise)
        if self.step + 1 < config.steps:  # while the update runs, and the next generation
            self._shelf.leave(self.step, self._device.release)
            self._roller.load(self._shelf.ready(self.step + 1))
        return {
            "prompt_ids": [list(one.prompt) for one in samples],
            "completion_ids": [list(one.completion.tokens) for one in samples],
            "logprobs": [list(one.completion.logprobs) for one in samples],
            "worth": [None if math.isnan(value) else float(value) for value in rewards],
        }

    def check_gradients(self) -> None:
        """Leaves a step out whose gradients are not numbers."""
        trained = self._learner.trained.values()
        norms = [p.grad.norm() for p in trained if p.grad is not None]
        if norms and not bool(torch.isfinite(torch.stack(norms)).all()):
            self._skipped += 1
            for parameter in trained:
                parameter.grad = None

    def stepped(self, logs: dict[str, Any]) -> bool:
        """Notes a step that is done; returns whether the session is to end."""
        config = self._config
        self.step += 1
        for theirs, ours in FROM_TRL.items():
            value = logs.get(theirs)
            if value is not None and math.isfinite(value):
                self._figures[ours] = float(value)
        now = time.monotonic()
        self._figures |= shares_of_time(self._roller.seconds, now - self._began)
        if self.step > self._first + 1:  # the first one sets much up
            self._longest = max(self._longest, now - self._began)
        self._figures["updates_left_out"] = float(self._skipped)
        self._began = now
        self._roller.seconds = dict.fromkeys(self._roller.seconds, 0.0)
        done = self.step == config.steps
        look = bool(config.validate_every) and (done or self.step % config.validate_every == 0)
        if self._watch is not None:
            look = self._watch.due(self._figures) or look
        if look:
            self._figures |= self._validate()
        self._curve.add(self.step, self._figures)
        self._say(_line(self.step, config.steps, self._figures))
        self._figures = {}
        enough = look and self._watch is not None and self._watch.looked(self._curve.points)
        stop = done or enough or self._box.over
        if stop or self.step % config.save_every == 0:
            self._save()
        self._began = time.monotonic()
        return stop

    # Inside

    def _note(self, samples: list[Sample]) -> None:
        self._figures |= figures(samples, self._config.group) | strategy_shares(samples)
        spent = self._judge.spent
        self._figures["cache.rechecked"] = float(spent.rechecked)
        self._figures["cache.contradictions"] = float(spent.contradictions)

    def _validate(self) -> dict[str, float]:
        """The same figures on validation matrices, of samples that stay the same."""
        config = self._config
        if not self._validation:
            count = config.validate_problems
            held = replace(
                self._curriculum,
                problems=count,
                window=count,
                fresh=0,
                seed=0,
                split=Split.VALIDATION,
            )
            shelf = Shelf(held, config.builders, 1, self._kept)
            try:
                self._validation = shelf.take(0)
            finally:
                shelf.close()
        self._roller.settle()
        self._learner.refresh()
        kept = dict(self._roller.seconds)
        samples = self._roller.roll(self._validation, config.validate_samples, draw=2**31)
        self._roller.seconds = kept
        found = figures(samples, config.validate_samples)
        return {f"validation.{name}": value for name, value in found.items()}

    def _make_roller(self) -> Roller:
        config, policy = self._config, self._learner.policy
        generator = Generator(
            policy.model,
            policy.end,
            policy.pad,
            len(policy.tokenizer),
            rows=config.rows,
            limit=config.limit,
            choice=Choice(config.temperature),
        )
        return Roller(
            policy,
            generator,
            self._judge,
            self._device,
            self._weights,
            self._device.facts.arch,
            config.seed,
            torch.cuda.synchronize if self._on_gpu else lambda: None,
        )

    def _save(self) -> None:
        began = time.monotonic()
        state = checkpoint.Checkpoint(
            step=self.step,
            decisive=self._decisive,
            weights={name: p.detach() for name, p in self._learner.trained.items()},
            optimizer=self._optimizer.state_dict(),
            rng=[],  # what is random follows from the step
            pending=[],
        )
        checkpoint.save(self._path, state)
        self._saved = self.step
        # The next look at the clock comes a whole step later.
        self._box.saved(time.monotonic() - began + self._longest / 2)
        self._log.log(self._covered())

    def _restore(self, known: checkpoint.Checkpoint) -> None:
        mine = self._learner.trained
        with torch.no_grad():
            for name, value in known.weights.items():
                mine[name].copy_(value)
        self._optimizer.load_state_dict(known.optimizer)
        self._say(f"goes on at step {self.step:,} of {self._config.steps:,}")

    def _covered(self) -> list[Point]:
        return [point for point in self._curve if point.step <= self._saved]


def _line(step: int, steps: int, found: dict[str, float]) -> str:
    parts = [f"step {step:,}/{steps:,}", f"reward {found.get('reward', math.nan):.3f}"]
    parts += [
        f"{name} {found[key]:.2f}"
        for name, key in (
            ("compiled", "compile_rate"),
            ("right", "correct_rate"),
            ("speedup", "speedup"),
            ("best", "speedup_best"),
            ("known", "cache.hit_rate"),
            ("entropy", "entropy"),
            ("validation", "validation.speedup"),
        )
        if key in found
    ]
    seconds = found["seconds.step"]
    phases = " ".join(
        f"{key.removeprefix('share.')} {value:.0%}"
        for key, value in found.items()
        if key.startswith("share.") and value >= 0.005
    )
    left = clock_text((steps - step) * seconds)
    return "  ".join([*parts, f"{seconds:.1f} s ({phases})", f"ETA {left}"])


def _tags(device: Device, learner: Learner) -> dict[str, Any]:
    source = commit()
    return {
        "stage": "rl",
        "commit": source.id,
        "dirty": source.dirty,
        "device": device.facts.name,
        "base": learner.policy.base,
        "adapter": learner.adapter,
        "encoding": learner.policy.style.encoding.value,
    }
