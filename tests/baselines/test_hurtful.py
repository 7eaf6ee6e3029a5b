"""Every hand-tuned program is right on shapes made to hurt, or says that it does not apply.

Borders that only one program draws are in the tests of the program's kind.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix
from suite.problem import DType, Op, Problem
from tests.baselines.judging import around, first_and_last, full_row, named, of_lengths, tally

SHAPES = {
    "no-rows": sparse.csr_array((0, 709)),
    "no-columns": sparse.csr_array((70, 0)),
    "no-entries": sparse.csr_array((70, 131)),
    "one-element": sparse.csr_array([[2.5]]),
    "one-row": sparse.csr_array(np.arange(1.0, 300.0)[None, :]),
    "one-column": sparse.csr_array(np.arange(1.0, 300.0)[:, None]),
    "one-full-row-among-empty": full_row(97, 613),
    "one-entry-in-the-last-row": of_lengths([0] * 517 + [1], 37),
    "explicit-zeros": sparse.csr_array(
        (np.zeros(64), np.arange(64) % 8, np.arange(0, 65, 8)), shape=(8, 8)
    ),
    "odd-edges": sparse.random_array((67, 131), density=0.2, rng=np.random.default_rng(1)).tocsr(),
    "every-length-up-to-70": sparse.csr_array(np.tri(70, 70) + np.eye(70)),
    "lengths-around-borders": of_lengths([0, *around(range(11)), *[0] * 3, *[1] * 40], 1100),
}
# Dense columns are taken in vectors of four, one whole slice and a part of one, or singly.
COLUMNS = (36, 3)
FEW = ("one-row", "odd-edges", "every-length-up-to-70")
DOUBLE = (*FEW, "no-entries", "explicit-zeros")
LEAST = {DType.FLOAT32: 3, DType.FLOAT64: 1}  # shapes that every program applies to
AUTHORS = baselines()
# In double precision, and where time is short, one program of each file: its other choices differ
# in numbers only. What double precision changes is the bytes of a row, so a few shapes show it, and
# where time is short every third program.
FIRST = [first for first, _ in first_and_last(AUTHORS)]
CASES = [(a, DType.FLOAT32) for a in FIRST] + [(a, DType.FLOAT64) for a in FIRST[::3]]
OTHERS = [(a, DType.FLOAT32) for a in AUTHORS if a not in FIRST]
OTHERS += [(a, DType.FLOAT64) for a in FIRST if (a, DType.FLOAT64) not in CASES]


@pytest.fixture(scope="module")
def shapes() -> list[Matrix]:
    return named("hurtful", SHAPES)


def problems(author: FileAuthor, matrices: list[Matrix], dtype: DType) -> list[Problem]:
    few = [matrix for matrix in matrices if matrix.name in FEW]
    everywhere, sometimes = COLUMNS
    asked = []
    if author.answers(Op.SPMV):
        asked += [(Op.SPMV, matrix, 1) for matrix in matrices]
    if author.answers(Op.SPMM):
        asked += [(Op.SPMM, matrix, everywhere) for matrix in matrices]
        asked += [(Op.SPMM, matrix, sometimes) for matrix in few]
    if dtype is DType.FLOAT64:
        asked = [one for one in asked if one[1].name in DOUBLE]
    return [Problem(*one, dtype) for one in asked]


@pytest.mark.parametrize(
    ("author", "dtype"),
    [*CASES, *(pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS)],
    ids=[f"{a.name}-{d.short}" for a, d in [*CASES, *OTHERS]],
)
def test_a_baseline_is_right_on_shapes_made_to_hurt(
    evaluator: Evaluator, shapes: list[Matrix], author: FileAuthor, dtype: DType
) -> None:
    found = tally(evaluator, author, problems(author, shapes, dtype))
    assert found.wrong == []
    assert found.right >= LEAST[dtype]
