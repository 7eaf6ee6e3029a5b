"""What searches found, as curves over the number of measurements; measures nothing itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pyarrow.parquet as pq

from suite.metrics import FAILURE
from suite.problem import Op, label_of
from training.autotune import AUTHOR
from training.autotune_config import BUDGETS
from training.errors import TrainingError
from training.search import best_after, expected_best

Z95 = 1.96


@dataclass(frozen=True)
class Curve:
    """A point of a curve: geometric means over problems.

    Attributes:
        label: Operation with its dense columns.
        measurements: How many programs were measured.
        problems: How many problems it is the mean of.
        speedup: Over ``cusparse``, of the fastest program; a failure counts as a tenth.
        low: Lower end of its 95 % interval, over problems; None for a single one.
        high: Upper end.
        again: The same by a time taken once more; None where there is none.
        of_baselines: Over the fastest hand-tuned program; None where they were not measured.
    """

    label: str
    measurements: int
    problems: int
    speedup: float
    low: float | None
    high: float | None
    again: float | None
    of_baselines: float | None

    def as_row(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def read(folder: Path) -> list[list[dict[str, Any]]]:
    """The rows of each problem in a folder of results.

    Raises:
        TrainingError: There are none.
    """
    found = [pq.read_table(path).to_pylist() for path in sorted(folder.glob("*--*.parquet"))]
    if not found:
        raise TrainingError(f"{folder}: has no results; make some with python -m training autotune")
    return found


def curves(results: Sequence[Sequence[dict[str, Any]]]) -> Iterator[Curve]:
    """A curve for each operation; problems whose reference was not timed are left out."""
    by_label: dict[str, list[Sequence[dict[str, Any]]]] = {}
    for rows in results:
        if rows and rows[0]["cusparse_us"] is not None:
            label = label_of(Op(rows[0]["op"]), rows[0]["n"])
            by_label.setdefault(label, []).append(rows)
    for label, problems in by_label.items():
        for budget in BUDGETS:
            if all(len(_own(rows)) >= budget for rows in problems):
                yield _point(label, budget, problems)


def _point(label: str, budget: int, problems: Sequence[Sequence[dict[str, Any]]]) -> Curve:
    logarithms = [-_best(rows, budget) for rows in problems]
    mean = fmean(logarithms)
    wide = Z95 * stdev(logarithms) / math.sqrt(len(problems)) if len(problems) > 1 else None
    again = [_again(rows, budget) for rows in problems]
    ratios = [_of_baselines(rows, log) for rows, log in zip(problems, logarithms, strict=True)]
    return Curve(
        label,
        budget,
        len(problems),
        math.exp(mean),
        None if wide is None else math.exp(mean - wide),
        None if wide is None else math.exp(mean + wide),
        math.exp(fmean(found)) if (found := [one for one in again if one is not None]) else None,
        math.exp(fmean(known)) if (known := [one for one in ratios if one is not None]) else None,
    )


def _own(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((r for r in rows if r["author"] == AUTHOR), key=lambda r: int(r["order"]))


def _best(rows: Sequence[dict[str, Any]], budget: int) -> float:
    """Logarithm of the best time after a budget, over the reference's.

    Where the order is by lot, it is the mean over all orders.
    """
    reference = rows[0]["cusparse_us"]
    logarithms = [
        None if row["hot_us"] is None else math.log(row["hot_us"] / reference) for row in _own(rows)
    ]
    if rows[0]["search"] == "random":
        return expected_best(logarithms, budget, -math.log(FAILURE))
    best = best_after(logarithms, budget)
    return -math.log(FAILURE) if best is None else best


def _again(rows: Sequence[dict[str, Any]], budget: int) -> float | None:
    timed = [row for row in _own(rows)[:budget] if row["hot_us"] is not None]
    best = min(timed, key=lambda row: float(row["hot_us"]), default=None)
    if best is None:
        return math.log(FAILURE)
    again = best["again_us"]
    return None if again is None else math.log(rows[0]["cusparse_us"] / again)


def _of_baselines(rows: Sequence[dict[str, Any]], logarithm: float) -> float | None:
    times = [r["hot_us"] for r in rows if r["author"] != AUTHOR and r["hot_us"] is not None]
    if not times:
        return None
    return logarithm - math.log(rows[0]["cusparse_us"] / min(times))


def table(found: Sequence[Curve]) -> Iterator[str]:
    """The curves for a person."""
    yield "| op | measurements | problems | × cusparse | 95 % | timed again | × best of baselines |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for one in found:
        low, high, again, ratio = (
            "" if value is None else f"{value:.3f}"
            for value in (one.low, one.high, one.again, one.of_baselines)
        )
        yield (
            f"| {one.label} | {one.measurements} | {one.problems} | {one.speedup:.3f}"
            f" | {low} to {high} | {again} | {ratio} |"
        )
