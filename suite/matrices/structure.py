"""What is quickly known of where a matrix has its entries: exact facts, and features of a sample.

Everything is computed from structure alone, in one pass over the row pointers and over at most
``SAMPLED_ROWS`` rows, so that it costs a small part of one conversion.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

CHUNK = 64  # neighbouring rows that are looked at together
SAMPLED_ROWS = 128 * CHUNK
SAMPLED_ENTRIES = 1 << 20  # longer rows are looked at in fewer chunks
FEATURES = (
    "rows",
    "cols",
    "nnz",
    "mean",
    "spread",
    "longest",
    "empty",
    "reach",
    "span",
    "adjacent",
    "diagonal",
    "shared",
    "block2",
    "block3",
    "block4",
    "block8",
)


def facts(csr: sparse.csr_array) -> dict[str, int]:
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


def features(csr: sparse.csr_array) -> dict[str, float]:
    """Features from which a kernel can be chosen; keys are ``FEATURES``.

    Args:
        csr: A canonical matrix, M × N with Z entries.

    Returns:
        ``rows``, ``cols``, ``nnz``: base-2 logarithms of M, N and Z. ``mean``: entries a row.
        ``spread``: standard deviation of the row lengths over their mean. ``longest``: longest row
        over the mean. ``empty``: share of empty rows. ``reach``: largest distance of a column from
        its row over N.
        Of a sample of row chunks: ``span``: columns from first to last of a row over N;
        ``adjacent``: share of entries whose left neighbour is an entry; ``diagonal``: entries per
        occupied diagonal and row (1: full diagonals); ``shared``: entries per distinct column of a
        chunk; ``block2`` to ``block8``: share of the slots of occupied aligned blocks that hold
        entries.
    """
    rows, cols = csr.shape
    known = facts(csr)
    lengths = np.diff(csr.indptr)
    mean = csr.nnz / max(rows, 1)
    found = {
        "rows": float(np.log2(max(rows, 1))),
        "cols": float(np.log2(max(cols, 1))),
        "nnz": float(np.log2(max(csr.nnz, 1))),
        "mean": mean,
        "spread": float(lengths.std() / mean) if mean else 0.0,
        "longest": known["longest"] / mean if mean else 0.0,
        "empty": 1 - known["filled"] / max(rows, 1),
        "reach": known["reach"] / max(cols, 1),
    }
    return found | _sampled(csr, _sample(csr))


def _sample(csr: sparse.csr_array) -> np.ndarray:
    """Rows of evenly spread whole chunks, ascending."""
    rows = csr.shape[0]
    chunks = -(-rows // CHUNK)
    entries = csr.nnz / max(chunks, 1)
    wanted = max(min(SAMPLED_ROWS // CHUNK, int(SAMPLED_ENTRIES / max(entries, 1))), 4)
    chosen = np.unique(np.linspace(0, max(chunks - 1, 0), min(wanted, chunks)).astype(np.int64))
    picked: np.ndarray = (chosen[:, None] * CHUNK + np.arange(CHUNK)).ravel()
    return np.asarray(picked[picked < rows])


def _sampled(csr: sparse.csr_array, picked: np.ndarray) -> dict[str, float]:
    part = csr[picked]
    lengths = np.diff(part.indptr)
    filled = np.flatnonzero(lengths)
    row = np.repeat(picked, lengths)
    col = part.indices.astype(np.int64)
    cols = csr.shape[1]
    count = max(part.nnz, 1)
    first, last = col[part.indptr[filled]], col[part.indptr[filled + 1] - 1]
    follows = (np.diff(col) == 1) & (np.diff(row) == 0)
    chunk = row // CHUNK
    diagonals = np.unique(chunk * (sum(csr.shape) + 1) + (col - row)).size
    distinct = np.unique(chunk * (cols + 1) + col).size
    shares = {
        "span": float((last - first + 1).mean() / max(cols, 1)) if filled.size else 0.0,
        "adjacent": float(follows.sum() / count),
        "diagonal": part.nnz / max(diagonals * CHUNK, 1),
        "shared": part.nnz / max(distinct, 1),
    }
    for edge in (2, 3, 4, 8):
        blocks = np.unique((row // edge) * (cols // edge + 1) + col // edge).size
        shares[f"block{edge}"] = part.nnz / max(blocks * edge * edge, 1)
    return shares
