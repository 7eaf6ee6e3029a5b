"""ELLPACK: every row as long as the longest, stored column by column, so that loads coalesce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import Footprint, Format, Layout, refuse_blow_up
from suite.formats.padded import last_columns, pitch_of, place


@dataclass(frozen=True)
class Ell(Format):
    """``width`` × ``pitch`` column indices and values: entry k of row r at ``k * pitch + r``."""

    name: ClassVar[str] = "ell"
    size_names: ClassVar[tuple[str, ...]] = ("width", "pitch")
    index_names: ClassVar[Mapping[str, str]] = {"col_idx": "int32", "row_len": "int32"}

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Longest row times pitch; refuses a matrix whose longest row is far from its mean."""
        slots = _width(csr) * pitch_of(csr.shape[0])
        refuse_blow_up(f"ell (longest row {_width(csr):,})", slots, csr.nnz)
        return Footprint(index_bytes=4 * (slots + csr.shape[0]), value_slots=slots)

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
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


def _width(csr: scipy.sparse.csr_array) -> int:
    return int(np.diff(csr.indptr).max(initial=0))
