"""Programs for regular structures are right where their storage has seams.

A matrix here puts rows, columns or entries on both sides of each border that such a program draws:
tiles of 128 rows, slices of 32, groups of four entries, columns 65,536 apart, blocks that fill the
matrix or reach past it.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix
from suite.problem import DType, Op, Problem
from tests.baselines.judging import diagonals, first_and_last, named, stem, tally

pytestmark = pytest.mark.slow

FILES = ("bell", "bsr", "dia", "ell", "packed", "sell", "sell16")
AUTHORS = [a for a in baselines() if stem(a) in FILES and a.answers(Op.SPMV)]
CASES = [(author, DType.FLOAT32) for author in AUTHORS]
CASES += [(last, DType.FLOAT64) for _, last in first_and_last(AUTHORS)]


def even(rows: int, cols: int, per_row: int, *, first: int = 0) -> sparse.csr_array:
    """Rows of equal length, all their columns from ``first`` on."""
    draw = np.random.default_rng(rows + cols + per_row)
    columns = [np.sort(draw.choice(cols - first, per_row, replace=False)) for _ in range(rows)]
    values = draw.uniform(0.5, 1.5, rows * per_row)
    ends = np.arange(rows + 1) * per_row
    return sparse.csr_array((values, np.concatenate(columns) + first, ends), (rows, cols))


def blocks(edge: int, block_rows: int, per_row: int, missing: int = 0) -> sparse.csr_array:
    """Dense blocks, as many in each block row; the last rows and columns may be missing."""
    pattern = even(block_rows, block_rows, per_row)
    pattern.data[:] = 1
    rows = edge * block_rows - missing
    whole = sparse.kron(pattern, np.arange(1.0, edge * edge + 1).reshape(edge, edge))
    return whole.tocsr()[:rows, :rows]


def far_apart(rows: int, cols: int) -> sparse.csr_array:
    """The rows take turns between the first columns and the last."""
    near, far = even(rows, 40, 5), even(rows, cols, 5, first=cols - 40)
    odd = sparse.diags_array(np.arange(rows) % 2 * 1.0)
    near = sparse.csr_array((near.data, near.indices, near.indptr), (rows, cols))
    return (near - odd @ near + odd @ far).tocsr()


MATRICES = {
    "one-diagonal-far-right": diagonals(300, 9000, 8800),
    "tile-and-one-row": diagonals(129, 128, -1, 0, 1),
    "whole-tiles": diagonals(512, 512, -130, -2, 0, 1, 2, 131),
    "seventeen-diagonals": diagonals(700, 700, *range(-8, 9)),
    "tall-band": diagonals(1500, 200, -1400, -3, 0, 5),
    "wide-band": diagonals(200, 1500, -150, 0, 1, 1299),
    "band-beyond-16-bits": diagonals(200, 70_000, 0, 3, 66_000),
    "one-entry-a-row": even(97, 50, 1),
    "three-entries-a-row": even(130, 70_000, 3),
    "seven-entries-a-row": even(33, 65_536, 7),
    "groups-of-four": even(64, 65_537, 24),
    "long-rows": even(5, 1000, 333),
    "columns-far-apart": far_apart(70, 140_000),
    **{f"blocks-of-{edge}": blocks(edge, 23, 5) for edge in (2, 3, 4, 8, 16)},
    **{f"blocks-of-{edge}-cut": blocks(edge, 11, 3, missing=1) for edge in (2, 3, 4, 8, 16)},
}


@pytest.fixture(scope="module")
def matrices() -> list[Matrix]:
    return named("seams", MATRICES)


def keeping_nothing(author: FileAuthor) -> FileAuthor:
    """The author, whose program keeps nothing of the matrix in the L2."""
    text = re.sub(r"(//! let KEEP) \d+", r"\1 0", author.texts[Op.SPMV])
    return replace(author, texts={Op.SPMV: text})


def test_every_file_has_an_author() -> None:
    assert {stem(author) for author in AUTHORS} == set(FILES)


@pytest.mark.parametrize(("author", "dtype"), CASES, ids=[f"{a.name}-{d.short}" for a, d in CASES])
def test_a_program_is_right_on_both_sides_of_its_seams(
    evaluator: Evaluator, matrices: list[Matrix], author: FileAuthor, dtype: DType
) -> None:
    program = author if dtype is DType.FLOAT32 else keeping_nothing(author)
    asked = [Problem(Op.SPMV, matrix, 1, dtype) for matrix in matrices]
    found = tally(evaluator, program, asked)
    assert found.wrong == []
    assert found.right >= 2
