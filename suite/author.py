"""Whatever produces programs for a problem: a baseline file, a library, a trained variant."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from suite.problem import Problem
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
