"""Generated matrices have the structure that their parameters promise, the same every time."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from suite.matrices import sampling, synthetic
from suite.matrices.base import canonical

EVERY = [
    (synthetic.diagonals, {"rows": 40, "offsets": (-9, 0, 3)}),
    (synthetic.band, {"rows": 40, "half_width": 3}),
    (synthetic.scattered_band, {"rows": 60, "half_width": 8, "per_row": 5}),
    (synthetic.shuffled_stencil, {"shape": (5, 6)}),
    (synthetic.uniform, {"rows": 50, "per_row": 7}),
    (synthetic.uniform, {"rows": 50, "cols": 9, "per_row": 9}),
    (synthetic.power_law, {"rows": 80, "nnz": 600}),
    (synthetic.rmat, {"scale": 6, "edges": 400}),
    (synthetic.small_world, {"rows": 50, "neighbours": 6, "rewired": 0.3}),
    (synthetic.blocks, {"block_rows": 12, "edge": 3, "per_row": 2}),
    (synthetic.blocks, {"block_rows": 12, "edge": 3, "per_row": 2, "reach": 2}),
    (synthetic.arrow, {"rows": 30, "width": 2}),
    (synthetic.dense_rows, {"rows": 60, "per_row": 3, "dense": 2, "share": 0.5}),
    (synthetic.mostly_empty, {"rows": 200, "filled": 0.1}),
]


def lengths(matrix: sparse.csr_array) -> np.ndarray:
    return np.diff(matrix.indptr)


@pytest.mark.parametrize(("make", "arguments"), EVERY)
def test_rows_are_sorted_without_duplicates_or_zeros(make, arguments):
    matrix = make(**arguments)
    matrix.check_format(full_check=True)
    plain = canonical(matrix, "m")
    np.testing.assert_array_equal(plain.indices, matrix.indices)
    np.testing.assert_array_equal(plain.data, matrix.data)
    assert matrix.nnz
    assert (matrix.data != 0).all()
    assert matrix.data.dtype == np.float32


@pytest.mark.parametrize(("make", "arguments"), EVERY)
def test_seed_decides_everything(make, arguments):
    one, same, other = (make(**arguments, seed=seed) for seed in (5, 5, 6))
    assert (one != same).nnz == 0
    assert (one != other).nnz > 0


def test_diagonals_lie_where_they_should():
    coo = synthetic.diagonals(30, (-7, 0, 2), cols=25).tocoo()
    assert set((coo.col - coo.row).tolist()) == {-7, 0, 2}
    assert coo.nnz == (30 - 7) - 0 + 25 + 23
    assert coo.shape == (30, 25)


def test_band_is_every_diagonal_up_to_its_half_width():
    dense = synthetic.band(20, 2).toarray() != 0
    expected = abs(np.subtract.outer(np.arange(20), np.arange(20))) <= 2
    np.testing.assert_array_equal(dense, expected)


def test_scattered_band_keeps_near_the_diagonal_and_its_row_length():
    coo = synthetic.scattered_band(500, half_width=20, per_row=6).tocoo()
    assert abs(coo.col - coo.row)[(coo.row > 20) & (coo.row < 480)].max() <= 20
    assert abs(coo.col - coo.row).max() <= 40
    np.testing.assert_array_equal(np.bincount(coo.row), 6)


def brute_stencil(shape, reach):
    points = list(np.ndindex(*shape))
    out = np.zeros((len(points), len(points)))
    for (a, p), (b, q) in itertools.product(enumerate(points), repeat=2):
        steps = np.abs(np.subtract(p, q))
        near = steps.max() <= 1 if reach == "box" else steps.sum() <= 1
        if near:
            count = 3 ** len(shape) if reach == "box" else 2 * len(shape) + 1
            out[a, b] = count - 1 if a == b else -1
    return out


@pytest.mark.parametrize("shape", [(7,), (3, 4), (4, 3), (2, 3, 4), (1, 5), (3, 1, 2)])
@pytest.mark.parametrize("reach", ["star", "box"])
def test_stencil_couples_the_neighbours_on_the_grid(shape, reach):
    dense = synthetic.stencil(shape, reach).toarray()
    np.testing.assert_array_equal(dense, brute_stencil(shape, reach))


@pytest.mark.parametrize(
    ("shape", "reach", "points"),
    [((6, 6), "star", 5), ((6, 6), "box", 9), ((5, 5, 5), "star", 7), ((4, 4, 4), "box", 27)],
)
def test_inner_rows_of_a_stencil_have_its_points_and_sum_to_zero(shape, reach, points):
    matrix = synthetic.stencil(shape, reach)
    assert lengths(matrix).max() == points
    np.testing.assert_array_equal(matrix.sum(axis=1)[lengths(matrix) == points], 0)
    assert (matrix != matrix.T).nnz == 0


def test_shuffling_renumbers_the_points_and_nothing_else():
    ordered, shuffled = synthetic.stencil((9, 8)), synthetic.shuffled_stencil((9, 8), seed=3)
    np.testing.assert_array_equal(np.sort(lengths(ordered)), np.sort(lengths(shuffled)))
    eigenvalues = [np.linalg.eigvalsh(m.toarray()) for m in (ordered, shuffled)]
    np.testing.assert_allclose(*eigenvalues, rtol=1e-4, atol=1e-4)
    assert (ordered != shuffled).nnz > 0


def test_uniform_rows_have_one_length_and_reach_all_columns():
    matrix = synthetic.uniform(4000, 8, cols=100)
    np.testing.assert_array_equal(lengths(matrix), 8)
    hits = np.bincount(matrix.indices, minlength=100)
    assert hits.min() > 0.6 * hits.mean()
    assert hits.max() < 1.4 * hits.mean()


def test_power_law_has_a_heavy_tail_and_the_asked_entries():
    matrix = synthetic.power_law(10_000, 100_000, exponent=0.7)
    sizes = np.sort(lengths(matrix))[::-1]
    assert matrix.nnz == pytest.approx(100_000, rel=0.01)
    assert sizes[0] > 100 * np.median(sizes)
    assert sizes[-1] >= 1


def test_rmat_has_hubs_in_rows_and_in_columns():
    matrix = synthetic.rmat(12, 40_000)
    assert matrix.shape == (4096, 4096)
    assert 0.6 * 40_000 < matrix.nnz <= 40_000
    for sizes in (lengths(matrix), np.bincount(matrix.indices, minlength=4096)):
        assert sizes.max() > 15 * sizes.mean()


def test_small_world_is_a_ring_with_a_share_of_shortcuts():
    ring = synthetic.small_world(1000, 10, rewired=0)
    coo = ring.tocoo()
    distance = abs(coo.col - coo.row)
    assert np.minimum(distance, 1000 - distance).max() == 5
    coo = synthetic.small_world(1000, 10, rewired=0.2).tocoo()
    distance = abs(coo.col - coo.row)
    assert (np.minimum(distance, 1000 - distance) > 5).mean() == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("edge", [2, 3, 8])
def test_blocks_are_dense_and_aligned(edge):
    matrix = synthetic.blocks(20, edge, per_row=4)
    blocked = sparse.bsr_array(matrix, blocksize=(edge, edge))
    assert blocked.nnz == matrix.nnz == 20 * 4 * edge * edge
    np.testing.assert_array_equal(np.diff(blocked.indptr), 4)


def test_arrow_is_full_along_its_border_and_symmetric():
    dense = synthetic.arrow(12, width=2).toarray() != 0
    expected = np.eye(12, dtype=bool)
    expected[:2] = expected[:, :2] = True
    np.testing.assert_array_equal(dense, expected)


def test_dense_rows_hold_their_share_of_all_columns():
    sizes = np.sort(lengths(synthetic.dense_rows(1000, per_row=4, dense=3, share=0.5)))
    np.testing.assert_array_equal(sizes[:-3], 4)
    np.testing.assert_array_equal(sizes[-3:], 500)


def test_mostly_empty_rows_are_empty():
    sizes = lengths(synthetic.mostly_empty(20_000, filled=0.05, longest=4))
    assert (sizes > 0).mean() == pytest.approx(0.05, abs=0.01)
    assert sizes.max() == 4


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), max_size=30),
    st.integers(12, 40),
    st.integers(0, 1000),
    st.sampled_from([1, 7, 1 << 21]),
)
def test_scatter_gives_every_row_its_length_in_distinct_sorted_columns(sizes, cols, seed, block):
    usual, sampling.BLOCK_ENTRIES = sampling.BLOCK_ENTRIES, block
    try:
        wanted = np.array(sizes, np.int64)
        matrix = sampling.scatter(wanted, cols, np.random.default_rng(seed))
    finally:
        sampling.BLOCK_ENTRIES = usual
    np.testing.assert_array_equal(lengths(matrix), sizes)
    for low, high in itertools.pairwise(matrix.indptr):
        row = matrix.indices[low:high]
        assert (np.diff(row) > 0).all()
        assert ((row >= 0) & (row < cols)).all()


def test_ragged_rows_spread_over_all_columns_evenly():
    sizes = np.tile([1, 2, 9, 30], 2000)
    matrix = sampling.scatter(sizes, 1000, np.random.default_rng(1))
    hits = np.bincount(matrix.indices // 50, minlength=20)
    assert hits.min() > 0.95 * hits.mean()
    assert hits.max() < 1.05 * hits.mean()


def test_value_that_would_be_zero_is_not():
    class Middle:
        def random(self, count, dtype):
            return np.full(count, 0.5, dtype)

    np.testing.assert_array_equal(sampling.values(3, Middle()), [1, 1, 1])


def test_row_longer_than_the_matrix_is_wide_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        synthetic.uniform(10, per_row=11)


def test_two_million_entries_take_little_more_memory_than_the_matrix():
    own = (1 << 21) * 8
    tracemalloc.start()
    synthetic.uniform(1 << 17, 16)
    assert tracemalloc.get_traced_memory()[1] < 3 * own
    tracemalloc.stop()
