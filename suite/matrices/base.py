"""A matrix, the recipe that makes it, and the one canonical form in which the suite holds it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy

INT32_MAX = 2**31 - 1


class MatrixError(ValueError):
    """A matrix that cannot be read, built or used; the message names it and says what to do."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """A sparse matrix in canonical form (see ``canonical``).

    Attributes:
        name: Unique, safe as a file name and as part of a pytest id.
        family: The structure it belongs to: ``stencil``, ``power-law``, ``file`` and so on.
        csr: M × N, float64 values, int32 indices, sorted, without duplicates.
        source: How to get it again: a generator with its parameters, or a path.
    """

    name: str
    family: str
    csr: scipy.sparse.csr_array
    source: str = ""

    @cached_property
    def digest(self) -> str:
        """Hex digest of shape, structure and values: equal matrices have equal digests."""
        h = hashlib.blake2b(repr(self.csr.shape).encode(), digest_size=16)
        for part in (self.csr.indptr, self.csr.indices, self.csr.data):
            h.update(np.ascontiguousarray(part).data)
        return h.hexdigest()


@dataclass(frozen=True)
class MatrixSpec:
    """A matrix that can be built, without building it.

    Attributes:
        name: Name of the matrix it builds.
        family: Its structure.
        make: Builds it; takes nothing, is deterministic, may be slow. Returns anything
            ``canonical`` takes.
        params: What distinguishes it within the family.
        source: How to get it again, in words.
    """

    name: str
    family: str
    make: Callable[[], scipy.sparse.sparray | scipy.sparse.spmatrix]
    params: Mapping[str, int | float | str] = field(default_factory=dict)
    source: str = ""

    def build(self) -> Matrix:
        """Builds the matrix in canonical form.

        Raises:
            MatrixError: The source is malformed or cannot be used.
        """
        return Matrix(self.name, self.family, canonical(self.make(), self.name), self.source)


def canonical(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix, name: str
) -> scipy.sparse.csr_array:
    """Brings any SciPy sparse matrix into the form that the suite computes with.

    Duplicates are summed, explicit zeros stay (they are structure), rows are sorted by column.

    Args:
        matrix: Any SciPy sparse matrix or array with two dimensions.
        name: Named in errors.

    Returns:
        CSR with float64 values and int32 indices.

    Raises:
        MatrixError: Complex, NaN or infinite values, or more rows, columns or entries than int32
        counts.
    """
    if matrix.ndim != 2:
        raise MatrixError(f"{name}: a matrix has two dimensions, not {matrix.ndim}")
    if np.issubdtype(matrix.dtype, np.complexfloating):
        raise MatrixError(
            f"{name}: complex values are not supported; give its real part or its modulus"
        )
    if max(*matrix.shape, matrix.nnz) > INT32_MAX:
        raise MatrixError(
            f"{name}: {matrix.shape[0]} × {matrix.shape[1]} with {matrix.nnz} entries is beyond the"
            f" suite's int32 indices (at most {INT32_MAX})"
        )
    csr = scipy.sparse.csr_array(matrix)
    if csr is matrix or np.shares_memory(csr.data, getattr(matrix, "data", csr.indptr)):
        csr = csr.copy()
    csr.sum_duplicates()
    indices = csr.indices.astype(np.int32, copy=False)
    indptr = csr.indptr.astype(np.int32, copy=False)
    data = csr.data.astype(np.float64, copy=False)
    if not np.isfinite(data).all():
        at = int(np.flatnonzero(~np.isfinite(data))[0])
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        raise MatrixError(
            f"{name}: entry ({row + 1}, {indices[at] + 1}) is {data[at]}; values must be finite"
        )
    out = scipy.sparse.csr_array((data, indices, indptr), shape=matrix.shape)
    out.has_sorted_indices = True
    out.has_canonical_format = True
    return out
