"""Numbers with their intervals: means, shares and paired differences over problems.

The unit of resampling is the problem: several answers to one problem are drawn together, since they
say more about that problem and nothing about others.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

RESAMPLES = 10_000
SEED = 20_260_301  # of the resampling; the same rows give the same interval
FLIPS = 10_000  # random signs where there are too many problems to try all


@dataclass(frozen=True)
class Figure:
    """One number that may be quoted.

    Attributes:
        value: The number.
        low: Lower end of its 95 % interval over the problems.
        high: Upper end.
        unit: ``x`` for a ratio, ``share`` for a share of what was asked.
        n: Answers that it was computed from.
    """

    value: float
    low: float
    high: float
    unit: str
    n: int


def share(values: Sequence[float], problems: Sequence[Hashable]) -> Figure:
    """The mean of values in [0, 1], one for each answer, with its interval.

    Args:
        values: What each answer counts as.
        problems: Which problem each answer is for.

    Where all or none count, resampling says that nothing else is possible; there the far end is
    the exact one for that many problems (Clopper and Pearson, 1934).
    """
    found = _interval(np.asarray(values, dtype=np.float64), problems, "share")
    far = 0.025 ** (1 / len(set(problems)))
    if found.low == found.high == 1:
        return replace(found, low=far)
    return replace(found, high=1 - far) if found.low == found.high == 0 else found


def geometric(values: Sequence[float], problems: Sequence[Hashable]) -> Figure:
    """The geometric mean of positive ratios, one for each answer, with its interval."""
    logs = _interval(np.log(values), problems, "x")
    return Figure(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), "x", logs.n)


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided p that paired differences are centred on zero, by flipping their signs.

    Exact for up to 13 of them, from ``FLIPS`` random flips beyond (Edgington and Onghena, 2007).
    """
    sample = np.asarray(differences, dtype=np.float64)
    n = sample.size
    if n == 0:
        return 1.0
    if n <= 13:
        codes = np.arange(2**n)[:, None] >> np.arange(n) & 1
        signs = 1.0 - 2.0 * codes
        return float(np.mean(np.abs(signs @ sample) >= abs(sample.sum()) * (1 - 1e-12)))
    signs = np.random.default_rng(SEED).choice((-1.0, 1.0), (FLIPS, n))
    extreme = int(np.sum(np.abs(signs @ sample) >= abs(sample.sum()) * (1 - 1e-12)))
    return (extreme + 1) / (FLIPS + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted for being several comparisons (Holm, 1979), in the given order."""
    adjusted = [0.0] * len(ps)
    worst = 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        worst = max(worst, min(1.0, ps[at] * (len(ps) - rank)))
        adjusted[at] = worst
    return adjusted


def _interval(sample: np.ndarray, problems: Sequence[Hashable], unit: str) -> Figure:
    """The mean with its percentile bootstrap interval (Efron and Tibshirani, 1993, §13.3)."""
    names = {name: at for at, name in enumerate(dict.fromkeys(problems))}
    draws = _draws(len(names))
    if len(names) == sample.size:
        means = sample[draws].mean(axis=1)
    else:
        where = np.fromiter((names[name] for name in problems), dtype=np.intp, count=sample.size)
        sums, counts = np.bincount(where, sample), np.bincount(where)
        means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Figure(float(sample.mean()), float(low), float(high), unit, sample.size)


@lru_cache(maxsize=8)
def _draws(n: int) -> np.ndarray:
    return np.random.default_rng(SEED).integers(0, n, (RESAMPLES, n))
