"""Holds a device's check to SciPy on some rows of a problem, whatever its size.

SciPy's product of those rows is put where a program's output would be, and zeros everywhere else.
The check must then see exactly as many wrong elements fewer than in zeros alone as SciPy says that
there are, and one more when one of them is altered.
"""

from __future__ import annotations

import numpy as np
import scipy

from suite.evaluation import Status
from suite.harness import verify
from suite.harness.device import Device, DeviceFault
from suite.harness.judge import OWN
from suite.harness.posed import Posed

PRODUCTS = 100_000  # multiplications that SciPy does for it, where rows are short enough
MOST_BYTES = 16 << 20  # of dense input and of output: both travel over the bus


def anchor(device: Device, posed: Posed) -> None:
    """Compares on the longest row and its neighbours; does nothing where inputs are too large.

    Raises:
        DeviceFault: The check and SciPy disagree, or no memory.
    """
    ref, csr = posed.ref, posed.matrix.csr
    dtype, columns = ref.dtype.numpy, ref.columns
    if max(posed.dense.nbytes, posed.output.nbytes) > MOST_BYTES or not csr.nnz * columns:
        return
    rows = block(csr.indptr, PRODUCTS // columns)
    posed.use(OWN)
    dense = device.download(posed.dense, dtype)
    exact, bound = _product(csr, dense.reshape(-1, columns), rows)
    right = np.zeros((ref.shape[0], columns), dtype)
    nothing = _wrong(device, posed, right)
    right[rows] = exact.astype(dtype)
    told = int(np.count_nonzero(np.abs(exact) > bound))
    found = nothing - _wrong(device, posed, right)
    row = int(np.argmax(bound[:, 0]))
    correct = right[rows.start + row, 0]
    right[rows.start + row, 0] = correct + np.asarray(4 * bound[row, 0]).astype(dtype)
    altered = int(right[rows.start + row, 0] != correct)
    seen = _wrong(device, posed, right) - (nothing - found)
    if (found, seen) != (told, altered):
        raise DeviceFault(
            Status.INFRASTRUCTURE_ERROR,
            f"{ref.key}: the device's check and SciPy disagree on rows {rows.start} to"
            f" {rows.stop - 1}: {found} elements right instead of {told}, {seen} altered ones seen"
            f" instead of {altered}",
        )


def block(row_ptr: np.ndarray, entries: int) -> slice:
    """The longest row with as many neighbours as have at most ``entries`` entries with it.

    Args:
        row_ptr: M + 1, with M ≥ 1.
        entries: Wanted at most; one row may have more.
    """
    longest = int(np.argmax(np.diff(row_ptr)))
    half = max(entries - int(row_ptr[longest + 1] - row_ptr[longest]), 0) // 2
    first = int(np.searchsorted(row_ptr, row_ptr[longest] - half, "left"))
    last = int(np.searchsorted(row_ptr, row_ptr[longest + 1] + half, "right")) - 1
    return slice(min(first, longest), max(last, longest + 1))


def _product(
    csr: scipy.sparse.csr_array, dense: np.ndarray, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """SciPy's product of some rows, and its bound; what they do not read is left out."""
    row_ptr = csr.indptr[rows.start : rows.stop + 1]
    mine = slice(int(row_ptr[0]), int(row_ptr[-1]))
    read, col_idx = np.unique(csr.indices[mine], return_inverse=True)
    columns = dense.shape[1]
    return verify.reference(
        row_ptr - row_ptr[0],
        col_idx.astype(row_ptr.dtype),
        csr.data[mine],
        dense[read].reshape(-1),
        columns,
    )


def _wrong(device: Device, posed: Posed, product: np.ndarray) -> int:
    output = device.upload(product.reshape(-1))
    try:
        return posed.check(output).wrong
    finally:
        device.free(output)
