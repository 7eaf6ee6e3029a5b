"""Sliced ELLPACK with sorting (SELL-c-sigma; Kreutzer et al., SIAM J. Sci. Comput. 36, 2014).

Each slice of ``c`` rows is padded to its own longest row only, and rows are sorted by length within
windows of ``sigma`` rows, so that neighbours are about equally long while x stays about as local.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import Footprint, Format, Layout, refuse_blow_up
from suite.formats.padded import last_columns, place


@dataclass(frozen=True)
class Sell(Format):
    """Slices of ``c`` lanes: entry k of lane l of slice s at ``slice_ptr[s] + k * c + l``.

    Attributes:
        c: Rows a slice.
        sigma: Rows sorted together by length, longest first; 1 leaves their order alone.
    """

    c: int = 32
    sigma: int = 1024

    name: ClassVar[str] = "sell"
    size_names: ClassVar[tuple[str, ...]] = ("slices", "slots")
    index_names: ClassVar[Mapping[str, str]] = {
        "slice_ptr": "int32",
        "perm": "int32",
        "col_idx": "int32",
    }

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """The sum of the slices' longest rows, times ``c``."""
        slices = -(-csr.shape[0] // self.c)
        # A huge c must be refused before its lanes are allocated: the longest row widens a slice.
        longest = int(np.diff(csr.indptr).max(initial=0))
        refuse_blow_up(self._what, max(longest, 1) * self.c if slices else 0, csr.nnz)
        slots = self.c * int(self._widths(csr, self._order(csr)).sum())
        refuse_blow_up(self._what, slots, csr.nnz)
        return Footprint(
            index_bytes=4 * (slices + 1 + slices * self.c + slots),
            value_slots=slots,
        )

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """Sorts the windows, then places entry after entry; O(M log sigma + Z + slots)."""
        rows, c = csr.shape[0], self.c
        order = self._order(csr)
        widths = self._widths(csr, order)
        slices = widths.size
        slice_ptr = np.zeros(slices + 1, np.int64)
        np.cumsum(widths * c, out=slice_ptr[1:])

        lane_of_row = np.empty(rows, np.int64)
        lane_of_row[order] = np.arange(rows)
        length = np.diff(csr.indptr)
        first = slice_ptr[lane_of_row // c] + lane_of_row % c - csr.indptr[:-1].astype(np.int64) * c
        entry = np.arange(csr.nnz, dtype=np.int32)
        slot = np.repeat(first, length)
        slot += entry.astype(np.int64) * c

        perm = np.full(slices * c, -1, np.int32)
        perm[:rows] = order
        padding = np.zeros(slices * c, np.int32)
        padding[:rows] = last_columns(csr, length, rows)[order]
        col_idx = np.repeat(padding.reshape(slices, c), widths, axis=0).ravel()
        vals = place(slot, entry, col_idx, csr.indices)
        sizes = {"slices": slices, "slots": col_idx.size}
        index = {"slice_ptr": slice_ptr.astype(np.int32), "perm": perm, "col_idx": col_idx}
        return Layout(sizes, index, {"vals": vals})

    @property
    def _what(self) -> str:
        return f"sell c={self.c} sigma={self.sigma}"

    def _order(self, csr: scipy.sparse.csr_array) -> np.ndarray:
        """The rows in storing order, M."""
        rows = csr.shape[0]
        sigma = min(self.sigma, rows)
        if sigma <= 1:
            return np.arange(rows)
        windows = -(-rows // sigma)
        # Negated lengths sort the longest first; lanes past the end hold 1 and so come last.
        key = np.ones(windows * sigma, np.int32)
        np.subtract(csr.indptr[:-1], csr.indptr[1:], out=key[:rows], casting="unsafe")
        within = np.argsort(key.reshape(windows, sigma), axis=1, kind="stable")
        within += np.arange(windows)[:, None] * sigma
        return within.ravel()[:rows]

    def _widths(self, csr: scipy.sparse.csr_array, order: np.ndarray) -> np.ndarray:
        """Longest row of each slice, int64."""
        length = np.diff(csr.indptr)[order]
        if not length.size:
            return np.zeros(0, np.int64)
        return np.maximum.reduceat(length, np.arange(0, length.size, self.c)).astype(np.int64)
