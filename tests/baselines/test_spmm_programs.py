"""Matrices that sit on the edges of the SpMM programs: piece sizes, runs of diagonals, slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem

# One of each file: its other choices are the same text with other numbers.
AUTHORS = {a.name.partition("-")[0]: a for a in baselines() if a.answers(Op.SPMM)}
# Whole and partial slices of columns, vectors and single columns.
COLUMNS = [(5, DType.FLOAT32), (36, DType.FLOAT64)]


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    settings = Settings(precision=None, cache=tmp_path_factory.mktemp("cache"))
    with Evaluator("emulator", settings) as evaluator:
        yield evaluator


def rows_of(lengths: Sequence[int], cols: int) -> sparse.csr_array:
    """Rows of these lengths, their columns drawn at random."""
    rng = np.random.default_rng(len(lengths))
    columns = [np.sort(rng.choice(cols, length, replace=False)) for length in lengths]
    pointers = np.concatenate(([0], np.cumsum(lengths)))
    indices = np.concatenate(columns)
    return sparse.csr_array(
        (rng.uniform(1, 2, indices.size), indices, pointers), shape=(len(lengths), cols)
    )


def diagonals(rows: int, cols: int, offsets: Sequence[int]) -> sparse.csr_array:
    """Full diagonals of a matrix of any shape."""
    column = np.arange(rows)[:, None] + np.array(offsets)
    inside = (column >= 0) & (column < cols)
    pointers = np.concatenate(([0], np.cumsum(inside.sum(axis=1))))
    values = np.random.default_rng(1).uniform(1, 2, pointers[-1])
    return sparse.csr_array((values, column[inside], pointers), shape=(rows, cols))


AROUND = [edge + step for edge in (8, 32, 64, 128) for step in (-1, 0, 1)]
EDGES = {
    "rows-around-every-edge": rows_of([*AROUND, 0, 0, *[1] * 70], 150),
    "parts-of-long-rows": rows_of([0, 513, 0, 0, 3, 256, 1, 900, 0], 900),
    "long-row-among-empty": rows_of([*[0] * 150, 300, *[0] * 150], 300),
    "runs-of-diagonals": diagonals(90, 90, [-40, -9, -8, -7, -6, -5, -1, 0, 1, 2, 30, 31]),
    "diagonals-tall": diagonals(61, 37, [-30, -29, -4, -3, -2, -1, 0, 1, 2, 3, 4, 20]),
    "diagonals-wide": diagonals(37, 61, [-36, -20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 24, 60]),
    "block-rows-past-the-end": sparse.csr_array(np.tri(21, 26)),
}


@pytest.mark.parametrize("author", AUTHORS.values(), ids=lambda a: a.name)
def test_a_program_is_right_at_the_edges_of_its_pieces(
    evaluator: Evaluator, author: FileAuthor
) -> None:
    matrices = [Matrix(n, "edges", canonical(m, n)) for n, m in EDGES.items()]
    asked = [Problem(Op.SPMM, m, n, dtype) for m in matrices for n, dtype in COLUMNS]
    verdicts = [evaluator.evaluate(p, author.write(p, 1)[0]) for p in asked]
    wrong = [
        f"{problem.key}: {verdict.status}: {verdict.error}"
        for problem, verdict in zip(asked, verdicts, strict=True)
        if verdict.status not in (Status.OK, Status.NOT_APPLICABLE)
    ]
    assert wrong == []
