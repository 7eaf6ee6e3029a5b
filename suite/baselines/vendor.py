"""The vendor's library as an author: one answer to every problem, measured like any program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suite.author import Author, Kind
from suite.problem import Problem
from suite.program import Answer, LibraryCall


@dataclass(frozen=True)
class LibraryAuthor:
    """A routine of ``suite.harness.cuda.cusparse``.

    Attributes:
        name: ``cusparse`` (the default algorithm) or ``cusparse_best`` (the fastest there is).
    """

    name: str
    kind: Kind = Kind.LIBRARY

    def answers(self, op: str) -> bool:
        """Both operations."""
        return op in ("spmv", "spmm")

    def write(self, problem: Problem, samples: int) -> Sequence[Answer]:
        """The one call."""
        return [LibraryCall(self.name)]


def authors() -> list[Author]:
    """Every library routine."""
    return [LibraryAuthor("cusparse"), LibraryAuthor("cusparse_best")]
