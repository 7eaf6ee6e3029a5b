"""Which nonzeros of a matrix a model is shown, and in how few numbers its size is told.

A few hundred of up to 10⁸ have to show two things. *Runs*: pieces of neighbouring rows, whole where
rows are short, at places spread over the matrix; they show blocks, bands and how rows resemble each
other. *Shape*: single entries spread over the whole matrix; they show where it is dense and how far
columns lie apart. Nothing is drawn at random. Beside one pass over the row pointers the work is
proportional to what is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from suite.matrices.structure import facts

SHOWN = 256
RUNS = 6  # places at which neighbouring rows are shown
RUN_SHARE = 0.75  # of what is shown
RUN_ROWS = 16  # at one place, at most
PIECE = 8  # entries of a row in a run, at most
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Shown:
    """Some nonzeros of a matrix, row by row, columns ascending.

    Attributes:
        rows: i of each.
        cols: j of each.
    """

    rows: np.ndarray
    cols: np.ndarray

    def __len__(self) -> int:
        return int(self.rows.size)


@dataclass(frozen=True)
class Scale:
    """How large a matrix is.

    Attributes:
        sizes: ``rows``, ``cols``, ``nnz``, ``longest``, ``filled`` and ``reach``, as programs know
            them.
        lengths: Quantiles of the row lengths at ``QUANTILES``.
    """

    sizes: dict[str, int]
    lengths: tuple[int, ...]


def sample(csr: sparse.csr_array, count: int = SHOWN) -> Shown:
    """Chooses the nonzeros that a model is shown.

    Args:
        csr: A canonical matrix.
        count: How many; all of them where the matrix has no more.
    """
    total = int(csr.nnz)
    if total <= count:
        entries = np.arange(total)
    else:
        chosen = _runs(csr, int(count * RUN_SHARE))
        entries = np.array(sorted(_spread(chosen, total, count)), dtype=np.int64)
    rows = np.searchsorted(csr.indptr, entries, side="right") - 1
    return Shown(rows.astype(np.int64), csr.indices[entries].astype(np.int64))


def scale(csr: sparse.csr_array) -> Scale:
    """The numbers that tell how large a matrix is."""
    rows, cols = csr.shape
    lengths = np.diff(csr.indptr)
    sizes = {"rows": int(rows), "cols": int(cols), "nnz": int(csr.nnz), **facts(csr)}
    if not rows:
        return Scale(sizes, (0,) * len(QUANTILES))
    at = [min(int(q * (rows - 1) + 0.5), rows - 1) for q in QUANTILES]
    found = np.partition(lengths, sorted(set(at)))[at]
    return Scale(sizes, tuple(int(length) for length in found))


def _runs(csr: sparse.csr_array, budget: int) -> set[int]:
    """Entry numbers of pieces of neighbouring rows at ``RUNS`` places."""
    chosen: set[int] = set()
    each = budget // RUNS
    for place in range(RUNS):
        share = (place + 0.5) / RUNS
        if place % 2:  # by entries, which favours long rows; by rows, which favours short ones
            entry = int(share * csr.nnz)
            row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
            column = int(csr.indices[entry])
        else:
            row = int(share * csr.shape[0])
            column = 0
        chosen |= _run(csr, row, column, each)
    return chosen


def _run(csr: sparse.csr_array, first: int, column: int, budget: int) -> set[int]:
    """Entries of the rows from ``first`` on, of long ones a piece that starts at ``column``."""
    found: list[int] = []
    for row in range(first, min(first + RUN_ROWS, csr.shape[0])):
        start, end = int(csr.indptr[row]), int(csr.indptr[row + 1])
        if end - start > PIECE:
            at = start + int(np.searchsorted(csr.indices[start:end], column))
            start = min(at, end - PIECE)
        found += range(start, min(end, start + PIECE))
        if len(found) >= budget:
            break
    return set(found[:budget])


def _spread(chosen: set[int], total: int, count: int) -> set[int]:
    """Adds entries at multiples of the golden ratio, which no regular structure is in step with."""
    out = set(chosen)
    step = 0
    while len(out) < count:
        step += 1
        entry = int((step * _GOLDEN) % 1.0 * total)
        while entry in out:
            entry = (entry + 1) % total
        out.add(entry)
    return out
