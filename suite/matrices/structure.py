"""What is quickly known of where a matrix has its entries: exact facts, and counts of a sample.

Everything is computed from structure alone, from the row pointers and the entries of at most
``SAMPLED_ROWS`` rows, so that it costs a small part of one conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy

CHUNK = 64  # neighbouring rows that are looked at together
SAMPLED_ROWS = 128 * CHUNK
SAMPLED_ENTRIES = 1 << 18  # longer rows are looked at in fewer chunks
SAMPLED_LENGTH = 2048  # entries of one row; what is left of it differs little from its beginning
WARP = 32


def facts(csr: scipy.sparse.csr_array) -> dict[str, int]:
    """Integers that every program may name.

    Args:
        csr: A canonical matrix: columns ascend within a row.

    Returns:
        ``longest``: entries of the longest row; ``filled``: rows with an entry; ``reach``: largest
        distance of an entry's column from its row.
    """
    lengths = np.diff(csr.indptr)
    filled = np.flatnonzero(lengths)
    # Columns ascend, so the ends of a row are what is farthest from its diagonal.
    ends = csr.indptr[filled], csr.indptr[filled + 1] - 1
    far = [int(np.abs(csr.indices[end] - filled).max(initial=0)) for end in ends]
    return {
        "longest": int(lengths.max(initial=0)),
        "filled": int(filled.size),
        "reach": max(far),
    }


class Structure:
    """Counts of what a multiplication by a matrix has to touch; each is made when first asked for.

    Those of row lengths are exact. Those of columns are counted in a sample of whole chunks of
    neighbouring rows and scaled up to all entries.

    Attributes:
        csr: A canonical matrix, M × N with Z entries.
        lengths: Entries of each row, M.
    """

    def __init__(self, csr: scipy.sparse.csr_array) -> None:
        self.csr = csr
        self.lengths: np.ndarray = np.diff(csr.indptr)
        self._known: dict[tuple[object, ...], float] = {}

    @cached_property
    def facts(self) -> dict[str, int]:
        """See ``facts``."""
        return facts(self.csr)

    def padded(self, window: int = WARP, unit: int = 1, width: int | None = None) -> float:
        """Slots of slices of 32 rows, each as wide as its longest row.

        Args:
            window: Rows that are sorted by length first, a multiple of 32.
            unit: Row lengths are rounded up to a multiple of it.
            width: Only so many entries of a row count.
        """
        return self._once(
            ("padded", window, unit, width), lambda: self._padded(window, unit, width)
        )

    def steps(self, lanes: int) -> float:
        """Steps of all warps where so many lanes share a row, a warp waiting for its longest."""
        return self._once(
            ("steps", lanes),
            lambda: self._grouped(-(-self.lengths // lanes), WARP // lanes).max(axis=1).sum(),
        )

    def beyond(self, width: int) -> float:
        """Entries beyond the first ``width`` of their rows."""
        return self._once(
            ("beyond", width), lambda: np.maximum(self.lengths - width, 0).sum(dtype=np.int64)
        )

    def longer(self, width: int) -> float:
        """Rows with more than ``width`` entries."""
        return self._once(("longer", width), lambda: np.count_nonzero(self.lengths > width))

    def distinct(self, rows: int, columns: int) -> float:
        """Tiles of so many rows and columns that hold an entry, sampled.

        Args:
            rows: Divides ``CHUNK``, or the count is too high.
            columns: Any number: 8 float32 of x are what one access to the L2 brings.
        """
        row, col, _ = self._sample
        return self._scaled(("distinct", rows, columns), lambda: (row // rows, col // columns))

    def side_by_side(self, columns: int) -> float:
        """As ``distinct``, of what a warp reads at once that has a row for each thread, sampled."""
        row, col, rank = self._sample
        wide = SAMPLED_LENGTH
        return self._scaled(("side", columns), lambda: (row // WARP * wide + rank, col // columns))

    def diagonals(self) -> float:
        """Occupied diagonals, at least: those of the sample."""
        row, col, _ = self._sample
        return self._once(("diagonals",), lambda: _different(col - row))

    def _once(self, key: tuple[object, ...], count: Callable[[], float | np.number]) -> float:
        if key not in self._known:
            self._known[key] = float(count())
        return self._known[key]

    def _scaled(
        self, key: tuple[object, ...], places: Callable[[], tuple[np.ndarray, np.ndarray]]
    ) -> float:
        """Distinct places of the sample's entries, scaled up to all entries."""

        def count() -> float:
            first, second = places()
            found = _different(first * (self.csr.shape[1] + 1) + second)
            return found * float(self.csr.nnz) / max(first.size, 1)

        return self._once(key, count)

    def _padded(self, window: int, unit: int, width: int | None) -> int:
        lengths = self._grouped(self.lengths, window)
        if window > WARP:
            lengths = np.sort(lengths, axis=1)
        widest = lengths.reshape(-1, WARP).max(axis=1).astype(np.int64)
        if width is not None:
            widest = np.minimum(widest, width)
        return int((-(-widest // unit) * unit).sum() * WARP)

    @staticmethod
    def _grouped(values: np.ndarray, size: int) -> np.ndarray:
        """Values in groups of neighbours, the last filled up with zeros."""
        groups = -(-values.size // size)
        filled = np.zeros(groups * size, values.dtype)
        filled[: values.size] = values
        return filled.reshape(groups, size)

    @cached_property
    def _sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, column and place within its row of each entry of the sample."""
        rows = self._sampled_rows()
        taken = np.minimum(self.lengths[rows], SAMPLED_LENGTH).astype(np.int64)
        row = np.repeat(rows, taken)
        rank = np.arange(row.size) - np.repeat(np.cumsum(taken) - taken, taken)
        at = self.csr.indptr[:-1].astype(np.int64)[row] + rank
        return row, self.csr.indices[at].astype(np.int64), rank

    def _sampled_rows(self) -> np.ndarray:
        """Rows of evenly spread whole chunks, ascending."""
        chunks = -(-self.csr.shape[0] // CHUNK)
        entries = np.minimum(self.lengths, SAMPLED_LENGTH).sum() / max(chunks, 1)
        wanted = max(min(SAMPLED_ROWS // CHUNK, int(SAMPLED_ENTRIES / max(entries, 1))), 4)
        chosen = np.unique(np.linspace(0, max(chunks - 1, 0), min(wanted, chunks)).astype(np.int64))
        picked: np.ndarray = (chosen[:, None] * CHUNK + np.arange(CHUNK)).ravel()
        return np.asarray(picked[picked < self.csr.shape[0]])


def _different(values: np.ndarray) -> int:
    """How many different values there are; by sorting, as hashing is slow on regular ones."""
    ordered = np.sort(values)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + bool(values.size)
