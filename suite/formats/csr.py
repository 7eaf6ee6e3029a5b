"""Compressed sparse rows: the canonical form itself, so nothing is converted and nothing copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import Footprint, Format, Layout


@dataclass(frozen=True)
class Csr(Format):
    """Row pointers (M + 1), then a column index and a value for each of the Z entries."""

    name: ClassVar[str] = "csr"
    index_names: ClassVar[Mapping[str, str]] = {"row_ptr": "int32", "col_idx": "int32"}

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Never refuses."""
        return Footprint(index_bytes=4 * (csr.shape[0] + 1 + csr.nnz), value_slots=csr.nnz)

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """Shares the matrix's own arrays where they are int32 already."""
        index = {
            "row_ptr": csr.indptr.astype(np.int32, copy=False),
            "col_idx": csr.indices.astype(np.int32, copy=False),
        }
        return Layout(sizes={}, index=index, values={"vals": None})
