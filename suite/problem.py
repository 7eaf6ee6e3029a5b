"""What is asked: an operation on a sparse matrix, the dense columns and the precision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from suite.matrices.base import Matrix, MatrixError


class Op(StrEnum):
    """The two operations: ``y = A x`` and ``C = A B``."""

    SPMV = "spmv"
    SPMM = "spmm"


class DType(StrEnum):
    """Precision of values, inputs and output."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype of the same name."""
        return np.dtype(self.value)

    @property
    def short(self) -> str:
        """``f32`` or ``f64``."""
        return f"f{self.numpy.itemsize * 8}"


def label_of(op: Op, columns: int) -> str:
    """Operation with its dense columns: ``spmv``, ``spmm32``, ``spmm128``."""
    return op.value if op is Op.SPMV else f"{op.value}{columns}"


def key_of(label: str, matrix: str, dtype: DType) -> str:
    """Name of a problem, unique within a campaign: ``spmm32/band-33/f32``."""
    return f"{label}/{matrix}/{dtype.short}"


@dataclass(frozen=True, eq=False)
class Problem:
    """An operation, a matrix, the number of dense columns and a precision.

    Letters used throughout: ``M`` rows, ``N`` columns, ``Z`` nonzeros, ``K`` dense columns.

    Attributes:
        op: The operation.
        matrix: ``A``, M × N with Z stored entries.
        columns: K, the columns of B and C; 1 for SpMV.
        dtype: Precision of A's values, of the dense inputs and of the output.
    """

    op: Op
    matrix: Matrix
    columns: int = 1
    dtype: DType = DType.FLOAT32

    def __post_init__(self) -> None:
        if self.op is Op.SPMV and self.columns != 1:
            raise ValueError(f"spmv has one dense column, not {self.columns}")
        if self.columns < 0:
            raise ValueError(f"dense columns must not be negative, not {self.columns}")

    @property
    def label(self) -> str:
        """See ``label_of``."""
        return label_of(self.op, self.columns)

    @property
    def key(self) -> str:
        """See ``key_of``."""
        return key_of(self.label, self.matrix.name, self.dtype)

    @cached_property
    def values(self) -> np.ndarray:
        """The Z stored values in the problem's precision.

        Raises:
            MatrixError: A value, or a row's sum of magnitudes, is too large for this precision.
        """
        with np.errstate(over="ignore"):
            values = self.matrix.csr.data.astype(self.dtype.numpy)
        if not np.isfinite(values).all():
            where = int(np.flatnonzero(~np.isfinite(values))[0])
            raise MatrixError(
                f"{self.matrix.name}: value {self.matrix.csr.data[where]!r} does not fit"
                f" {self.dtype.value}; measure it with --suite-dtype float64"
            )
        longest = int(np.diff(self.matrix.csr.indptr).max(initial=0))
        largest = float(np.abs(values).max(initial=0))
        if largest * longest >= float(np.finfo(values.dtype).max):
            raise MatrixError(
                f"{self.matrix.name}: {longest} values of up to {largest:.3g} in a row may overflow"
                f" {self.dtype.value}; scale the matrix"
            )
        return np.asarray(values)

    @property
    def flops(self) -> int:
        """Floating-point operations: a multiplication and an addition per entry and column."""
        return 2 * int(self.matrix.csr.nnz) * self.columns
