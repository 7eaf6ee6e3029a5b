"""Random structure, vectorised: sorted distinct columns for rows of any length, nonzero values.

The matrices built from these have tens of millions of entries, so nothing here loops over rows, and
temporaries are bounded by working through blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

BLOCK_ENTRIES = 1 << 21


def values(count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` float32 values in [-1, 1), none zero."""
    drawn = rng.random(count, dtype=np.float32)
    drawn *= 2
    drawn -= 1
    drawn[drawn == 0] = 1
    return drawn


def scatter(lengths: np.ndarray, cols: int, rng: np.random.Generator) -> sparse.csr_array:
    """A matrix with the given row lengths, each row's columns a random subset of all.

    Args:
        lengths: Entries in each of the M rows, at most ``cols``.
        cols: N.
        rng: Source of structure and values.

    Returns:
        M × N, sorted, without duplicates, float32 values.
    """
    if lengths.size and int(lengths.max()) > cols:
        raise ValueError(f"a row of {int(lengths.max())} entries does not fit {cols} columns")
    indptr = pointers(lengths)
    indices = np.empty(int(indptr[-1]), np.int32)
    for low, high in _blocks(indptr):
        indices[indptr[low] : indptr[high]] = _columns(lengths[low:high], cols, rng)
    return sparse.csr_array(
        (values(indices.size, rng), indices, indptr), shape=(lengths.size, cols)
    )


def pointers(lengths: np.ndarray) -> np.ndarray:
    """Row pointers, M + 1, of rows of the given lengths."""
    indptr = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    narrow: np.ndarray = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
    return narrow


def power_law_lengths(rows: int, nnz: int, exponent: float, longest: int) -> np.ndarray:
    """Row lengths that fall as rank to the power −``exponent``: ``nnz`` in all, longest first.

    Each is at least 1. The sum falls short of ``nnz`` where ``longest`` cuts the head off.
    """
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    lengths: np.ndarray = 1 + (weights * (max(nnz - rows, 0) / weights.sum())).astype(np.int64)
    short = nnz - int(lengths.sum())
    if 0 < short <= rows:
        lengths[:short] += 1
    np.minimum(lengths, longest, out=lengths)
    return lengths


def _blocks(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about ``BLOCK_ENTRIES`` entries and at most as many rows."""
    low, rows = 0, indptr.size - 1
    while low < rows:
        full = int(np.searchsorted(indptr, int(indptr[low]) + BLOCK_ENTRIES, side="right")) - 1
        high = min(max(full, low + 1), low + BLOCK_ENTRIES, rows)
        yield low, high
        low = high


def _columns(lengths: np.ndarray, cols: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted distinct columns of each row, one after the other.

    A nondecreasing sequence in [0, N − k] plus 0, 1, … k − 1 is strictly increasing in [0, N),
    which saves looking for duplicates. Nearly full rows favour the first and the last columns.
    """
    total = int(lengths.sum())
    if total == 0:
        return np.zeros(0, np.int32)
    longest = int(lengths.max())
    if int(lengths.min()) == longest:
        drawn = rng.integers(0, cols - longest + 1, (lengths.size, longest), dtype=np.int32)
        drawn.sort(axis=1)
        drawn += np.arange(longest, dtype=np.int32)
        return drawn.ravel()
    # Sums of k + 1 exponential gaps, divided by their total, are k sorted uniform numbers.
    sums = np.cumsum(rng.standard_exponential(total + lengths.size))
    last = np.cumsum(lengths + 1) - 1
    base = np.concatenate(([0.0], sums[last[:-1]]))
    scale = (cols - lengths + 1) / (sums[last] - base)
    inner = np.ones(sums.size, bool)
    inner[last] = False
    uniform = (sums[inner] - np.repeat(base, lengths)) * np.repeat(scale, lengths)
    columns: np.ndarray = uniform.astype(np.int32)
    np.minimum(columns, np.repeat((cols - lengths).astype(np.int32), lengths), out=columns)
    columns += np.arange(total, dtype=np.int32)
    columns -= np.repeat((np.cumsum(lengths) - lengths).astype(np.int32), lengths)
    return columns
