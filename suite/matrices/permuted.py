"""A matrix with its rows and columns in another order: ``NAME+shuffled``, ``NAME+rcm``.

What a program may gain from where the nonzeros lie depends on the order in which somebody numbered
the unknowns. Shuffled, nothing is left of it; after reverse Cuthill–McKee, entries lie close to the
diagonal. Values and their number stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from suite.matrices.base import MatrixError, MatrixSpec, canonical

Order = Callable[[sparse.csr_array, str], sparse.csr_array]


def shuffled(csr: sparse.csr_array, name: str) -> sparse.csr_array:
    """Rows and columns in an order by lot, each its own; the same for the same name."""
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
    draw = np.random.default_rng(seed)
    rows, cols = (draw.permutation(size) for size in csr.shape)
    return _ordered(csr, rows, cols)


def rcm(csr: sparse.csr_array, name: str) -> sparse.csr_array:
    """Rows and columns in reverse Cuthill–McKee order.

    A square matrix has one order for both, that of the graph of its structure made symmetric. For
    another, rows and columns are the two sides of one graph, and each side keeps its order in it.
    """
    rows, cols = csr.shape
    structure = sparse.csr_array(
        (np.ones(csr.nnz, np.int8), csr.indices, csr.indptr), shape=csr.shape
    )
    if rows == cols:
        graph = sparse.csr_array(structure + structure.T)
        order = reverse_cuthill_mckee(graph, symmetric_mode=True)
        return _ordered(csr, order, order)
    graph = sparse.csr_array(sparse.block_array([[None, structure], [structure.T, None]]))
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    return _ordered(csr, order[order < rows], order[order >= rows] - rows)


ORDERS: Mapping[str, Order] = {"shuffled": shuffled, "rcm": rcm}


def split(item: str) -> tuple[str, str] | None:
    """The matrix and the order that ``NAME+ORDER`` asks for; None where it is not of this form."""
    name, plus, order = item.rpartition("+")
    return (name, order) if plus and name and order in ORDERS else None


def permuted(spec: MatrixSpec, order: str) -> MatrixSpec:
    """The spec of a matrix in another order.

    Args:
        spec: Of the matrix as it is.
        order: A key of ``ORDERS``.

    Raises:
        MatrixError: There is no such order.
    """
    if order not in ORDERS:
        raise MatrixError(f"{spec.name}: no order {order!r}; there are {', '.join(ORDERS)}")
    return MatrixSpec(
        name=f"{spec.name}+{order}",
        family=spec.family,
        make=partial(_make, spec, order),
        params={**spec.params, "order": order},
        source=f"{spec.source}, {order}",
    )


def _make(spec: MatrixSpec, order: str) -> sparse.csr_array:
    return ORDERS[order](canonical(spec.make(), spec.name), spec.name)


def _ordered(csr: sparse.csr_array, rows: np.ndarray, cols: np.ndarray) -> sparse.csr_array:
    """The matrix whose row r is row ``rows[r]`` of this one, and likewise its columns."""
    places = np.empty(cols.size, np.int32)
    places[cols] = np.arange(cols.size, dtype=np.int32)
    taken = sparse.csr_array(csr[rows])
    moved = sparse.csr_array((taken.data, places[taken.indices], taken.indptr), shape=csr.shape)
    moved.sort_indices()
    return moved
