"""Whether a winner is better than the start when both are trained again, with other seeds.

The best of many trials is partly the luckiest. Both settings get the same matrices and the same
budget for each seed, so their difference is taken seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from scipy import stats

from training.pace import TimeBox
from training.reward import named
from training.sweep.config import SweepConfig
from training.sweep.objective import Goal, Look, Tried
from training.sweep.runner import LOOKS, Runner
from training.sweep.space import setting
from training.sweep.storage import failures
from training.sweep.study import longest

if TYPE_CHECKING:
    from optuna import Study

CONFIRMED = "confirmed"
SIDES = ("start", "winner")


@dataclass(frozen=True)
class Comparison:
    """The winner beside the start.

    Attributes:
        ratio: Geometric mean over seeds of the winner's speedup over the start's.
        low: Of the 95 % interval (Student's, of the logarithms, seed by seed).
        high: Of the interval.
        seeds: How many.
        correct: Of the winner, mean.
        start: Speedup of the start, geometric mean.
        winner: Speedup of the winner, geometric mean.
    """

    ratio: float
    low: float
    high: float
    seeds: int
    correct: float
    start: float
    winner: float

    def better(self, goal: Goal) -> bool:
        """Whether the winner is, beyond what seeds explain, with enough right programs."""
        return self.low > 1 and self.correct >= goal.least_correct

    def __str__(self) -> str:
        return (
            f"winner {self.winner:.3f}, start {self.start:.3f}: {self.ratio:.3f} ×"
            f" ({self.low:.3f} to {self.high:.3f}, {self.seeds} seeds),"
            f" right {self.correct:.1%}"
        )


def compared(pairs: Sequence[tuple[Look, Look]]) -> Comparison | None:
    """The comparison of (start, winner), a pair for each seed; None with less than two."""
    if len(pairs) < 2:
        return None
    logs = [(math.log(start.speedup), math.log(winner.speedup)) for start, winner in pairs]
    differences = [winner - start for start, winner in logs]
    mean = fmean(differences)
    half = float(stats.t.ppf(0.975, len(pairs) - 1)) * stdev(differences) / math.sqrt(len(pairs))
    return Comparison(
        ratio=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        seeds=len(pairs),
        correct=fmean(winner.correct for _, winner in pairs),
        start=math.exp(fmean(start for start, _ in logs)),
        winner=math.exp(fmean(winner for _, winner in logs)),
    )


def pairs_of(study: Study, best: Tried) -> list[tuple[Look, Look]]:
    """What was confirmed of a winner already, seed by seed."""
    found = _known(study, best)
    seeds = sorted({seed for seed, _ in found})
    sides = [[found.get((seed, side)) for side in SIDES] for seed in seeds]
    return [(start, winner) for start, winner in sides if start and winner]


def confirm(
    config: SweepConfig,
    runner: Runner,
    study: Study,
    best: Tried,
    box: TimeBox,
    say: Callable[[str], None],
) -> bool:
    """Trains start and winner with each seed; what an earlier session did is not done again.

    Returns:
        Whether all of it is done.

    Raises:
        TrainingError: The machine or the database fails.
    """
    start = named(config.start)
    params: Mapping[str, Mapping[str, float]] = {"start": config.first(), "winner": best.params}
    for seed in range(config.seed + 1, config.seed + 1 + config.confirm):
        for side in SIDES:
            if (seed, side) in _known(study, best):
                continue
            if box.asked or box.left < longest(study, runner):
                return False
            seen: list[tuple[int, Look]] = []

            def watch(part: int, look: Look, _: object, seen: list[Any] = seen) -> bool:
                seen.append((part, look))
                return not look.known

            folder = config.out / "confirm" / f"{best.number:04}" / f"{side}-{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            runner.run(setting(params[side], start), seed, folder, watch)
            if not seen or seen[-1][0] < LOOKS or not seen[-1][1].known:
                return False
            _remember(config, study, best, seed, side, seen[-1][1])
            say(f"{side}, seed {seed}: speedup {seen[-1][1].speedup:.3f}")
    return True


def _known(study: Study, best: Tried) -> dict[tuple[int, str], Look]:
    return {
        (int(row["seed"]), str(row["side"])): Look(**row["look"])
        for key, row in study.user_attrs.items()
        if key.startswith(f"{CONFIRMED} {best.number} ")
    }


def _remember(
    config: SweepConfig, study: Study, best: Tried, seed: int, side: str, look: Look
) -> None:
    row = {"seed": seed, "side": side, "look": asdict(look)}
    with failures(config.url):
        study.set_user_attr(f"{CONFIRMED} {best.number} {seed} {side}", row)
