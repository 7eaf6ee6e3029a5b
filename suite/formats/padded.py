"""What the padded formats share: the pitch, and the placing of entries among padding."""

from __future__ import annotations

import numpy as np
import scipy

from suite.formats.base import PADDING

ALIGNMENT = 32  # rows; a pitch that is a multiple of it keeps every column aligned for a whole warp


def pitch_of(rows: int) -> int:
    """The number of rows rounded up to ``ALIGNMENT``: the stride between stored columns."""
    return -(-rows // ALIGNMENT) * ALIGNMENT


def last_columns(csr: scipy.sparse.csr_array, length: np.ndarray, lanes: int) -> np.ndarray:
    """Column of each row's last stored entry, for padding to repeat: x is cached there already.

    Args:
        csr: M × N.
        length: M, entries of each row that are stored; 0 gives column 0.
        lanes: Length of the result; rows from M on have column 0.

    Returns:
        int32, ``lanes``.
    """
    last = np.zeros(lanes, np.int32)
    stored = np.flatnonzero(length)
    last[stored] = csr.indices[csr.indptr[stored] + length[stored] - 1]
    return last


def place(
    slot: np.ndarray, entry: np.ndarray, col_idx: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Puts entries into their slots.

    Args:
        slot: The slot of each placed entry.
        entry: The CSR entry that belongs there.
        col_idx: One column for each slot, padding's; overwritten where an entry goes.
        columns: CSR column indices, Z.

    Returns:
        Value map: int32, as long as ``col_idx``.
    """
    vals = np.full(col_idx.size, PADDING, np.int32)
    vals[slot] = entry
    col_idx[slot] = columns if entry.size == columns.size else columns[entry]
    return vals
