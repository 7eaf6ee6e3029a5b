"""Headline figures of a campaign, each with an interval: pure functions over rows.

A figure's name is ``<op>.<author>.<metric>[.<cache>]``, for example
``spmv.best_of_baselines.speedup_vs_cusparse_best.hot``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reports.intervals import Figure, geometric, share
from suite.author import Kind
from suite.metrics import (
    BEST,
    CACHES,
    REFERENCES,
    Cache,
    Reference,
    best_of_drawn,
    draws,
    judged,
    oracle,
    ratios,
    reference_times,
    time_us,
)
from suite.record import Row


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
        if best := oracle(everyone):
            authors[BEST] = best
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
                    found[name] = geometric(list(changes.values()), [p for p, _ in changes])
    return found


def _changes(
    first: Sequence[Row], second: Sequence[Row], cache: Cache
) -> dict[tuple[str, int], float]:
    earlier = {row.key: time for row in first if (time := time_us(row, cache))}
    later = {row.key: time for row in second if (time := time_us(row, cache))}
    return {key: later[key] / time for key, time in earlier.items() if key in later}


def _author(rows: Sequence[Row], everyone: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    asked = judged(rows)
    problems = [row.problem_key for row in asked]
    if asked and asked[0].kind is not Kind.LIBRARY:
        yield "compile_rate", share([row.status.compiled for row in asked], problems)
    if asked:
        yield "correct_rate", share([row.ok for row in asked], problems)
    for cache in CACHES:
        for author in REFERENCES:
            reference = reference_times(everyone, author, cache)
            found = compared(rows, reference, cache)
            if found:
                yield f"speedup_vs_{author}.{cache}", ratio(found)
            for k in draws(rows):
                if best := best_of(rows, k, reference, cache):
                    yield f"best_of_{k}_vs_{author}.{cache}", best


def best_of(rows: Sequence[Row], k: int, reference: Reference, cache: Cache) -> Figure | None:
    """The best of k drawn answers, over the problems with so many; None where there are none."""
    found = best_of_drawn(rows, k, reference, cache)
    return geometric(list(found.values()), list(found)) if found else None


def compared(rows: Sequence[Row], reference: Reference, cache: Cache) -> list[tuple[Row, float]]:
    """Each row that has a reference, beside the reference's time over its own."""
    return [(row, found) for row in rows for found in ratios([row], reference, cache)]


def ratio(found: Sequence[tuple[Row, float]]) -> Figure:
    """The geometric mean of what ``compared`` found."""
    return geometric([value for _, value in found], [row.problem_key for row, _ in found])


def _by(rows: Sequence[Row], key: Callable[[Row], str]) -> Iterator[tuple[str, list[Row]]]:
    for value in dict.fromkeys(key(row) for row in rows):
        yield value, [row for row in rows if key(row) == value]
