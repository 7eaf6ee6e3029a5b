"""Diagonals: no column indices at all, for stencils and bands. Half of CSR's bytes at best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import PADDING, Footprint, Format, Layout, refuse_blow_up
from suite.formats.coo import row_of_entry
from suite.formats.padded import pitch_of


@dataclass(frozen=True)
class Dia(Format):
    """``diags`` × ``pitch`` values: the entry of diagonal d in row r at ``d * pitch + r``."""

    name: ClassVar[str] = "dia"
    size_names: ClassVar[tuple[str, ...]] = ("diags", "pitch")
    index_names: ClassVar[Mapping[str, str]] = {"offsets": "int32"}

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Occupied diagonals times pitch; refuses a matrix whose diagonals are mostly empty."""
        diags = int(np.count_nonzero(_occupied(csr, _offset_of_entry(csr))))
        slots = diags * pitch_of(csr.shape[0])
        refuse_blow_up(f"dia ({diags:,} diagonals)", slots, csr.nnz)
        return Footprint(index_bytes=4 * diags, value_slots=slots)

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """Places entry after entry; O(M + N + Z + slots)."""
        rows, columns = csr.shape
        pitch = pitch_of(rows)
        offset = _offset_of_entry(csr)
        present = np.flatnonzero(_occupied(csr, offset))
        # Undo the wrap of ``_occupied``: positions from N on are the diagonals below the main one.
        above = int(np.searchsorted(present, columns))
        present[above:] -= rows + columns - 1
        offsets = np.roll(present, present.size - above).astype(np.int32)

        first_slot = np.zeros(max(rows + columns - 1, 0), np.int64)
        first_slot[offsets] = np.arange(offsets.size, dtype=np.int64) * pitch
        slot = first_slot[offset]
        slot += row_of_entry(csr)
        vals = np.full(offsets.size * pitch, PADDING, np.int32)
        vals[slot] = np.arange(csr.nnz, dtype=np.int32)
        sizes = {"diags": offsets.size, "pitch": pitch}
        return Layout(sizes, {"offsets": offsets}, {"vals": vals})


def _offset_of_entry(csr: scipy.sparse.csr_array) -> np.ndarray:
    """Column minus row of each entry, int32, Z: from -(M - 1) to N - 1."""
    offset: np.ndarray = csr.indices.astype(np.int32, copy=False) - row_of_entry(csr)
    return offset


def _occupied(csr: scipy.sparse.csr_array, offset: np.ndarray) -> np.ndarray:
    """Which of the M + N - 1 diagonals have entries; negative offsets count from the end."""
    occupied = np.zeros(max(sum(csr.shape) - 1, 0), np.bool_)
    occupied[offset] = True
    return occupied
