"""Coordinates as token ids: ``V + (i << 31) + j``, where V is the size of the embedding table."""

from __future__ import annotations

import numpy as np

from suite.models.errors import ModelError

BITS = 31  # of a column index; the row stands above it
LIMIT = 1 << BITS  # coordinates are below


def coordinate_ids(rows: np.ndarray, cols: np.ndarray, vocabulary: int) -> np.ndarray:
    """Token ids of coordinates.

    Args:
        rows: i, from 0.
        cols: j, from 0.
        vocabulary: V.

    Raises:
        ModelError: A coordinate is negative or does not fit 31 bits.
    """
    i, j = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
    if i.size and not (min(i.min(), j.min()) >= 0 and max(i.max(), j.max()) < LIMIT):
        raise ModelError(f"coordinates must be from 0 to {LIMIT - 1}; the matrix is too large")
    return np.asarray(vocabulary + (i << BITS) + j)


def coordinates(ids: np.ndarray, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the ids that are coordinates, in their order."""
    known = np.asarray(ids, dtype=np.int64)
    packed = known[known >= vocabulary] - vocabulary
    return packed >> BITS, packed & (LIMIT - 1)
