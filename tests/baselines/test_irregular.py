"""Programs for irregular structures are right where their storage has seams.

A matrix here puts rows, columns or entries on both sides of each border that such a program draws:
tiles of columns, blocks of 16,384 rows, chunks of entries, classes of row lengths.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix
from suite.problem import DType, Op, Problem
from tests.baselines.judging import around, first_and_last, named, of_lengths, stem, tally

pytestmark = pytest.mark.slow

FILES = ("coltile", "csr_adaptive", "csr_packed", "csr_xshared", "merge", "nnzsplit", "rowbins")
ENDS = list(first_and_last(a for a in baselines() if stem(a) in FILES and a.answers(Op.SPMV)))
CASES = [(first, DType.FLOAT32) for first, _ in ENDS]
CASES += [(last, DType.FLOAT64) for _, last in ENDS]


def scattered(rows: int, cols: int, entries: int) -> sparse.csr_array:
    """About so many entries anywhere."""
    draw = np.random.default_rng(rows + cols)
    places = (draw.integers(0, rows, entries), draw.integers(0, cols, entries))
    return sparse.coo_array((draw.uniform(0.5, 1.5, entries), places), (rows, cols)).tocsr()


def arrow(n: int) -> sparse.csr_array:
    """A diagonal, two full rows and two full columns."""
    a = sparse.lil_array((n, n))
    a.setdiag(1.0)
    a[:2, :] = 1.5
    a[:, :2] = 2.5
    return a.tocsr()


MATRICES = {
    "several-tiles": scattered(50, 80_000, 3_000),
    "many-tiles-some-empty": scattered(20, 900_000, 60),
    "several-row-blocks": scattered(70_000, 60, 12_000),
    "tiles-and-row-blocks": scattered(20_000, 40_000, 20_000),
    "a-long-row-among-short": of_lengths([0] * 5 + [41_000] + [1] * 7, 45_000),
    "long-rows-side-by-side": of_lengths([2500] * 6 + [0] + [2049] * 3, 3000),
    "arrow": arrow(3000),
    "lengths-around-borders": of_lengths([0, *around(range(9, 12))], 5001),
    "short-lengths": of_lengths([*range(16), *reversed(range(16))] * 9, 1031),
    "at-most-one-a-row": of_lengths([0, 1, 0, 0, 1, 1, 0] * 300, 2000),
    "last-rows-empty": of_lengths([3] * 100 + [0] * 3000, 50),
    "first-rows-empty": of_lengths([0] * 3000 + [3] * 100, 50),
    "entries-a-multiple-of-chunks": of_lengths([16] * 1024, 700),
    "one-entry-past-a-chunk": of_lengths([16] * 512 + [1], 700),
}


@pytest.fixture(scope="module")
def matrices() -> list[Matrix]:
    return named("seams", MATRICES)


def test_every_file_has_an_author() -> None:
    assert {stem(author) for author, _ in CASES} == set(FILES)


@pytest.mark.parametrize(("author", "dtype"), CASES, ids=[f"{a.name}-{d.short}" for a, d in CASES])
def test_a_program_is_right_on_both_sides_of_its_seams(
    evaluator: Evaluator, matrices: list[Matrix], author: FileAuthor, dtype: DType
) -> None:
    found = tally(evaluator, author, [Problem(Op.SPMV, m, 1, dtype) for m in matrices])
    assert found.wrong == []
    assert found.right >= 5
