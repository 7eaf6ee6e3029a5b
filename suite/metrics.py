"""What the rows of one author on one operation amount to: rates, speedups, bandwidth.

Pure functions over rows. A metric that has nothing to divide by is None, never zero, infinite or
NaN. Speedups come from device times on a GPU only; emulated times are never looked at.

A speedup is a geometric mean of reference time over time. Over several answers to a problem it is
the mean of all of them; ``best_of_k`` is that of the best of k drawn ones. A failure counts as a
tenth of the reference; what is not applicable is left out for hand-tuned authors and is a failure
of a generated program. Problems without a reference time are left out for every other author alike.
An answer that was never given, because the run stopped, takes part in nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median
from typing import Literal

from suite import drawn
from suite.author import Kind
from suite.evaluation import Status
from suite.record import Row

Cache = Literal["hot", "cold"]
CACHES: tuple[Cache, ...] = ("hot", "cold")
REFERENCES = ("cusparse", "cusparse_best")
FAILURE = 0.1  # speedup that a failure counts as
BEST = "best_of_baselines"


@dataclass(frozen=True)
class Reference:
    """What others are compared with.

    Attributes:
        author: Whose times they are.
        times: Best time on each problem that the author solved, in microseconds, by problem key.
    """

    author: str
    times: Mapping[str, float]

    def counts(self, row: Row) -> bool:
        """Whether the row's problem has a reference; a failure of the reference's own counts."""
        return row.problem_key in self.times or (row.author == self.author and not row.ok)


def judged(rows: Iterable[Row]) -> list[Row]:
    """The rows that rates divide by.

    That is all, except what was never answered and what is not applicable to a hand-tuned author.
    """
    applicable = (r for r in rows if r.kind.chooses or r.status is not Status.NOT_APPLICABLE)
    return [row for row in applicable if not row.unanswered]


def count(rows: Iterable[Row], *statuses: Status) -> int:
    """How many rows have one of the statuses."""
    return sum(row.status in statuses for row in rows)


def compile_rate(rows: Iterable[Row]) -> float | None:
    """Share of answers that the compiler accepted. Library routines are not compiled: None."""
    texts = [row for row in judged(rows) if row.kind is not Kind.LIBRARY]
    return sum(row.status.compiled for row in texts) / len(texts) if texts else None


def correct_rate(rows: Iterable[Row]) -> float | None:
    """Share of answers that were right."""
    asked = judged(rows)
    return count(asked, Status.OK) / len(asked) if asked else None


def time_us(row: Row, cache: Cache) -> float | None:
    """Median device time of a right answer on a GPU, in microseconds."""
    return (row.hot_us if cache == "hot" else row.cold_us) if row.ok else None


def reference_times(rows: Iterable[Row], author: str, cache: Cache) -> Reference:
    """Best time of ``author`` on each problem that it solved."""
    times: dict[str, float] = {}
    for row in rows:
        time = time_us(row, cache) if row.author == author else None
        if time is not None:
            times[row.problem_key] = min(time, times.get(row.problem_key, math.inf))
    return Reference(author, times)


def ratios(
    rows: Iterable[Row], reference: Reference, cache: Cache, if_correct: bool = False
) -> list[float]:
    """Reference time over time for each row whose problem has a reference.

    Args:
        rows: Rows of the author.
        reference: From ``reference_times``.
        cache: Which of the two times.
        if_correct: Leave failures out rather than count them as ``FAILURE``.

    Returns:
        One positive number a row, in the rows' order.
    """
    out = []
    for row in judged(rows):
        if not reference.counts(row):
            continue
        time = time_us(row, cache)
        if time is not None:
            out.append(reference.times[row.problem_key] / time)
        elif not if_correct and not row.ok:
            out.append(FAILURE)
    return out


def geometric_mean(values: Sequence[float]) -> float | None:
    """Geometric mean of positive numbers; None of none."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def speedup(
    rows: Iterable[Row], reference: Reference, cache: Cache, if_correct: bool = False
) -> float | None:
    """Geometric mean of ``ratios``; None when no problem has a reference time."""
    return geometric_mean(ratios(rows, reference, cache, if_correct))


