"""The reward of one program: an ordered ladder of statuses, and on its top rung the speed.

A program gains something with every step that it passes. A right one gains, or loses, by the
logarithm of its speed beside ``cusparse`` on the same problem; but however slow, long or dear to
prepare, it stays above every wrong one. That holds for all weights within their ranges, so that a
search may choose any of them. Knows outcomes only, no device and no model.
"""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from suite.evaluation import Status
from training.errors import ConfigError
from training.outcome import Outcome

CHARACTERS = 4000  # of a program, at which the term for length is half its weight
MULTIPLICATIONS = 1000  # by the reference, whose time is half the term for preparing
NAMED = Path(__file__).with_name("rewards.json")


@dataclass(frozen=True)
class Range:
    """Where a weight may lie, ends included, and what it is."""

    low: float
    high: float
    text: str


@dataclass(frozen=True)
class RewardWeights:
    """All that shapes the reward.

    The first seven are what a program gains by passing a step; the reward of one that is right and
    exactly as fast as the reference is 1.
    """

    read: Annotated[float, Range(0.0, 0.3, "gain: the text can be read")] = 0.1
    bound: Annotated[float, Range(0.0, 0.3, "gain: its names are known")] = 0.1
    applied: Annotated[float, Range(0.0, 0.5, "gain: its format suits the matrix")] = 0.1
    compiled: Annotated[float, Range(0.0, 0.5, "gain: it compiles")] = 0.2
    loaded: Annotated[float, Range(0.0, 0.3, "gain: it can be loaded")] = 0.05
    finished: Annotated[float, Range(0.0, 0.3, "gain: it ends, within its memory")] = 0.05
    right: Annotated[float, Range(0.5, 3.0, "gain: it is right")] = 1.4
    speed: Annotated[float, Range(0.0, 2.0, "weight of the logarithm of the speedup")] = 1.0
    shape: Annotated[float, Range(0.5, 2.0, "power of that logarithm; 1: as it is")] = 1.0
    slowest: Annotated[
        float, Range(0.0, 0.8, "share of the gain for being right that a slow program may lose")
    ] = 0.8
    fastest: Annotated[float, Range(0.5, 5.0, "most that a fast program gains")] = 3.0
    cold: Annotated[float, Range(0.0, 1.0, "share of the time with a flushed L2")] = 0.0
    length: Annotated[float, Range(0.0, 0.04, "weight of the program's length")] = 0.0
    preparing: Annotated[float, Range(0.0, 0.04, "weight of conversion and preparation")] = 0.0

    def __post_init__(self) -> None:
        wrong = [
            f"reward weight {name} {getattr(self, name)}: from {one.low:g} to {one.high:g}"
            for name, one in ranges().items()
            if not one.low <= getattr(self, name) <= one.high
        ]
        if not wrong and self.slowest * self.right + self.length + self.preparing >= self.right:
            wrong.append(
                "reward weights slowest, length, preparing: together they could put a right program"
                " below a wrong one; lower them or raise right"
            )
        if wrong:
            raise ConfigError(wrong)

    def ladder(self) -> dict[Status, float]:
        """Rewards by status, ascending; what says nothing of the program has none."""
        gains = {
            Status.PARSE_ERROR: 0.0,
            Status.BIND_ERROR: self.read,
            Status.NOT_APPLICABLE: self.bound,
            Status.COMPILE_ERROR: self.applied,
            Status.LOAD_ERROR: self.compiled,
            Status.TIMEOUT: self.loaded,
            Status.MEMORY_FAULT: 0.0,
            Status.WRONG_RESULT: self.finished,
            Status.IMPOSSIBLE_TIME: 0.0,
            Status.OK: self.right,
        }
        height = 1.0 - sum(gains.values())
        found = {}
        for status, gain in gains.items():
            height += gain
            found[status] = height
        found[Status.OK] = 1.0  # not its neighbour by rounding
        return found


