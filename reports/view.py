"""A campaign arranged for tables and drawings: who is shown, in which order, and their speedups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reports.figures import compared, ratio
from reports.intervals import Figure
from reports.source import Campaign
from suite.author import Kind
from suite.metrics import (
    BEST,
    CACHES,
    REFERENCES,
    Cache,
    Reference,
    geometric_mean,
    oracle,
    reference_times,
)
from suite.record import Row

MAIN = "cusparse_best"  # the reference of figures
SINGLES = 2  # single baselines that main tables and figures show for each operation
_ORDER = (Kind.MODEL, Kind.CHOOSER, Kind.FILE)


@dataclass(frozen=True)
class View:
    """A campaign by operation and author."""

    campaign: Campaign

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Every row."""
        return self.campaign.rows

    @cached_property
    def timed(self) -> bool:
        """Whether anything was timed on a GPU."""
        return any(row.hot_us is not None for row in self.rows)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The operations."""
        return tuple(dict.fromkeys(row.label for row in self.rows))

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.label, row.author), []).append(row)
        for label in self.labels:
            if best := oracle(self.everyone(label)):
                found[label, BEST] = best
        return found

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """What each author is; the oracle is a baseline."""
        kinds = {row.author: row.kind for row in self.rows}
        return {**kinds, BEST: Kind.BASELINE}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Authors that are models."""
        return tuple(name for name, kind in self.kinds.items() if kind is Kind.MODEL)

    def of(self, label: str, author: str) -> list[Row]:
        """An author's rows of one operation."""
        return self._rows.get((label, author), [])

    def everyone(self, label: str) -> list[Row]:
        """All rows of one operation."""
        return [row for row in self.rows if row.label == label]

    def authors(self, label: str) -> list[str]:
        """Everyone who was asked for the operation, the oracle included."""
        return [author for of, author in self._rows if of == label]

    def run(self, label: str, author: str) -> str:
        """The MLflow run of an author; empty where there is none."""
        return self.campaign.runs.get((label, author), "")

    @cached_property
    def _references(self) -> Mapping[tuple[str, str, Cache], Reference]:
        return {
            (label, author, cache): reference_times(self.of(label, author), author, cache)
            for label in self.labels
            for author in REFERENCES
            for cache in CACHES
        }

    def reference(self, label: str, author: str = MAIN, cache: Cache = "hot") -> Reference:
        """Times of a reference."""
        return self._references[label, author, cache]

    def compared(
        self, label: str, author: str, reference: str = MAIN, cache: Cache = "hot"
    ) -> list[tuple[Row, float]]:
        """An author's rows with their speedups; failures count as a tenth."""
        key = label, author, reference, cache
        if key not in self._compared:
            times = self.reference(label, reference, cache)
            self._compared[key] = compared(self.of(label, author), times, cache)
        return self._compared[key]

    @cached_property
    def _compared(self) -> dict[tuple[str, str, str, Cache], list[tuple[Row, float]]]:
        return {}

    def speedup(
        self, label: str, author: str, reference: str = MAIN, cache: Cache = "hot"
    ) -> Figure | None:
        """Geometric mean of an author's speedups."""
        found = self.compared(label, author, reference, cache)
        return ratio(found) if found else None

    def by_problem(
        self, label: str, author: str, reference: str = MAIN, cache: Cache = "hot"
    ) -> dict[str, float]:
        """An author's speedup on each matrix: over several answers their geometric mean."""
        found: dict[str, list[float]] = {}
        for row, value in self.compared(label, author, reference, cache):
            found.setdefault(row.matrix, []).append(value)
        return {matrix: geometric_mean(values) or 0.0 for matrix, values in found.items()}

    def paired(self, label: str, author: str, other: str) -> dict[str, float]:
        """One author's speedup over another's on each matrix of both, hot."""
        mine, theirs = self.by_problem(label, author), self.by_problem(label, other)
        return {matrix: mine[matrix] / theirs[matrix] for matrix in mine if matrix in theirs}

    def single(self, label: str) -> list[str]:
        """The best single baselines: of those that apply to most problems, the fastest first."""
        means: dict[str, tuple[int, float]] = {}
        for author in self.authors(label):
            if self.kinds[author] is Kind.BASELINE and author != BEST:
                values = [value for _, value in self.compared(label, author)]
                if values:
                    means[author] = len(values), geometric_mean(values) or 0.0
        most = max((n for n, _ in means.values()), default=0)
        able = [name for name, (n, _) in means.items() if n == most]
        return sorted(able, key=lambda name: -means[name][1])[:SINGLES]

    def contenders(self, label: str) -> list[str]:
        """Who is in main tables and figures, in their order."""
        names = [n for kind in _ORDER for n in self.authors(label) if self.kinds[n] is kind]
        singles = self.single(label)[: 1 if names else SINGLES]
        names += [BEST] if self.of(label, BEST) else []
        names += singles
        return [*names, *(name for name in reversed(REFERENCES) if self.of(label, name))]

    @cached_property
    def shown(self) -> list[str]:
        """Everyone who is a contender of some operation."""
        return list(dict.fromkeys(n for label in self.labels for n in self.contenders(label)))

    def foremost(self, label: str) -> list[str]:
        """The contenders of a figure that takes few: of the models only the first."""
        models = [name for name in self.contenders(label) if self.kinds[name] is Kind.MODEL]
        return [name for name in self.contenders(label) if name not in models[1:]]

    def lead(self, label: str) -> str:
        """Who a report is about: the first contender that is no library; empty where none is."""
        names = (n for n in self.contenders(label) if n not in REFERENCES)
        return next(names, "")

    @cached_property
    def matrices(self) -> Mapping[str, Row]:
        """A row of each matrix, of one that was built if any was."""
        found: dict[str, Row] = {}
        for row in self.rows:
            if row.matrix not in found or (row.nnz is not None and found[row.matrix].nnz is None):
                found[row.matrix] = row
        return found

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Families of matrices, in the campaign's order."""
        return tuple(dict.fromkeys(row.family for row in self.rows))
