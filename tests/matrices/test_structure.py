"""Facts and features of a structure are what their names say, whatever the matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from suite.matrices.base import canonical
from suite.matrices.sets import select
from suite.matrices.structure import CHUNK, FEATURES, SAMPLED_ROWS, facts, features


def csr(dense) -> sparse.csr_array:
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
def test_an_empty_matrix_has_finite_features(shape: tuple[int, int]) -> None:
    found = features(sparse.csr_array(shape))
    assert tuple(found) == FEATURES
    assert np.isfinite(list(found.values())).all()


def test_full_diagonals_and_full_blocks_are_told_from_scattered_entries() -> None:
    names = ("tridiagonal-1k", "block-4-1k", "uniform-12-2k")
    band, blocks, scattered = (features(select(name)[0].build().csr) for name in names)
    assert band["diagonal"] > 0.95 > 0.1 > blocks["diagonal"] > scattered["diagonal"]
    assert blocks["block4"] == 1 > 0.3 > max(band["block4"], scattered["block4"])
    assert scattered["adjacent"] < 0.01 < band["adjacent"]


def test_features_of_a_large_matrix_come_from_a_part_of_its_rows() -> None:
    rows = 40 * SAMPLED_ROWS
    large = sparse.diags_array([np.ones(rows)] * 3, offsets=(-1, 0, 1), shape=(rows, rows))
    found = features(canonical(sparse.csr_array(large), "m"))
    assert found["diagonal"] == pytest.approx(1, abs=0.05)
    assert found["mean"] == pytest.approx(3, abs=1e-3)


@given(st.integers(1, 150), st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_features_of_a_small_matrix_agree_with_a_walk_over_every_entry(
    rows: int, cols: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = csr((rng.random((rows, cols)) < rng.random()) * 1.0)
    entries = {(int(r), int(c)) for r, c in zip(*a.nonzero(), strict=True)}
    found, count = features(a), len(entries)
    spans = []
    for row in {r for r, _ in entries}:
        columns = [c for r, c in entries if r == row]
        spans.append((max(columns) - min(columns) + 1) / cols)
    assert found["span"] == pytest.approx(np.mean(spans) if spans else 0)
    assert found["adjacent"] == pytest.approx(
        sum((r, c - 1) in entries for r, c in entries) / max(count, 1)
    )
    places = {"diagonal": lambda r, c: (r // CHUNK, c - r), "shared": lambda r, c: (r // CHUNK, c)}
    for name, place in places.items():
        distinct = len({place(r, c) for r, c in entries}) * (CHUNK if name == "diagonal" else 1)
        assert found[name] == pytest.approx(count / max(distinct, 1))
    for edge in (2, 3, 4, 8):
        blocks = len({(r // edge, c // edge) for r, c in entries})
        assert found[f"block{edge}"] == pytest.approx(count / max(blocks * edge**2, 1))
