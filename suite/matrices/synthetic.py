"""Families of matrices whose structure is known by construction, from a few integers and a seed.

They stand for what sparse matrices come as: stencils and bands from discretisations, scattered
rows, hubs and heavy tails from networks, blocks from systems of equations, and almost nothing at
all. Every function is deterministic and returns CSR with sorted rows and float32 values, none zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from suite.matrices.sampling import pointers, power_law_lengths, scatter, values

_RMAT = (
    0.57,
    0.19,
    0.19,
)  # quadrant probabilities of the Graph500 benchmark; the fourth is the rest


def diagonals(
    rows: int, offsets: Sequence[int], seed: int = 0, cols: int | None = None
) -> sparse.csr_array:
    """Full diagonals.

    Args:
        rows: M.
        offsets: Column minus row of each diagonal, distinct.
        seed: Of the values.
        cols: N; M when left out.
    """
    cols = rows if cols is None else cols
    steps = np.array(sorted(set(offsets)), np.int32)
    columns = np.arange(rows, dtype=np.int32)[:, None] + steps
    inside = (columns >= 0) & (columns < cols)
    indices = columns[inside]
    rng = np.random.default_rng(seed)
    return _csr(values(indices.size, rng), indices, inside.sum(axis=1), cols)


def band(rows: int, half_width: int, seed: int = 0) -> sparse.csr_array:
    """Every diagonal from −``half_width`` to ``half_width``."""
    return diagonals(rows, range(-half_width, half_width + 1), seed)


def scattered_band(rows: int, half_width: int, per_row: int, seed: int = 0) -> sparse.csr_array:
    """``per_row`` random entries in each row, about ``half_width`` from the diagonal at most."""
    window = min(2 * half_width + 1, rows)
    inner = scatter(np.full(rows, min(per_row, window)), window, np.random.default_rng(seed))
    start = np.clip(np.arange(rows) - half_width, 0, rows - window).astype(np.int32)
    inner.indices += np.repeat(start, np.diff(inner.indptr))
    return sparse.csr_array((inner.data, inner.indices, inner.indptr), shape=(rows, rows))


def stencil(shape: Sequence[int], reach: str = "star") -> sparse.csr_array:
    """Finite-difference Laplacian on a regular grid, zero boundary; symmetric.

    Args:
        shape: Points along each axis.
        reach: ``star`` couples a point with its 2d axis neighbours (5-point, 7-point), ``box`` with
            all 3ᵈ − 1 around it (9-point, 27-point).
    """
    dims = len(shape)
    moves = [
        move
        for move in itertools.product((-1, 0, 1), repeat=dims)
        if reach == "box" or sum(map(abs, move)) <= 1
    ]
    strides = np.cumprod((1, *reversed(shape[1:])))[::-1]
    points = int(np.prod(shape))
    inside = np.empty((*shape, len(moves)), bool)
    for k, move in enumerate(moves):
        inside[..., k] = True
        for axis, step in enumerate(move):
            if step:
                edge = [slice(None)] * dims
                edge[axis] = slice(0, 1) if step < 0 else slice(-1, None)
                inside[(*edge, slice(k, k + 1))] = False
    inside = inside.reshape(points, len(moves))
    steps = np.array([int(np.dot(move, strides)) for move in moves], np.int32)
    weights = np.array([-1 if any(move) else len(moves) - 1 for move in moves], np.float32)
    indices = (np.arange(points, dtype=np.int32)[:, None] + steps)[inside]
    data = np.broadcast_to(weights, inside.shape)[inside]
    return _csr(data, indices, inside.sum(axis=1), points)


def shuffled_stencil(shape: Sequence[int], reach: str = "star", seed: int = 0) -> sparse.csr_array:
    """``stencil`` with the points numbered at random: only its row lengths still show."""
    ordered = stencil(shape, reach)
    order = np.random.default_rng(seed).permutation(ordered.shape[0])
    number = np.empty(order.size, np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    rows = ordered[order]
    out = sparse.csr_array((rows.data, number[rows.indices], rows.indptr), shape=rows.shape)
    out.sort_indices()
    return out


def uniform(rows: int, per_row: int, seed: int = 0, cols: int | None = None) -> sparse.csr_array:
    """``per_row`` entries in every row, anywhere."""
    return scatter(
        np.full(rows, per_row), rows if cols is None else cols, np.random.default_rng(seed)
    )


def power_law(rows: int, nnz: int, exponent: float = 0.6, seed: int = 0) -> sparse.csr_array:
    """Row lengths that fall as rank to the power −``exponent``, shuffled; columns anywhere."""
    rng = np.random.default_rng(seed)
    lengths = power_law_lengths(rows, nnz, exponent, longest=rows // 2)
    return scatter(rng.permutation(lengths), rows, rng)


def rmat(scale: int, edges: int, seed: int = 0) -> sparse.csr_array:
    """Recursive-matrix graph (Chakrabarti, Zhan and Faloutsos, 2004): hubs in rows and in columns.

    Args:
        scale: M = N = 2 to this power.
        edges: Edges drawn; those drawn again are dropped, so Z is smaller.
        seed: Of structure and values.
    """
    rng = np.random.default_rng(seed)
    a, b, c = _RMAT
    keys = np.zeros(edges, np.int64)
    for low in range(0, edges, 1 << 20):
        part = keys[low : low + (1 << 20)]
        rows, cols = np.zeros(part.size, np.int64), np.zeros(part.size, np.int64)
        for _ in range(scale):
            quadrant = rng.integers(0, 1 << 16, part.size, dtype=np.uint16)
            down = quadrant >= int((a + b) * 65536)
            right = (quadrant >= int(a * 65536)) ^ down ^ (quadrant >= int((a + b + c) * 65536))
            rows += rows + down
            cols += cols + right
        part[:] = (rows << scale) | cols
    keys.sort()
    keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))] if edges else keys
    size = 1 << scale
    lengths = np.bincount(keys >> scale, minlength=size)
    indices = (keys & (size - 1)).astype(np.int32)
    return _csr(values(indices.size, rng), indices, lengths, size)


def small_world(rows: int, neighbours: int, rewired: float, seed: int = 0) -> sparse.csr_array:
    """A directed ring: ``neighbours`` nearest columns in each row, a share of them moved."""
    rng = np.random.default_rng(seed)
    half = neighbours // 2
    steps = np.array([k for k in range(-half, half + 1) if k], np.int32)
    columns = (np.arange(rows, dtype=np.int32)[:, None] + steps) % np.int32(rows)
    moved = rng.random(columns.shape, dtype=np.float32) < rewired
    columns[moved] = rng.integers(0, rows, int(moved.sum()), dtype=np.int32)
    columns.sort(axis=1)
    kept = np.ones(columns.shape, bool)
    kept[:, 1:] = columns[:, 1:] != columns[:, :-1]
    indices = columns[kept]
    return _csr(values(indices.size, rng), indices, kept.sum(axis=1), rows)


def blocks(
    block_rows: int, edge: int, per_row: int, seed: int = 0, reach: int = 0
) -> sparse.csr_array:
    """Dense ``edge`` × ``edge`` blocks, ``per_row`` of them in every block row.

    Args:
        block_rows: Block rows and columns; M = N = ``block_rows`` · ``edge``.
        edge: Rows of a block.
        per_row: Blocks in a block row.
        seed: Of structure and values.
        reach: Largest distance from the diagonal, in blocks; 0 for anywhere.
    """
    if reach:
        pattern = scattered_band(block_rows, reach, per_row, seed)
    else:
        pattern = uniform(block_rows, per_row, seed)
    corners = pattern.indices.reshape(block_rows, -1, 1) * np.int32(edge)
    one_row = (corners + np.arange(edge, dtype=np.int32)).reshape(block_rows, 1, -1)
    indices = np.repeat(one_row, edge, axis=1).reshape(-1)
    rows = block_rows * edge
    data = values(indices.size, np.random.default_rng((seed, 1)))
    return _csr(data, indices, np.full(rows, one_row.shape[2]), rows)


def arrow(rows: int, width: int = 1, seed: int = 0) -> sparse.csr_array:
    """The first ``width`` rows and columns full, and the diagonal; symmetric structure."""
    width = min(width, rows)
    lengths = np.full(rows, width + 1)
    lengths[:width] = rows
    tail = np.empty((rows - width, width + 1), np.int32)
    tail[:, :width] = np.arange(width)
    tail[:, width] = np.arange(width, rows)
    head = np.tile(np.arange(rows, dtype=np.int32), width)
    indices = np.concatenate((head, tail.reshape(-1)))
    return _csr(values(indices.size, np.random.default_rng(seed)), indices, lengths, rows)


def dense_rows(
    rows: int, per_row: int, dense: int, share: float, seed: int = 0
) -> sparse.csr_array:
    """``per_row`` entries in every row but ``dense`` of them, which have a ``share`` of all."""
    rng = np.random.default_rng(seed)
    lengths = np.full(rows, per_row)
    lengths[rng.choice(rows, dense, replace=False)] = max(int(share * rows), per_row)
    return scatter(lengths, rows, rng)


def mostly_empty(rows: int, filled: float, longest: int = 5, seed: int = 0) -> sparse.csr_array:
    """A share ``filled`` of the rows has 1 to ``longest`` entries, the others none."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, rows)
    lengths[rng.random(rows) >= filled] = 0
    return scatter(lengths, rows, rng)


def _csr(data: np.ndarray, indices: np.ndarray, lengths: np.ndarray, cols: int) -> sparse.csr_array:
    return sparse.csr_array((data, indices, pointers(lengths)), shape=(lengths.size, cols))
