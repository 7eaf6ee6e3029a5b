"""Whatever produces programs for a problem: a baseline file, a library, a trained variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from suite.matrices.base import MatrixSpec
from suite.problem import DType, Op, Problem
from suite.program import Answer


class Kind(StrEnum):
    """What an author is; decides how its failures are read."""

    BASELINE = "baseline"  # hand-tuned, ships with the project: a failure is a defect
    LIBRARY = "library"  # vendor routine
    CHOOSER = "chooser"  # picks a baseline for a matrix without measuring
    FILE = "file"  # somebody's own program
    MODEL = "model"  # generated: a failure is a result

    @property
    def chooses(self) -> bool:
        """Whether it could have answered otherwise: then "not applicable" is its own failure."""
        return self in (Kind.CHOOSER, Kind.MODEL)


class Author(Protocol):
    """Something with a name that answers problems.

    An author whose answers do not follow from the suite's own sources may have a ``fingerprint``, a
    text that changes with them: then a campaign is not resumed with a changed author.
    """

    @property
    def name(self) -> str:
        """Unique in a campaign; letters, digits, ``_``, ``-`` and ``.``."""
        ...

    @property
    def kind(self) -> Kind:
        """What it is."""
        ...

    def answers(self, op: str) -> bool:
        """Whether the author writes programs for the operation at all (``spmv`` or ``spmm``)."""
        ...

    def write(self, problem: Problem, samples: int) -> Sequence[Answer]:
        """Writes up to ``samples`` programs for the problem; a deterministic author writes one."""
        ...


@dataclass(frozen=True)
class Coming:
    """What an author will be asked, before the matrix is built.

    Attributes:
        op: As in ``Problem``; so are ``columns`` and ``dtype``.
        matrix: How to build the matrix.
        columns: See ``op``.
        dtype: See ``op``.
        samples: As in ``Author.write``.
    """

    op: Op
    matrix: MatrixSpec
    columns: int
    dtype: DType
    samples: int


@runtime_checkable
class Foresees(Author, Protocol):
    """An author that gains time by knowing what comes next."""

    def foresee(self, coming: Sequence[Coming], alone: bool = True) -> None:
        """Told once what will be asked, in this order; may begin with it, and does not wait.

        Args:
            coming: What may be asked.
            alone: Whether all of it will be asked here, and not some by other processes.
        """
        ...
