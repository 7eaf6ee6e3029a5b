"""What the tests of baselines share: matrices by their structure, and verdicts in short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from suite.baselines.files import FileAuthor
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix, canonical
from suite.problem import Problem


def stem(author: FileAuthor) -> str:
    """The file that the author comes from."""
    return author.name.partition("-")[0]


def first_and_last(authors: Iterable[FileAuthor]) -> Iterator[tuple[FileAuthor, FileAuthor]]:
    """Of each file; between them they have every value of a choice between two."""
    files: dict[str, list[FileAuthor]] = {}
    for author in authors:
        files.setdefault(stem(author), []).append(author)
    return ((of_file[0], of_file[-1]) for of_file in files.values())


@dataclass(frozen=True)
class Tally:
    """How a program did: how often it was right, and a line for each time that it was wrong."""

    right: int
    wrong: list[str]


def tally(evaluator: Evaluator, author: FileAuthor, problems: Iterable[Problem]) -> Tally:
    """Runs the author's programs; where one does not apply, it is neither right nor wrong."""
    right, wrong = 0, []
    for problem in problems:
        verdict = evaluator.evaluate(problem, author.write(problem, 1)[0])
        right += verdict.status is Status.OK
        if verdict.status not in (Status.OK, Status.NOT_APPLICABLE):
            wrong.append(f"{problem.key}: {verdict.status}: {verdict.error}")
    return Tally(right, wrong)


def named(family: str, arrays: dict[str, sparse.csr_array]) -> list[Matrix]:
    """Arrays as matrices."""
    return [Matrix(name, family, canonical(a, name)) for name, a in arrays.items()]


def of_lengths(lengths: Sequence[int], cols: int) -> sparse.csr_array:
    """Rows of these lengths, their columns drawn without repetition."""
    draw = np.random.default_rng(cols)
    ends = np.cumsum([0, *lengths])
    columns = [np.sort(draw.choice(cols, length, replace=False)) for length in lengths]
    values = draw.uniform(0.5, 1.5, ends[-1])
    return sparse.csr_array((values, np.concatenate(columns), ends), (len(lengths), cols))


def around(powers: range) -> list[int]:
    """One less, equal, and one more of each power of two."""
    return [(1 << power) + change for power in powers for change in (-1, 0, 1)]


def diagonals(rows: int, cols: int, *offsets: int) -> sparse.csr_array:
    """Full diagonals, no two values of a row alike."""
    values = [1.5 + at for at in range(len(offsets))]
    return sparse.diags_array(values, offsets=offsets, shape=(rows, cols)).tocsr()


def full_row(rows: int, cols: int) -> sparse.csr_array:
    """A full row in the middle of empty ones."""
    return of_lengths([0] * (rows // 2) + [cols] + [0] * (rows - rows // 2 - 1), cols)
