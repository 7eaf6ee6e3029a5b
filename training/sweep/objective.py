"""What a trial is worth to whoever uses the model: how fast its programs are, and how often right.

Never the reward itself, which the study changes. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Mode = Literal["constraint", "pareto"]
TENTH = 0.1  # of the reference: what curves count a failure as


@dataclass(frozen=True)
class Look:
    """What validation problems say.

    Attributes:
        speedup: Geometric mean over ``cusparse``; a wrong program counts as the reference's speed
            divided by the penalty.
        correct: Share of right programs.
        compiled: Share of programs that compile.
        steps: Updates until then.
        seconds: That were charged until then.
    """

    speedup: float
    correct: float
    compiled: float
    steps: int = 0
    seconds: float = 0.0

    @property
    def known(self) -> bool:
        """Whether it says anything."""
        return math.isfinite(self.speedup) and math.isfinite(self.correct)


@dataclass(frozen=True)
class Goal:
    """What a study looks for.

    Attributes:
        mode: ``constraint``: the speedup, where enough programs are right; ``pareto``: both.
        least_correct: Share of right programs that is enough.
        penalty: Of a wrong program.
    """

    mode: Mode
    least_correct: float
    penalty: float

    @property
    def names(self) -> tuple[str, ...]:
        """Of the objectives; each is to be large."""
        return ("speedup",) if self.mode == "constraint" else ("speedup", "correct rate")

    def values(self, look: Look) -> tuple[float, ...]:
        """Of the objectives."""
        return (look.speedup, look.correct)[: len(self.names)]

    def violation(self, look: Look) -> float:
        """At most 0 where enough programs are right."""
        return self.least_correct - look.correct


@dataclass(frozen=True)
class Tried:
    """A trial that ran to its end.

    Attributes:
        number: Of the trial.
        params: What was tried.
        look: What came of it.
    """

    number: int
    params: Mapping[str, float]
    look: Look


def winner(tried: Iterable[Tried], goal: Goal) -> Tried | None:
    """The fastest of those with enough right programs, the same in both modes; None without one."""
    enough = [one for one in tried if one.look.known and goal.violation(one.look) <= 0]
    return max(enough, key=lambda one: (one.look.speedup, -one.number), default=None)


def look_of_curve(figures: Mapping[str, float], penalty: float, steps: int, seconds: float) -> Look:
    """A look from the figures of a curve, which count a failure as a tenth of the reference.

    Args:
        figures: ``validation.*`` of a point.
        penalty: Of a wrong program.
        steps: Updates until then.
        seconds: That were charged until then.
    """

    def figure(name: str) -> float:
        return figures.get(f"validation.{name}", math.nan)

    speedup = figure("speedup") * (1 / (penalty * TENTH)) ** figure("speedup_failures")
    return Look(speedup, figure("correct_rate"), figure("compile_rate"), steps, seconds)


def look_of_shares(
    shares: Iterable[tuple[float, bool, bool, float | None]], penalty: float
) -> Look:
    """A look from what is expected: probability, compiled, right, logarithm of the speedup.

    Args:
        shares: Of all programs of all problems; probabilities sum to the number of problems. A
            right program without a logarithm has no time and is left out of the speedup.
        penalty: Of a wrong program.
    """
    whole = right = compiled = counted = total = 0.0
    for share, compiles, is_right, logarithm in shares:
        whole += share
        compiled += share * compiles
        right += share * is_right
        if is_right and logarithm is None:
            continue
        counted += share
        total += share * (logarithm if is_right and logarithm is not None else -math.log(penalty))
    if not whole or not counted:
        return Look(math.nan, math.nan, math.nan)
    return Look(math.exp(total / counted), right / whole, compiled / whole)
