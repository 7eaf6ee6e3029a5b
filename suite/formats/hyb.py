"""Hybrid: ELLPACK for what most rows have, coordinates for the rest (Bell and Garland, 2009).

A few long rows then cost their own entries and not a wider table for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import Footprint, Format, Layout, refuse_blow_up
from suite.formats.coo import row_of_entry
from suite.formats.padded import last_columns, pitch_of, place


@dataclass(frozen=True)
class Hyb(Format):
    """The first ``width`` entries of a row as in ``ell``, the ``tail`` beyond them as in ``coo``.

    Attributes:
        percent: The width is the smallest that holds at least this share of the entries.
    """

    percent: int = 67

    name: ClassVar[str] = "hyb"
    size_names: ClassVar[tuple[str, ...]] = ("width", "pitch", "tail")
    index_names: ClassVar[Mapping[str, str]] = {
        "ell_col_idx": "int32",
        "coo_row_idx": "int32",
        "coo_col_idx": "int32",
    }
    value_names: ClassVar[tuple[str, ...]] = ("ell_vals", "coo_vals")

    def __post_init__(self) -> None:
        if self.percent > 100:
            raise ValueError(f"format hyb: percent must be at most 100, not {self.percent}")

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Refuses a matrix whose ELLPACK part alone would be mostly padding."""
        width, tail = self._split(csr)
        slots = width * pitch_of(csr.shape[0])
        refuse_blow_up(f"hyb percent={self.percent} (width {width:,})", slots + tail, csr.nnz)
        return Footprint(index_bytes=4 * slots + 8 * tail, value_slots=slots + tail)

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """Places each row's first entries and gathers the others; O(Z + slots)."""
        rows = csr.shape[0]
        pitch = pitch_of(rows)
        width, tail = self._split(csr)
        row = row_of_entry(csr)
        rank = np.arange(csr.nnz, dtype=np.int32)
        rank -= csr.indptr[:-1].astype(np.int32, copy=False)[row]
        short = rank < width
        head = np.flatnonzero(short).astype(np.int32)
        slot = rank[head].astype(np.int64) * pitch + row[head]
        del rank
        stored = np.minimum(np.diff(csr.indptr), width)
        ell_col_idx = np.tile(last_columns(csr, stored, pitch), width)
        ell_vals = place(slot, head, ell_col_idx, csr.indices)
        beyond = np.flatnonzero(~short).astype(np.int32)
        index = {
            "ell_col_idx": ell_col_idx,
            "coo_row_idx": row[beyond],
            "coo_col_idx": csr.indices[beyond].astype(np.int32, copy=False),
        }
        sizes = {"width": width, "pitch": pitch, "tail": tail}
        return Layout(sizes, index, {"ell_vals": ell_vals, "coo_vals": beyond})

    def _split(self, csr: scipy.sparse.csr_array) -> tuple[int, int]:
        """Width of the ELLPACK part and number of entries beyond it."""
        if csr.nnz == 0:
            return 0, 0
        of_length = np.bincount(np.diff(csr.indptr))
        longer = csr.shape[0] - np.cumsum(of_length)[:-1]  # rows with an entry number k, k from 0
        held = np.cumsum(longer)
        width = int(np.searchsorted(100 * held, self.percent * csr.nnz)) + 1
        return width, csr.nnz - int(held[width - 1])
