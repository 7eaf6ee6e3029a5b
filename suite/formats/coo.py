"""Coordinates: a row index beside each entry, so that work can be split without regard to rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import Footprint, Format, Layout


def row_of_entry(csr: scipy.sparse.csr_array) -> np.ndarray:
    """The row of each of the Z entries, int32, ascending."""
    return np.repeat(np.arange(csr.shape[0], dtype=np.int32), np.diff(csr.indptr))


@dataclass(frozen=True)
class Coo(Format):
    """Row index, column index and value of each of the Z entries, sorted by row, then column."""

    name: ClassVar[str] = "coo"
    index_names: ClassVar[Mapping[str, str]] = {"row_idx": "int32", "col_idx": "int32"}

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Never refuses."""
        return Footprint(index_bytes=8 * csr.nnz, value_slots=csr.nnz)

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """Writes the row indices out; column indices are shared with the matrix."""
        index = {
            "row_idx": row_of_entry(csr),
            "col_idx": csr.indices.astype(np.int32, copy=False),
        }
        return Layout(sizes={}, index=index, values={"vals": None})
