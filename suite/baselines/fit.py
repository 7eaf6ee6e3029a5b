"""Fits ``heuristic``: ``python -m suite.baselines.fit SOURCE ... [--out heuristic.json]``.

A source is the folder of a campaign of all baselines on training matrices, or a ``.parquet`` that
``--export`` made of such. The time of a baseline is modelled as prices times counted terms, prices
not negative. Programs of one file have much in common, so each is drawn towards what all of them
together say. Leaving out groups of matrices in turn tells how far from the oracle the picks are on
matrices that the fit has not seen.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from suite.author import Kind
from suite.baselines.cost import terms
from suite.baselines.heuristic import RULE, Prices, Rule, problem_name, write
from suite.evaluation import Status
from suite.journal import read
from suite.matrices.sets import select
from suite.matrices.structure import Structure
from suite.problem import DType, Op

MISSING = math.log(10)  # an author that does not apply, or fails: as the suite counts a failure
FOLDS = 5
ASSIGNMENTS = 10  # of matrices to folds, at random
NEAR = 0.05  # a baseline has a price if it was so near the best, as a logarithm, at least once
TO_NOTHING = 0.6  # how strongly the prices of a file are drawn to 0
TO_FILE = 1.0  # and those of a program to the prices of its file
ROUNDS = 3  # of reweighting


@dataclass(frozen=True)
class Measured:
    """What the fit takes from a row."""

    matrix: str
    family: str
    label: str
    dtype: DType
    author: str
    status: Status
    hot_us: float | None
    cold_us: float | None

    @property
    def problem(self) -> str:
        """See ``problem_name``."""
        return problem_name(self.label, self.dtype)


@dataclass(frozen=True)
class Table:
    """What prices are fitted on; letters: P problems, A authors, T terms of one author.

    Attributes:
        authors: A names.
        counts: Terms by author: their names, and their values, P × T.
        times: Microseconds, P × A; not a number where there is no time.
        applies: Whether the author applies, P × A; it may fail, or be slow, all the same.
    """

    authors: tuple[str, ...]
    counts: Mapping[str, tuple[tuple[str, ...], np.ndarray]]
    times: np.ndarray
    applies: np.ndarray

    @property
    def regret(self) -> np.ndarray:
        """log(time / best time), P × A; ``MISSING`` where there is no time."""
        logs = np.log(self.times)
        regret: np.ndarray = logs - np.nanmin(logs, axis=1, keepdims=True)
        return np.where(np.isnan(regret), MISSING, regret)

    def rows(self, chosen: np.ndarray) -> Table:
        """The same for some of the problems."""
        counts = {name: (known, values[chosen]) for name, (known, values) in self.counts.items()}
        return Table(self.authors, counts, self.times[chosen], self.applies[chosen])


def measured(source: Path) -> list[Measured]:
    """The baselines' rows of a campaign's folder, or of an exported file; unanswered ones left out.

    Args:
        source: A folder, or a file with the fields of ``Measured`` as columns.
    """
    if source.is_file():
        frame = pd.read_parquet(source).astype(object)
        plain = frame.where(frame.notna(), None).to_dict("records")
        return [
            Measured(
                row["matrix"],
                row["family"],
                row["label"],
                DType(row["dtype"]),
                row["author"],
                Status(row["status"]),
                row["hot_us"],
                row["cold_us"],
            )
            for row in plain
        ]
    return [
        Measured(
            row.matrix,
            row.family,
            row.label,
            row.dtype,
            row.author,
            row.status,
            row.hot_us,
            row.cold_us,
        )
        for row in read(source.absolute()).rows
        if row.kind is Kind.BASELINE and not row.unanswered
    ]


def table(rows: Sequence[Measured], known: Mapping[str, Structure]) -> Table:
    """The table of the rows of one problem; a matrix counts once every author has a verdict there.

    Args:
        rows: With the same label and precision.
        known: Structures by matrix.

    Raises:
        ValueError: Nothing was timed on a GPU.
    """
    authors = tuple(sorted({row.author for row in rows}))
    answers = {(row.matrix, row.author): row for row in rows}
    timed = {row.matrix for row in rows if row.hot_us}
    matrices = sorted(m for m in timed if all((m, author) in answers for author in authors))
    if not matrices:
        raise ValueError("no baseline has a time; give a campaign that ran on a GPU")
    grid = [[answers[matrix, author] for author in authors] for matrix in matrices]
    op, columns = _operation(rows[0].label)
    itemsize = rows[0].dtype.numpy.itemsize
    counts = {}
    for author in authors:
        made = [terms(author, op, columns, itemsize, known[matrix]) for matrix in matrices]
        names = tuple(made[0])
        counts[author] = names, np.array([[one[name] for name in names] for one in made])
    return Table(
        authors,
        counts,
        np.array([[row.hot_us or math.nan for row in line] for line in grid]),
        np.array([[row.status is not Status.NOT_APPLICABLE for row in line] for line in grid]),
    )


def fit(data: Table) -> Prices:
    """Prices of every baseline that was near the best at least once.

    Args:
        data: At least one problem.
    """
    near = (data.regret <= NEAR).any(axis=0)
    of_file = {
        stem: _priced([data.counts[a] for a in same], [_times(data, a) for a in same], {})
        for stem, same in _files(data.authors).items()
    }
    return {
        author: _rounded(
            _priced([data.counts[author]], [_times(data, author)], of_file[_stem(author)])
        )
        for author in np.array(data.authors)[near].tolist()
    }


def loss(prices: Prices, data: Table) -> np.ndarray:
    """log(time / best time) of what the prices pick on each problem, P.

    As the author does, a pick passes over what does not apply, and over nothing else.
    """
    predicted = np.full(data.times.shape, np.inf)
    for author, own in prices.items():
        names, values = data.counts[author]
        at = data.authors.index(author)
        predicted[:, at] = values @ np.array([own.get(name, 0.0) for name in names])
    predicted[~data.applies] = np.inf
    picked = predicted.argmin(axis=1)
    lost = np.take_along_axis(data.regret, picked[:, None], axis=1)[:, 0]
    return np.where(np.isfinite(predicted.min(axis=1)), lost, MISSING)


def cross_validated(data: Table, seed: int = 0) -> np.ndarray:
    """Loss on each problem when it was left out of the fit, P.

    Args:
        data: The problems.
        seed: Of the assignment to folds.

    Raises:
        ValueError: Too few problems to leave some out.
    """
    if len(data.times) < FOLDS:
        raise ValueError(f"{len(data.times)} matrices with times; a fit takes {FOLDS} at least")
    fold = np.random.default_rng(seed).permutation(len(data.times)) % FOLDS
    losses = np.zeros(len(data.times))
    for f in range(FOLDS):
        left_out = fold == f
        prices = fit(data.rows(np.flatnonzero(~left_out)))
        losses[left_out] = loss(prices, data.rows(np.flatnonzero(left_out)))
    return losses


def _priced(
    counts: Sequence[tuple[tuple[str, ...], np.ndarray]],
    times: Sequence[np.ndarray],
    prior: Mapping[str, float],
) -> dict[str, float]:
    """Prices that explain the times of some programs together.

    Least squares of predicted over measured time minus one, reweighted so that the sum is about
    that of squared logarithms: a prediction of a tenth is as bad as one of ten times.
    """
    names = tuple(dict.fromkeys(name for own, _ in counts for name in own))
    blocks = []
    for (own, values), time in zip(counts, times, strict=True):
        block = np.zeros((len(time), len(names)))
        block[:, [names.index(name) for name in own]] = values
        there = ~np.isnan(time)
        blocks.append(block[there] / time[there, None])
    relative = np.concatenate(blocks)
    towards = np.array([prior.get(name, 0.0) for name in names])
    if not len(relative):
        return dict(zip(names, towards.tolist(), strict=True))
    strength = TO_FILE if prior else TO_NOTHING
    scale = np.maximum(np.sqrt((relative**2).mean(axis=0)), 1e-9)
    pull = math.sqrt(strength) * np.eye(len(names))
    weight = np.ones(len(relative))
    for _ in range(ROUNDS):
        system = np.vstack([relative / scale * weight[:, None], pull])
        target = np.concatenate([weight, math.sqrt(strength) * towards * scale])
        prices = nnls(system, target, maxiter=100 * len(names))[0] / scale
        ratio = np.maximum(relative @ prices, 1e-9)
        off = np.where(np.abs(ratio - 1) > 1e-3, ratio - 1, 1.0)
        weight = np.where(np.abs(ratio - 1) > 1e-3, np.clip(np.log(ratio) / off, 0.2, 3.0), 1.0)
    return dict(zip(names, prices.tolist(), strict=True))


def _times(data: Table, author: str) -> np.ndarray:
    return np.asarray(data.times[:, data.authors.index(author)])


def _files(authors: Iterable[str]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for author in authors:
        files.setdefault(_stem(author), []).append(author)
    return files


def _stem(author: str) -> str:
    return author.partition("-")[0]


def _rounded(prices: Mapping[str, float]) -> dict[str, float]:
    """Four digits, and no terms that cost nothing."""
    return {name: float(f"{price:.4g}") for name, price in prices.items() if price > 1e-9}


def _operation(label: str) -> tuple[Op, int]:
    op = Op.SPMV if label == Op.SPMV else Op.SPMM
    return op, int(label.removeprefix(op) or 1)


def export(rows: Sequence[Measured], path: Path) -> None:
    """Writes rows so that ``measured`` reads them back."""
    frame = pd.DataFrame([asdict(row) for row in rows])
    frame["dtype"], frame["status"] = frame["dtype"].astype(str), frame["status"].astype(str)
    frame.astype({"hot_us": "float32", "cold_us": "float32"}).to_parquet(path, index=False)


def main() -> None:
    """Reads rows, fits prices for each problem, writes the rule and says how good it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "source", nargs="+", type=Path, help="folder of a campaign, or an exported .parquet"
    )
    parser.add_argument("--matrices", default="tuning", help="what the campaign measured")
    parser.add_argument("--out", type=Path, default=RULE)
    parser.add_argument("--export", type=Path, help="also write the rows to this .parquet")
    options = parser.parse_args()
    rows = [row for source in options.source for row in measured(source)]
    names = dict.fromkeys(row.matrix for row in rows if row.hot_us)
    specs = [spec for spec in select(options.matrices) if spec.name in names]
    if unknown := names.keys() - {spec.name for spec in specs}:
        parser.error(f"{min(unknown)} is not among --matrices {options.matrices}; name its set")
    known = {spec.name: Structure(spec.build().csr) for spec in specs}
    prices, report = {}, {}
    for problem in dict.fromkeys(row.problem for row in rows):
        try:
            data = table([row for row in rows if row.problem == problem], known)
            means = [cross_validated(data, seed).mean() for seed in range(ASSIGNMENTS)]
        except ValueError as error:
            parser.error(f"{problem}: {error}")
        prices[problem] = fit(data)
        report[problem] = {
            "matrices": len(data.times),
            "priced": len(prices[problem]),
            "slower_than_oracle_left_out": round(math.expm1(np.mean(means)), 4),
            "spread": round(float(np.std(means)), 4),
            "slower_than_oracle_fitted": round(
                math.expm1(float(loss(prices[problem], data).mean())), 4
            ),
        }
    if options.export:
        export(rows, options.export)
    sources = ", ".join(source.name for source in options.source)
    write(Rule(prices, f"{sources}, {len(names)} training matrices"), options.out)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
