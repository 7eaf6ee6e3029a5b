"""Blocked sparse rows: one column index for each dense b × b block, for matrices made of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from suite.formats.base import Footprint, Format, Layout, refuse_blow_up


@dataclass(frozen=True)
class Bsr(Format):
    """CSR over blocks, whose values are dense and row-major.

    The last block row and block column may reach past the matrix; what is beyond is padding.

    Attributes:
        b: Edge of a block.
    """

    b: int = 4

    name: ClassVar[str] = "bsr"
    size_names: ClassVar[tuple[str, ...]] = ("block_rows", "blocks", "width")
    index_names: ClassVar[Mapping[str, str]] = {"row_ptr": "int32", "col_idx": "int32"}

    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Counts the blocks by merging the entries of each block row, at 5 bytes an entry."""
        block_rows = -(-csr.shape[0] // self.b)
        what = f"bsr b={self.b}"
        refuse_blow_up(
            what, self.b**2 if csr.nnz else 0, csr.nnz
        )  # one block alone may be too large
        blocks = self._count_blocks(csr)
        slots = blocks * self.b**2
        refuse_blow_up(f"{what} ({blocks:,} blocks)", slots, csr.nnz)
        return Footprint(index_bytes=4 * (block_rows + 1 + blocks), value_slots=slots)

    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """SciPy's blocking, run on entry numbers instead of values."""
        b = self.b
        rows, columns = csr.shape
        block_rows, block_columns = -(-rows // b), -(-columns // b)
        if csr.nnz == 0:
            nothing = np.zeros(0, np.int32)
            index = {"row_ptr": np.zeros(block_rows + 1, np.int32), "col_idx": nothing}
            sizes = {"block_rows": block_rows, "blocks": 0, "width": 0}
            return Layout(sizes, index, {"vals": nothing})
        # Entries count from 1, because SciPy fills a block's other places with 0.
        number = np.arange(1, csr.nnz + 1, dtype=np.int32)
        row_ptr = np.append(csr.indptr, np.full(block_rows * b - rows, csr.nnz, csr.indptr.dtype))
        padded = scipy.sparse.csr_array(
            (number, csr.indices, row_ptr), shape=(block_rows * b, block_columns * b)
        )
        blocked = padded.tobsr(blocksize=(b, b))
        blocked.sort_indices()
        vals = blocked.data.reshape(-1)
        vals -= 1
        index = {
            "row_ptr": blocked.indptr.astype(np.int32, copy=False),
            "col_idx": blocked.indices.astype(np.int32, copy=False),
        }
        width = int(np.diff(blocked.indptr).max(initial=0))
        sizes = {"block_rows": block_rows, "blocks": blocked.indices.size, "width": width}
        return Layout(sizes, index, {"vals": vals})

    def _count_blocks(self, csr: scipy.sparse.csr_array) -> int:
        if csr.nnz == 0:
            return 0
        rows, columns = csr.shape
        block_rows, block_columns = -(-rows // self.b), -(-columns // self.b)
        # The entries of a block row are neighbours in CSR: every b-th row pointer bounds them.
        bounds = np.append(csr.indptr[: rows : self.b], csr.indptr[rows])
        pattern = scipy.sparse.csr_array(
            (np.ones(csr.nnz, np.bool_), csr.indices // self.b, bounds),
            shape=(block_rows, block_columns),
        )
        pattern.sum_duplicates()
        return int(pattern.nnz)