def fast_1(rows: Iterable[Row], reference: Reference, cache: Cache) -> float | None:
    """Share of answers that are right and at least as fast as the reference."""
    found = ratios(rows, reference, cache)
    return sum(ratio >= 1 for ratio in found) / len(found) if found else None


def drawn_answers(rows: Iterable[Row]) -> list[list[Row]]:
    """The answers to each problem, of those who gave several: what may be drawn from."""
    problems: dict[str, list[Row]] = {}
    for row in judged(rows):
        problems.setdefault(row.problem_key, []).append(row)
    return list(problems.values()) if any(len(one) > 1 for one in problems.values()) else []


def draws(rows: Iterable[Row]) -> list[int]:
    """How many answers may be drawn: each k above 1 of ``drawn.KS`` for which there are enough."""
    most = max(map(len, drawn_answers(rows)), default=1)
    return [k for k in drawn.KS if 1 < k <= most]


def pass_at(rows: Iterable[Row], k: int) -> dict[str, float]:
    """Chance that one of k drawn answers to each problem with so many is right, by its key."""
    enough = [one for one in drawn_answers(rows) if len(one) >= k]
    return {one[0].problem_key: drawn.pass_at(k, count(one, Status.OK), len(one)) for one in enough}


def best_of_drawn(
    rows: Iterable[Row], k: int, reference: Reference, cache: Cache
) -> dict[str, float]:
    """The speedup of the best of k drawn answers to each problem with so many, by its key."""
    found = {one[0].problem_key: ratios(one, reference, cache) for one in drawn_answers(rows)}
    return {key: drawn.best_of(k, mine) for key, mine in found.items() if len(mine) >= k}


def bandwidth_gbps(row: Row, cache: Cache) -> float | None:
    """Compulsory traffic over time, in gigabytes (10⁹) a second."""
    time = time_us(row, cache)
    return row.bytes_moved / time / 1e3 if time and row.bytes_moved is not None else None


def bandwidth_fraction(row: Row, cache: Cache) -> float | None:
    """Compulsory traffic over time, as a share of what the same GPU copies; hot it may exceed 1."""
    speed = bandwidth_gbps(row, cache)
    return speed / row.copy_gbps if speed is not None and row.copy_gbps else None


def fastest(rows: Iterable[Row], cache: Cache) -> dict[str, int]:
    """On how many problems each author has the shortest time; ties count for every one of them."""
    best: dict[str, tuple[float, set[str]]] = {}
    for row in rows:
        time = time_us(row, cache)
        if time is None:
            continue
        record, holders = best.get(row.problem_key, (math.inf, set()))
        if time < record:
            best[row.problem_key] = (time, {row.author})
        elif time == record:
            holders.add(row.author)
    wins: dict[str, int] = {}
    for _, holders in best.values():
        for author in holders:
            wins[author] = wins.get(author, 0) + 1
    return wins


def oracle(rows: Sequence[Row]) -> list[Row]:
    """Rows of ``best_of_baselines`` on one operation: what always taking the fastest would give.

    Empty where there are fewer than two baselines, or nothing was timed on a GPU.
    """
    baselines = [row for row in rows if row.kind is Kind.BASELINE]
    timed = any(row.hot_us is not None for row in baselines)
    several = len({row.author for row in baselines}) > 1
    return best_of(baselines, BEST) if timed and several else []


def best_of(rows: Iterable[Row], name: str) -> list[Row]:
    """One row a problem, as an author ``name`` who always knew which of the given answers to use.

    The choice is the right answer with the shortest hot time; where none is right, one that was
    never given, for it might have been; then a failure; where nothing applies, a row that says so.
    The cold figure is the shortest cold time, of another answer where that is shorter, as it is
    for ``cusparse_best``. The row's ``detail`` names whose answers they are.
    """
    hot: dict[str, Row] = {}
    cold: dict[str, Row] = {}
    for row in rows:
        for chosen, cache in zip((hot, cold), CACHES, strict=True):
            held = chosen.get(row.problem_key)
            if held is None or _preference(row, cache) < _preference(held, cache):
                chosen[row.problem_key] = row
    return [_joined(row, cold[key], name) for key, row in hot.items()]


