"""Facts and counts of a structure are what their names say, whatever the matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from suite.matrices.base import canonical
from suite.matrices.sets import select
from suite.matrices.structure import CHUNK, SAMPLED_LENGTH, SAMPLED_ROWS, Structure, facts


def csr(dense: object) -> sparse.csr_array:
    return canonical(sparse.csr_array(np.asarray(dense, dtype=float)), "m")


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_facts_agree_with_a_walk_over_every_entry(rows: int, cols: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = csr((rng.random((rows, cols)) < 0.3) * 1.0)
    entries = list(zip(*a.nonzero(), strict=True))
    lengths = [sum(row == r for row, _ in entries) for r in range(rows)]
    assert facts(a) == {
        "longest": max(lengths, default=0),
        "filled": sum(length > 0 for length in lengths),
        "reach": max((abs(int(c) - int(r)) for r, c in entries), default=0),
    }


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (3, 3)])
def test_a_matrix_without_entries_counts_nothing(shape: tuple[int, int]) -> None:
    of = Structure(sparse.csr_array(shape))
    counts = (of.padded(), of.padded(1024), of.steps(4), of.beyond(4), of.longer(0))
    assert (*counts, of.distinct(1, 8), of.side_by_side(8), of.diagonals()) == (0,) * 8


def test_full_diagonals_and_full_blocks_are_told_from_scattered_entries() -> None:
    names = ("tridiagonal-1k", "block-4-1k", "uniform-12-2k")
    band, blocks, scattered = (Structure(select(name)[0].build().csr) for name in names)
    assert band.diagonals() == 3 < blocks.diagonals() < scattered.diagonals()
    assert 16 * blocks.distinct(4, 4) == blocks.csr.nnz < 3 * scattered.csr.nnz
    assert 16 * scattered.distinct(4, 4) > 10 * scattered.csr.nnz
    assert band.side_by_side(8) < 0.3 * band.csr.nnz


def test_counts_of_a_large_matrix_come_from_a_part_of_its_rows() -> None:
    rows = 40 * SAMPLED_ROWS
    large = sparse.diags_array([np.ones(rows)] * 3, offsets=(-1, 0, 1), shape=(rows, rows))
    of = Structure(canonical(sparse.csr_array(large), "m"))
    assert of.distinct(1, 1) == pytest.approx(of.csr.nnz)
    assert of.distinct(64, 1) == pytest.approx(rows * 66 / 64, rel=0.01)
    assert of.padded() == 3 * rows


def test_one_long_row_does_not_drown_the_others() -> None:
    cols = 50 * SAMPLED_LENGTH
    rows = np.concatenate([np.zeros(cols, int), np.arange(1, 6400)])
    columns = np.concatenate([np.arange(cols), np.arange(6399) * 9])
    arrow = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=(6400, cols)).tocsr()
    # Of the sample's entries three in four are alone in their 8 columns, of all one in seventeen.
    assert Structure(arrow).distinct(1, 8) > 0.7 * arrow.nnz


@given(st.integers(1, 150), st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_counts_of_a_small_matrix_agree_with_a_walk_over_every_entry(
    rows: int, cols: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = csr((rng.random((rows, cols)) < rng.random()) * 1.0)
    of = Structure(a)
    lengths = np.diff(a.indptr).tolist()
    entries = [
        (r, int(c), k)
        for r in range(rows)
        for k, c in enumerate(a.indices[a.indptr[r] : a.indptr[r + 1]])
    ]
    assert of.diagonals() == len({c - r for r, c, _ in entries})
    for height, width in ((1, 8), (CHUNK, 1), (2, 2), (4, 4)):
        tiles = {(r // height, c // width) for r, c, _ in entries}
        assert of.distinct(height, width) == pytest.approx(len(tiles))
    together = {(r // 32, k, c // 8) for r, c, k in entries}
    assert of.side_by_side(8) == pytest.approx(len(together))
    slices = [lengths[at : at + 32] for at in range(0, rows, 32)]
    ordered = sorted(lengths, reverse=True)
    sorted_slices = [ordered[at : at + 32] for at in range(0, rows, 32)]
    assert of.padded() == sum(32 * max(one) for one in slices)
    assert of.padded(window=1024) == sum(32 * max(one) for one in sorted_slices)
    assert of.padded(unit=4, width=8) == sum(32 * (-(-min(max(one), 8) // 4) * 4) for one in slices)
    warps = [lengths[at : at + 8] for at in range(0, rows, 8)]
    assert of.steps(4) == sum(max(-(-length // 4) for length in one) for one in warps)
    assert of.beyond(3) == sum(max(length - 3, 0) for length in lengths)
    assert of.longer(3) == sum(length > 3 for length in lengths)
