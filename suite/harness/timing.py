"""When to stop measuring, and what the samples say. Knows numbers only, no device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from suite.evaluation import Timing

_Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Precision:
    """How tight an interval must be, and what may be spent on it.

    Attributes:
        relative: Half-width of the median's 95 % interval, over the median, at which to stop.
        least: Samples to take in any case.
        most: Samples never to exceed.
        budget_ms: Device time for one figure, in milliseconds; checked between samples.
        sample_us: Wanted length of one sample, in microseconds; decides the multiplications per
            sample.
        most_launches: Multiplications per sample never to exceed.
    """

    relative: float = 0.01
    least: int = 7
    most: int = 60
    budget_ms: float = 12.0
    sample_us: float = 400.0
    most_launches: int = 100

    def launches(self, one_us: float) -> int:
        """Multiplications per sample, for one that takes about ``one_us`` microseconds."""
        return max(1, min(self.most_launches, math.ceil(self.sample_us / max(one_us, 1e-3))))


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Median with its distribution-free 95 % interval, from order statistics.

    The interval's ranks are n/2 ± 1.96·√n/2 (normal approximation of the binomial); with fewer than
    six samples it is the whole range, which covers less than 95 %.

    Returns:
        Lower end, median, upper end, in the samples' unit.
    """
    ordered = sorted(samples)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    half = _Z95 * math.sqrt(n) / 2
    low = max(0, math.floor(n / 2 - half) - 1)
    high = min(n - 1, math.ceil(n / 2 + half))
    return ordered[low], middle, ordered[high]


def enough(samples: Sequence[float], spent_ms: float, precision: Precision) -> bool:
    """Whether to stop sampling: the interval is tight, or samples or budget are used up."""
    if len(samples) >= precision.most:
        return True
    if len(samples) < precision.least:
        # A program so slow that its first samples eat the budget still gets three.
        return len(samples) >= 3 and spent_ms >= 4 * precision.budget_ms
    return tight(samples, precision) or spent_ms >= precision.budget_ms


def tight(samples: Sequence[float], precision: Precision) -> bool:
    """Whether the median's interval is narrow enough."""
    low, middle, high = median_interval(samples)
    return (high - low) / 2 <= precision.relative * middle


def summarise(samples: Sequence[float], launches: int, precision: Precision) -> Timing:
    """The samples (microseconds per multiplication) as a ``Timing``."""
    low, middle, high = median_interval(samples)
    return Timing(middle, low, high, tuple(samples), launches, tight(samples, precision))
