"""95 % intervals of shares, of independent answers and of answers that come in clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Z = 1.959964  # 95 % of a normal distribution


@dataclass(frozen=True)
class Share:
    """A share with its interval.

    Attributes:
        value: Between 0 and 1.
        low: Lower end of the interval.
        high: Upper end.
        count: Answers.
        clusters: Matrices that they are about.
    """

    value: float
    low: float
    high: float
    count: int
    clusters: int


def wilson(share: float, count: float) -> tuple[float, float]:
    """Wilson's interval of a share of ``count`` independent answers."""
    scale = 1 + Z * Z / count
    middle = (share + Z * Z / (2 * count)) / scale
    half = Z / scale * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    return min(low, share), max(high, share)  # whatever rounding does


def clustered(values: Sequence[float], clusters: Sequence[Hashable]) -> Share | None:
    """A share of answers that are alike within a cluster: Wilson's at as many as they are worth.

    How many independent answers they are worth follows from how much the clusters' sums scatter;
    it is never more than there are answers, nor fewer than clusters. Where all answers are the
    same nothing scatters, and each cluster counts as one answer.

    Args:
        values: From 0 to 1, one an answer.
        clusters: Which cluster each belongs to.

    Returns:
        None where there are no answers.
    """
    if not values:
        return None
    count, share = len(values), math.fsum(values) / len(values)
    rest: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        rest[cluster] = rest.get(cluster, 0.0) + value - share
    many = len(rest)
    worth = float(many)
    spread = math.fsum(value * value for value in rest.values())
    if many > 1 and spread > 0:
        variance = spread / count**2 * many / (many - 1)
        worth = min(max(share * (1 - share) / variance, many), count)
    return Share(share, *wilson(share, worth), count, many)
