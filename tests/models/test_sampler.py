"""What a model is shown of a matrix: whole pieces of rows, the whole extent, the same each time."""

import time

import numpy as np
import pytest
from scipy import sparse

from suite.matrices.base import canonical
from suite.matrices.sets import select
from suite.models.sampler import QUANTILES, SHOWN, Shown, sample, scale


def matrix(name: str) -> sparse.csr_array:
    return select(name)[0].build().csr


def of(array: np.ndarray) -> sparse.csr_array:
    return canonical(sparse.csr_array(array), "test")


def pairs(shown: Shown) -> list[tuple[int, int]]:
    return list(zip(shown.rows.tolist(), shown.cols.tolist(), strict=True))


def whole_rows(csr: sparse.csr_array, shown: Shown) -> np.ndarray:
    rows, counts = np.unique(shown.rows, return_counts=True)
    return np.asarray(rows[counts == np.diff(csr.indptr)[rows]])


SMOKE = [spec.name for spec in select("smoke")]


@pytest.mark.parametrize("name", SMOKE)
def test_only_entries_are_shown_each_once_in_order_and_alike_each_time(name: str) -> None:
    csr = matrix(name)
    shown = sample(csr)
    assert len(shown) == min(SHOWN, csr.nnz)
    found = pairs(shown)
    assert found == sorted(set(found))
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    assert set(found) <= set(zip(rows.tolist(), csr.indices.tolist(), strict=True))
    assert pairs(sample(matrix(name))) == found


@pytest.mark.parametrize("shape", [(0, 0), (0, 7), (3, 4)])
def test_nothing_is_shown_of_a_matrix_without_entries(shape: tuple[int, int]) -> None:
    csr = canonical(sparse.csr_array(shape), "empty")
    assert len(sample(csr)) == 0
    size = scale(csr)
    assert size.sizes == {
        "rows": shape[0],
        "cols": shape[1],
        "nnz": 0,
        "longest": 0,
        "filled": 0,
        "reach": 0,
    }
    assert size.lengths == (0,) * len(QUANTILES)


def test_a_small_matrix_is_shown_whole() -> None:
    csr = of(np.eye(9))
    assert pairs(sample(csr)) == [(i, i) for i in range(9)]


def test_one_long_row_is_shown_from_end_to_end() -> None:
    shown = sample(of(np.ones((1, 5000))))
    assert len(shown) == SHOWN
    assert shown.cols.min() < 100
    assert shown.cols.max() > 4900
    assert (np.diff(shown.cols) == 1).sum() >= 7  # and one piece of neighbours


def test_short_rows_are_shown_whole_and_next_to_each_other() -> None:
    csr = matrix("stencil-5pt-48")
    rows = whole_rows(csr, sample(csr))
    neighbours = np.diff(rows) == 1
    assert rows.size >= 24
    assert neighbours.sum() >= 18


def test_blocks_show_as_equal_columns_in_neighbouring_rows() -> None:
    csr = matrix("block-4-1k")
    columns: dict[int, set[int]] = {}
    for row, col in pairs(sample(csr)):
        columns.setdefault(row, set()).add(col)
    alike = [row for row in columns if len(columns[row] & columns.get(row + 1, set())) >= 4]
    assert len(alike) >= 6


@pytest.mark.parametrize("name", SMOKE)
def test_the_whole_extent_is_shown(name: str) -> None:
    csr = matrix(name)
    shown = sample(csr)
    present = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    for quantile in (0.1, 0.5, 0.9):
        near = np.abs(np.quantile(shown.rows, quantile) - np.quantile(present, quantile))
        assert near < 0.15 * csr.shape[0]


def test_a_regular_structure_is_not_met_in_step() -> None:
    csr = matrix("stencil-5pt-48")  # every 5th entry of the inner rows is on the same diagonal
    spread = sample(csr, 64)
    assert len(set((spread.cols - spread.rows).tolist())) == 5


def test_the_work_grows_with_what_is_shown_and_not_with_the_entries() -> None:
    rows, each = 1000, 20_000
    indptr = np.arange(0, (rows + 1) * each, each, dtype=np.int32)
    indices = np.tile(np.arange(each, dtype=np.int32), rows)
    csr = sparse.csr_array((np.ones(1), np.zeros(1, np.int32), [0, 1]), shape=(1, 1))
    csr.indptr, csr.indices, csr._shape = indptr, indices, (rows, each)
    csr.data = np.broadcast_to(np.float64(1), rows * each)  # 20 M entries that take no memory
    started = time.process_time()
    assert len(sample(csr)) == SHOWN
    assert time.process_time() - started < 0.05


def test_sizes_are_what_programs_know_and_lengths_are_quantiles() -> None:
    dense = np.zeros((10, 30))
    for row in range(10):
        dense[row, : row + 1] = 1
    dense[9, 29] = 1
    size = scale(of(dense))
    assert size.sizes == {
        "rows": 10,
        "cols": 30,
        "nnz": 56,
        "longest": 11,
        "filled": 10,
        "reach": 20,
    }
    assert QUANTILES == (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    assert size.lengths == (1, 2, 3, 6, 8, 9, 11, 11)


def test_fewer_can_be_shown() -> None:
    csr = matrix("uniform-12-2k")
    for count in (1, 7, 64):
        assert len(sample(csr, count)) == count
