"""Trials without a GPU and without a model, to try a study anywhere. Its figures are no results.

A table of probabilities stands in for the model: for each family of matrices, how likely each of
some programs is. The programs are the suite's baselines and spoilt copies of them; the emulator
says which are right; recorded times of an H200 on training matrices say how fast. The table learns
with the very reward that is tried and with the algorithms of ``rl``, and some matrices are held
back to look at. ``nnzsplit`` stands in for ``cusparse``, which was not recorded on those matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.algorithms import ALGORITHMS
from training.curve import Curve
from training.outcome import Outcome
from training.pace import TimeBox
from training.reward import log_speedup, reward
from training.sweep.config import PACE, SweepConfig
from training.sweep.objective import Look, look_of_shares
from training.sweep.recorded import Arm, Asked, Recorded
from training.sweep.runner import LOOKS, Watch, part_of
from training.sweep.space import Setting

SPOILT = 0.5  # share of the programs before anything is learnt
RATE = 2000.0  # steps of the table for the same learning rate of a model
NOISE = 0.05  # as of rl


class DryRunner:
    """Runs trials on recorded times.

    Args:
        config: Of the study.
        box: When the session ends.
        recorded: Programs, problems and what became of them.
    """

    def __init__(self, config: SweepConfig, box: TimeBox, recorded: Recorded) -> None:
        self._config, self._box, self._recorded = config, box, recorded
        self.device = f"dry: recorded times of {recorded.name}"
        self.expected = 2.0
        self.asked = {"device": "dry", "recorded": recorded.digest}

    def run(self, setting: Setting, seed: int, folder: Path, watch: Watch) -> None:
        """See ``Runner``."""
        config, recorded = self._config, self._recorded
        group = int(setting.options.get("group", config.group))
        temperature = float(setting.options.get("temperature", config.temperature))
        rate = RATE * float(setting.options.get("lr", config.lr))
        algorithm = ALGORITHMS[config.algorithm]
        table = _Table(recorded.families, recorded.arms, temperature)
        rewards = {one: _rewards(one, recorded.arms, setting) for one in recorded.train}
        curve, random = Curve(folder, 0), np.random.default_rng((seed, group))
        step, part = 0, 0
        while part < LOOKS and not self._box.asked:
            step += 1
            found = []
            for at in random.integers(len(recorded.train), size=config.problems):
                asked = recorded.train[int(at)]
                drawn = random.choice(len(recorded.arms), group, p=table.shares(asked.family))
                worth = rewards[asked][drawn][None]
                right = np.array([[recorded.arms[n].right(asked) for n in drawn]])
                table.learn(asked.family, drawn, algorithm.advantages(worth, right, NOISE)[0], rate)
                found.append(float(np.nanmean(worth)))
            spent = step * config.problems * group / PACE
            figures = {"reward": float(np.mean(found))}
            before, part = part, part_of(spent, config.budget)
            if part > before:
                look = look_at(recorded.validation, recorded.arms, table.shares, config.penalty)
                seen = Look(look.speedup, look.correct, look.compiled, step, spent)
                figures |= {
                    "validation.speedup": seen.speedup,
                    "validation.correct_rate": seen.correct,
                    "validation.compile_rate": seen.compiled,
                }
                curve.add(step, figures)
                if watch(part, seen, curve.points):
                    return
            elif step % 10 == 0:
                curve.add(step, figures)

    def close(self) -> None:
        """Nothing was opened."""


class _Table:
    """Log-probabilities by family, F × A of F families and A programs."""

    def __init__(self, families: Sequence[str], arms: Sequence[Arm], temperature: float) -> None:
        self._row = {family: at for at, family in enumerate(families)}
        spoilt = np.array([bool(arm.spoilt) for arm in arms])
        share = np.where(spoilt, SPOILT / max(spoilt.sum(), 1), 1.0 / max((~spoilt).sum(), 1))
        self._logits = np.tile(np.log(share / share.sum()), (len(families), 1))
        self._temperature = temperature

    def shares(self, family: str) -> NDArray[np.float64]:
        """Probabilities of the programs, A."""
        scaled = self._logits[self._row[family]] / self._temperature
        raised = np.exp(scaled - scaled.max())
        found: NDArray[np.float64] = raised / raised.sum()
        return found

    def learn(
        self, family: str, drawn: NDArray[np.int64], advantages: NDArray[np.float64], rate: float
    ) -> None:
        """A step up the gradient of the drawn programs' log-probabilities."""
        gradient = -advantages.mean() * self.shares(family)
        np.add.at(gradient, drawn, advantages / len(drawn))
        self._logits[self._row[family]] += rate * gradient


def look_at(
    problems: Sequence[Asked],
    arms: Sequence[Arm],
    shares: Callable[[str], NDArray[np.float64]],
    penalty: float,
) -> Look:
    """What is expected on some problems.

    Args:
        problems: What is asked.
        arms: What may be answered.
        shares: Probabilities of the answers, from a family.
        penalty: Of a wrong program.
    """

    def rows() -> Iterator[tuple[float, bool, bool, float | None]]:
        for asked in problems:
            for arm, share in zip(arms, shares(asked.family), strict=True):
                outcome = arm.outcome(asked)
                speed = log_speedup(outcome, asked.reference) if outcome.ok else None
                yield float(share), outcome.status.compiled, outcome.ok, speed

    return look_of_shares(rows(), penalty)


def _rewards(asked: Asked, arms: Sequence[Arm], setting: Setting) -> NDArray[np.float64]:
    found = (_reward(arm.outcome(asked), asked.reference, arm, setting) for arm in arms)
    return np.array([math.nan if one is None else one for one in found])


def _reward(outcome: Outcome, reference: Outcome, arm: Arm, setting: Setting) -> float | None:
    worth = reward(outcome, reference, len(arm.text), setting.weights)
    return None if worth is None else worth.total
