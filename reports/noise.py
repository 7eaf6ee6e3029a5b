"""Whether two times differ, or only their noise: pure functions.

Two campaigns of one command on one H200 say how far times repeat
(``reports/published/h200/first-set/repeated_times.parquet``): 99 % of the hot times of 10 µs and
more changed by less than 2.1 %, cold by less than 2.5 %, and of the shorter ones by less than 5.9 %
and 5.6 %. Below ``Thresholds`` nothing is called a difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from suite.metrics import Cache, time_us
from suite.record import Row


class Verdict(StrEnum):
    """What a comparison says."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Thresholds:
    """From which change on a time counts as another one.

    Attributes:
        change: Smallest ratio of times minus one.
        short_change: The same where a time is below ``short_us``.
        short_us: Below it launches and clocks weigh more than the program, in microseconds.
    """

    change: float = 0.03
    short_change: float = 0.06
    short_us: float = 10.0

    def at(self, us: float) -> float:
        """The threshold for times of this length."""
        return self.short_change if us < self.short_us else self.change


THRESHOLDS = Thresholds()


def judge(before: Row, after: Row, cache: Cache, limits: Thresholds = THRESHOLDS) -> Verdict | None:
    """Whether the second time is another one than the first.

    It is where it changed by more than the threshold and the 95 % intervals do not meet. Where it
    changed as much, but its GPU was disturbed or its interval did not become tight, it is unclear.

    Returns:
        The verdict; None where one of them has no time.
    """
    first, second = time_us(before, cache), time_us(after, cache)
    if not first or not second:
        return None
    if max(second / first, first / second) - 1 <= limits.at(min(first, second)):
        return Verdict.SAME
    if _meet(before, after, cache):
        return Verdict.SAME
    if (
        before.disturbed
        or after.disturbed
        or not (_settled(before, cache) and _settled(after, cache))
    ):
        return Verdict.UNCLEAR
    return Verdict.FASTER if second < first else Verdict.SLOWER


def judge_ratio(speedup: float, us: float, limits: Thresholds = THRESHOLDS) -> Verdict:
    """The same of a speedup against a reference time ``us``, where intervals cannot be compared."""
    if max(speedup, 1 / speedup) - 1 <= limits.at(us):
        return Verdict.SAME
    return Verdict.FASTER if speedup > 1 else Verdict.SLOWER


def counts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """How many there are of each."""
    found = dict.fromkeys(Verdict, 0)
    for verdict in verdicts:
        found[verdict] += 1
    return found


def _meet(a: Row, b: Row, cache: Cache) -> bool:
    (low_a, high_a), (low_b, high_b) = _interval(a, cache), _interval(b, cache)
    return low_a <= high_b and low_b <= high_a


def _interval(row: Row, cache: Cache) -> tuple[float, float]:
    time = time_us(row, cache) or 0.0
    low, high = (
        (row.hot_low_us, row.hot_high_us) if cache == "hot" else (row.cold_low_us, row.cold_high_us)
    )
    return time if low is None else low, time if high is None else high


def _settled(row: Row, cache: Cache) -> bool:
    return (row.hot_settled if cache == "hot" else row.cold_settled) is not False
