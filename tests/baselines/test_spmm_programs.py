"""Matrices that sit on the edges of the SpMM programs: piece sizes, runs of diagonals, slices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.harness.evaluate import Evaluator
from suite.problem import DType, Op, Problem
from tests.baselines.judging import diagonals, first_and_last, named, of_lengths, tally

pytestmark = pytest.mark.slow

ENDS = list(first_and_last(author for author in baselines() if author.answers(Op.SPMM)))
# Dense columns one by one in one precision, in vectors of four in the other.
CASES = [(last, 5, DType.FLOAT32) for _, last in ENDS]
CASES += [(first, 36, DType.FLOAT64) for first, _ in ENDS]

AROUND = [edge + step for edge in (8, 32, 64, 128) for step in (-1, 0, 1)]
EDGES = {
    "rows-around-every-edge": of_lengths([*AROUND, 0, 0, *[1] * 70], 150),
    "parts-of-long-rows": of_lengths([0, 513, 0, 0, 3, 256, 1, 900, 0], 900),
    "long-row-among-empty": of_lengths([*[0] * 150, 300, *[0] * 150], 300),
    "runs-of-diagonals": diagonals(90, 90, -40, -9, -8, -7, -6, -5, -1, 0, 1, 2, 30, 31),
    "diagonals-tall": diagonals(61, 37, -30, -29, -4, -3, -2, -1, 0, 1, 2, 3, 4, 20),
    "diagonals-wide": diagonals(37, 61, -36, -20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 24, 60),
    "block-rows-past-the-end": sparse.csr_array(np.tri(21, 26)),
}


@pytest.mark.parametrize(
    ("author", "columns", "dtype"), CASES, ids=[f"{a.name}-n{n}-{d.short}" for a, n, d in CASES]
)
def test_a_program_is_right_at_the_edges_of_its_pieces(
    evaluator: Evaluator, author: FileAuthor, columns: int, dtype: DType
) -> None:
    asked = [Problem(Op.SPMM, matrix, columns, dtype) for matrix in named("edges", EDGES)]
    found = tally(evaluator, author, asked)
    assert found.wrong == []
    whole_vectors = "//! require n % 4 == 0" in author.texts[Op.SPMM]
    assert found.right >= 1 or (whole_vectors and columns % 4)