def _joined(hot: Row, cold: Row, name: str) -> Row:
    if cold.key == hot.key:
        return dataclasses.replace(hot, author=name, detail=hot.author)
    times = {f.name: getattr(cold, f.name) for f in fields(cold) if f.name.startswith("cold_")}
    detail = f"{hot.author}; cold: {cold.author}"
    wrong = "; ".join(dict.fromkeys(filter(None, (hot.disturbed, cold.disturbed))))
    return dataclasses.replace(hot, author=name, detail=detail, disturbed=wrong, **times)


def _preference(row: Row, cache: Cache) -> tuple[int, float]:
    if row.unanswered:
        return 1, math.inf
    rank = 0 if row.ok else 3 if row.status is Status.NOT_APPLICABLE else 2
    time = time_us(row, cache) if row.ok else None
    return rank, math.inf if time is None else time


def collect(rows: Sequence[Row], everyone: Sequence[Row]) -> dict[str, float]:
    """Every metric of one author on one operation, by its name in MLflow and the reports.

    Args:
        rows: The author's rows with one label.
        everyone: All rows with that label, for references and for who is fastest.

    Returns:
        Finite numbers only; what has no value is left out.
    """
    answered = [row for row in rows if not row.unanswered]
    compared = judged(rows)
    found: dict[str, float | None] = {
        "asked": len(rows),
        "unanswered": len(rows) - len(answered),
        "problems": len({row.problem_key for row in compared}),
        "correct": count(rows, Status.OK),
        "not_applicable": count(rows, Status.NOT_APPLICABLE),
        "infrastructure_errors": count(answered, Status.INFRASTRUCTURE_ERROR),
        # Only where something was measured on a GPU: nowhere else can it be disturbed.
        "disturbed": sum(r.disturbed != "" for r in rows)
        if any(r.hot_us is not None for r in rows)
        else None,
        "compile_rate": compile_rate(rows),
        "correct_rate": correct_rate(rows),
        "error_ratio_max": max(
            (r.error_ratio for r in rows if r.error_ratio is not None), default=None
        ),
        # 0 says that the binary came from the cache.
        "compile_ms_median": _median(r.compile_ms for r in rows if r.compile_ms),
        "wall_ms_median": _median(r.wall_ms for r in rows),
        "emulated_us_median": _median(r.emulated_us for r in rows),
    }
    ks = draws(rows)
    found |= {f"pass_at_{k}": fmean(pass_at(rows, k).values()) for k in ks}
    for cache in CACHES:
        for author in REFERENCES:
            reference = reference_times(everyone, author, cache)
            for k in ks:
                best = best_of_drawn(rows, k, reference, cache).values()
                found[f"best_of_{k}_vs_{author}.{cache}"] = geometric_mean(list(best))
            name = f"speedup_vs_{author}"
            found[f"{name}.{cache}"] = speedup(rows, reference, cache)
            found[f"{name}_if_correct.{cache}"] = speedup(rows, reference, cache, if_correct=True)
            found[f"fast_1_vs_{author}.{cache}"] = fast_1(rows, reference, cache)
            if cache == "hot":
                covered = {row.problem_key for row in compared if reference.counts(row)}
                found[f"{name}_problems"] = len(covered) or None
        author = rows[0].author if rows else ""
        if author != BEST or cache == "hot":  # its bytes are those of the program that is best hot
            speeds = [speed for r in rows if (speed := bandwidth_gbps(r, cache))]
            found[f"bandwidth_gbps.{cache}"] = geometric_mean(speeds)
            shares = [share for r in rows if (share := bandwidth_fraction(r, cache))]
            found[f"bandwidth_fraction.{cache}"] = geometric_mean(shares)
        if any(time_us(row, cache) is not None for row in everyone):
            wins = fastest([row for row in everyone if row.author != BEST], cache)
            ranked = answered and author != BEST
            found[f"fastest.{cache}"] = wins.get(author, 0) if ranked else None
    return {name: float(v) for name, v in found.items() if v is not None and math.isfinite(v)}


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
