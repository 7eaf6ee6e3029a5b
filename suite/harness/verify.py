"""What counts as right: a reference in higher precision and a bound that comes from the arithmetic.

For a row with z entries, any order of summation of z rounded products obeys, to first order,

    |y − ŷ| ≤ (z + 2) · u · Σ |a||x|  +  z · s

with u the unit roundoff of the working precision (Higham, *Accuracy and Stability of Numerical
Algorithms*, 2nd ed., §3.1) and s the smallest subnormal, for products that underflow. A fixed
relative tolerance would fail correct programs on badly scaled rows and pass programs that write
zeros.

This module is the definition. The CUDA device computes the same quantities in ``cuda/kernels.cu``
and is held to this module when a problem is loaded.
"""

from __future__ import annotations

import numpy as np
import scipy

from suite.harness.device import Check

GROWTH = 2  # roundings beyond one per entry: the product's own, and the store of a partial sum


def reference(
    row_ptr: np.ndarray,
    col_idx: np.ndarray,
    values: np.ndarray,
    dense: np.ndarray,
    columns: int,
) -> tuple[np.ndarray, np.ndarray]:
    """``A B`` in higher precision, with the bound on each element's error.

    float32 inputs are multiplied in float64, float64 inputs in extended precision (80-bit where the
    host has it).

    Args:
        row_ptr: M + 1.
        col_idx: Z.
        values: Z, in the problem's precision.
        dense: N·K elements, row-major, in the problem's precision.
        columns: K.

    Returns:
        Reference and bound, both M × K.
    """
    working = values.dtype
    higher = np.dtype(np.float64 if working == np.float32 else np.longdouble)
    rows = len(row_ptr) - 1
    inner = dense.size // columns if columns else 0
    right = dense.reshape(inner, columns).astype(higher)
    a = scipy.sparse.csr_array((values.astype(higher), col_idx, row_ptr), shape=(rows, inner))
    exact = a @ right
    a.data = np.abs(a.data)
    magnitude = a @ np.abs(right)
    entries = np.diff(row_ptr).astype(np.float64)[:, None]
    info = np.finfo(working)
    unit = float(info.eps) / 2
    bound = (entries + GROWTH) * unit * magnitude + entries * float(info.smallest_subnormal)
    return exact, bound


def compare(
    row_ptr: np.ndarray,
    col_idx: np.ndarray,
    values: np.ndarray,
    dense: np.ndarray,
    output: np.ndarray,
    rows: int,
    columns: int,
    dtype: np.dtype,
    exact: bool = False,
) -> Check:
    """Compares an output with the reference, element by element.

    Args:
        row_ptr: M + 1, int32.
        col_idx: Z, int32.
        values: Z.
        dense: N·K, row-major.
        output: M·K, row-major.
        rows: M.
        columns: K.
        dtype: Precision of values, dense input and output.
        exact: Whether no rounding is possible on these inputs, so that the bound is 0.

    Returns:
        The check, see ``compare_with``.
    """
    if rows * columns == 0:
        return Check(0.0, 0, 0, -1)
    right, bound = reference(row_ptr, col_idx, values.astype(dtype), dense.astype(dtype), columns)
    return compare_with(right, None if exact else bound, output)


def compare_with(right: np.ndarray, bound: np.ndarray | None, output: np.ndarray) -> Check:
    """Compares an output with a reference that is known.

    Args:
        right: M × K, at least one element, in the output's precision or a higher one.
        bound: On each element's error, M × K; None where it is 0.
        output: M·K, row-major.

    Returns:
        The check. An element is wrong when its error exceeds its bound or it is not finite.
    """
    got = output.reshape(right.shape)
    if bound is None and np.array_equal(got, right):
        return Check(0.0, 0, 0, -1)
    finite = np.isfinite(got)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.subtract(got, right, dtype=right.dtype)  # becomes one where it is not 0
        np.abs(ratio, out=ratio)
        np.divide(ratio, 0.0 if bound is None else bound, out=ratio, where=ratio != 0)
    ratio[~finite] = np.inf
    wrong = ratio > 1
    first = int(np.flatnonzero(wrong.any(axis=1))[0]) if wrong.any() else -1
    return Check(float(ratio.max()), int(wrong.sum()), int(np.isnan(got).sum()), first)
