"""ELLPACK: every row as long as the longest, stored column by column, so that loads coalesce.

Also the home of what the padded formats share: pitch, limit on slots and the placing of entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from suite.formats.base import (
    PADDING,
    Footprint,
    Format,
    Layout,
    NotApplicableError,
    refuse_blow_up,
)
from suite.matrices.base import INT32_MAX

ALIGNMENT = 32  # rows; a pitch that is a multiple of it keeps every column aligned for a whole warp


def pitch_of(rows: int) -> int:
    """The number of rows rounded up to ``ALIGNMENT``: the stride between stored columns."""
    return -(-rows // ALIGNMENT) * ALIGNMENT


def refuse_slots(what: str, slots: int, nnz: int) -> None:
    """Refuses mostly padding, and more slots than int32 counts.

    Raises:
        NotApplicableError: The matrix does not fit the format; the message says how far it is off.
    """
    refuse_blow_up(what, slots, nnz)
    if slots > INT32_MAX:
        raise NotApplicableError(
            f"{what} would store {slots:,} values, more than int32 indices reach ({INT32_MAX:,})"
        )


def last_columns(csr: sparse.csr_array, length: np.ndarray, lanes: int) -> np.ndarray:
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


@dataclass(frozen=True)
class Ell(Format):
    """``width`` × ``pitch`` column indices and values: entry k of row r at ``k * pitch + r``."""

    name: ClassVar[str] = "ell"
    size_names: ClassVar[tuple[str, ...]] = ("width", "pitch")
    index_names: ClassVar[Mapping[str, str]] = {"col_idx": "int32", "row_len": "int32"}

    def footprint(self, csr: sparse.csr_array) -> Footprint:
        """Longest row times pitch; refuses a matrix whose longest row is far from its mean."""
        slots = _width(csr) * pitch_of(csr.shape[0])
        refuse_slots(f"ell (longest row {_width(csr):,})", slots, csr.nnz)
        return Footprint(index_bytes=4 * (slots + csr.shape[0]), value_slots=slots)

    def convert(self, csr: sparse.csr_array) -> Layout:
        """Places entry after entry; O(Z + slots)."""
        rows = csr.shape[0]
        width, pitch = _width(csr), pitch_of(rows)
        row_len = np.diff(csr.indptr).astype(np.int32, copy=False)
        first = np.arange(rows, dtype=np.int64) - csr.indptr[:-1].astype(np.int64) * pitch
        entry = np.arange(csr.nnz, dtype=np.int32)
        slot = np.repeat(first, row_len)
        slot += entry.astype(np.int64) * pitch
        col_idx = np.tile(last_columns(csr, row_len, pitch), width)
        vals = place(slot, entry, col_idx, csr.indices)
        sizes = {"width": width, "pitch": pitch}
        return Layout(sizes, {"col_idx": col_idx, "row_len": row_len}, {"vals": vals})


def _width(csr: sparse.csr_array) -> int:
    return int(np.diff(csr.indptr).max(initial=0))
