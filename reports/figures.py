"""Headline figures of a campaign, each with an interval: pure functions over rows.

A figure's name is ``<op>.<author>.<metric>[.<cache>]``, for example
``spmv.best_of_baselines.speedup_vs_cusparse_best.hot``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from suite.author import Kind
from suite.metrics import (
    BEST,
    CACHES,
    REFERENCES,
    Cache,
    best_of,
    judged,
    ratios,
    reference_times,
    time_us,
)
from suite.record import Row

RESAMPLES = 10_000
SEED = 20_260_301  # of the resampling; the same rows give the same interval


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


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """Every headline figure of a campaign.

    Args:
        rows: All rows of the campaign.

    Returns:
        Figures by name; what has no value is left out.
    """
    found: dict[str, Figure] = {}
    for label, everyone in _by(rows, lambda row: row.label):
        authors = dict(_by(everyone, lambda row: row.author))
        baselines = [row for row in everyone if row.kind is Kind.BASELINE]
        if len({row.author for row in baselines}) > 1:
            authors[BEST] = best_of(baselines, BEST)
        for author, mine in authors.items():
            for name, figure in _author(mine, everyone):
                found[f"{label}.{author}.{name}"] = figure
    return found


def repeatability(first: Sequence[Row], second: Sequence[Row]) -> dict[str, Figure]:
    """How far two campaigns agree: time in the second over time in the first.

    Args:
        first: Rows of one campaign.
        second: Rows of another, on the same problems and authors.

    Returns:
        For each operation, author and cache the geometric mean of that ratio, as
        ``<op>.<author>.repeat_time_ratio.<cache>``.
    """
    found: dict[str, Figure] = {}
    for label, everyone in _by(first, lambda row: row.label):
        for author, mine in _by(everyone, lambda row: row.author):
            again = [row for row in second if (row.label, row.author) == (label, author)]
            for cache in CACHES:
                changes = _changes(mine, again, cache)
                if changes:
                    name = f"{label}.{author}.repeat_time_ratio.{cache}"
                    found[name] = _geometric(changes)
    return found


def _changes(first: Sequence[Row], second: Sequence[Row], cache: Cache) -> list[float]:
    earlier = {row.key: time for row in first if (time := time_us(row, cache))}
    later = {row.key: time for row in second if (time := time_us(row, cache))}
    return [later[key] / earlier[key] for key in earlier.keys() & later.keys()]


def _author(rows: Sequence[Row], everyone: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    asked = judged(rows)
    if asked and asked[0].kind is not Kind.LIBRARY:
        yield "compile_rate", _share([row.status.compiled for row in asked])
    if asked:
        yield "correct_rate", _share([row.ok for row in asked])
    for cache in CACHES:
        for author in REFERENCES:
            found = ratios(rows, reference_times(everyone, author, cache), cache)
            if found:
                yield f"speedup_vs_{author}.{cache}", _geometric(found)


def _share(values: Sequence[bool]) -> Figure:
    """A share with its interval."""
    return _interval(np.asarray(values, dtype=np.float64), "share")


def _geometric(values: Sequence[float]) -> Figure:
    """A geometric mean with its interval."""
    logs = _interval(np.log(values), "x")
    return Figure(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), "x", logs.n)


def _interval(sample: np.ndarray, unit: str) -> Figure:
    """The mean with its percentile bootstrap interval (Efron and Tibshirani, 1993, §13.3)."""
    draws = np.random.default_rng(SEED).integers(0, sample.size, (RESAMPLES, sample.size))
    low, high = np.quantile(sample[draws].mean(axis=1), (0.025, 0.975))
    return Figure(float(sample.mean()), float(low), float(high), unit, sample.size)


def _by(rows: Sequence[Row], key: Callable[[Row], str]) -> Iterator[tuple[str, list[Row]]]:
    for value in dict.fromkeys(key(row) for row in rows):
        yield value, [row for row in rows if key(row) == value]