@dataclass(frozen=True)
class Reward:
    """A reward and what it is made of.

    Attributes:
        rung: Of the status.
        speed: For how fast a right program is.
        length: For how long it is, at most 0.
        preparing: For what must be done before it can multiply, at most 0.
    """

    rung: float
    speed: float = 0.0
    length: float = 0.0
    preparing: float = 0.0

    @property
    def total(self) -> float:
        """The reward."""
        return self.rung + self.speed + self.length + self.preparing


@cache
def ranges() -> Mapping[str, Range]:
    """The range of each weight, by name."""
    hints = typing.get_type_hints(RewardWeights, include_extras=True)
    return {one.name: typing.get_args(hints[one.name])[1] for one in fields(RewardWeights)}


def reward(
    outcome: Outcome, reference: Outcome | None, characters: int, weights: RewardWeights
) -> Reward | None:
    """The reward of a program.

    Args:
        outcome: What became of it.
        reference: What became of ``cusparse`` on the same problem, where it was timed.
        characters: Length of the program's text.
        weights: What counts.

    Returns:
        A finite reward; None where the machine failed, so that nothing is known of the program.
    """
    if not outcome.judged:
        return None
    rung = weights.ladder()[outcome.status]
    if not outcome.ok:
        return Reward(rung)
    return Reward(
        rung,
        _speed(log_speedup(outcome, reference, weights.cold), weights),
        -weights.length * _saturated(characters / CHARACTERS),
        -weights.preparing * _saturated(_multiplications(outcome, reference) / MULTIPLICATIONS),
    )


def log_speedup(outcome: Outcome, reference: Outcome | None, cold: float = 0.0) -> float | None:
    """Natural logarithm of the reference's time over the program's; None where either is unknown.

    Args:
        outcome: Of the program.
        reference: Of the reference.
        cold: Share of the times with a flushed L2.
    """
    if reference is None:
        return None
    parts = []
    for share, name in ((1.0 - cold, "hot_us"), (cold, "cold_us")):
        mine, theirs = _time(getattr(outcome, name)), _time(getattr(reference, name))
        if share and (mine is None or theirs is None):
            return None
        if share and mine is not None and theirs is not None:
            parts.append(share * (math.log(theirs) - math.log(mine)))
    return math.fsum(parts)


def _speed(logarithm: float | None, weights: RewardWeights) -> float:
    if logarithm is None:
        return 0.0
    term = weights.speed * math.copysign(abs(logarithm) ** weights.shape, logarithm)
    return min(max(term, -weights.slowest * weights.right), weights.fastest)


def _multiplications(outcome: Outcome, reference: Outcome | None) -> float:
    """How often the reference multiplies while the program gets ready; 0 where that is unknown."""
    each = _time(reference.hot_us) if reference else None
    if each is None:
        return 0.0
    ready_us = (_time(outcome.conversion_ms) or 0.0) * 1e3 + (_time(outcome.prepare_us) or 0.0)
    return ready_us / each


def _saturated(amount: float) -> float:
    """From 0 to 1, a half at 1."""
    return 1.0 if math.isinf(amount) else amount / (1.0 + amount)


def _time(value: float | None) -> float | None:
    """A time that can be divided by."""
    return value if value is not None and math.isfinite(value) and value > 0 else None


def names() -> list[str]:
    """The named configurations."""
    return list(_read())


def named(name: str) -> RewardWeights:
    """Weights by the name of a configuration.

    Raises:
        ConfigError: There is none of this name, or it cannot be used.
    """
    known = _read()
    if name not in known:
        raise ConfigError([f"reward {name}: is not known; {', '.join(known)} are"])
    try:
        return RewardWeights(**known[name]["weights"])
    except (TypeError, KeyError) as error:
        raise ConfigError([f"{NAMED}: {name}: {error}"]) from error


def plain(weights: RewardWeights) -> dict[str, float]:
    """Weights by name, as a configuration has them."""
    return asdict(weights)


def _read() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(NAMED.read_text(encoding="utf-8"))
    return known
