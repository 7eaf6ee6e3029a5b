"""What a study needs of whatever runs a trial, a GPU or a stand-in for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from training.curve import Point
from training.sweep.objective import Look
from training.sweep.space import Setting

LOOKS = 4  # parts of a budget; validation matrices are looked at after 1, 2 and all of them
RUNGS = (1, 2, 4)

# Part of the budget, what was seen, the curve so far; returns whether to end the trial.
Watch = Callable[[int, Look, Sequence[Point]], bool]


class Runner(Protocol):
    """Runs trials.

    Attributes:
        device: What stands behind the figures, in words.
        asked: What the figures depend on beside the configuration, as plain text.
        expected: Seconds that a trial takes, a guess until one was run.
    """

    device: str
    asked: dict[str, str]
    expected: float

    def run(self, setting: Setting, seed: int, folder: Path, watch: Watch) -> None:
        """Learns with a setting until the budget is used up or the watch says so.

        Returns early, without a last look, where the session has to stop.

        Args:
            setting: What to try.
            seed: Of matrices and samples.
            folder: Of this trial alone.
            watch: Told of every look.

        Raises:
            TrainingError: The machine fails.
        """
        ...

    def close(self) -> None:
        """Ends its processes."""
        ...


def part_of(spent: float, budget: float) -> int:
    """Which look is due once so much of a budget is spent; 0 before the first.

    Args:
        spent: Seconds.
        budget: Seconds.
    """
    parts = int(LOOKS * spent / budget + 1e-9)
    return max((rung for rung in RUNGS if rung <= parts), default=0)
