"""One call of cuSPARSE, prepared: descriptors, workspace, preprocessing; an ``Executable``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from suite.evaluation import Status
from suite.formats.base import Format
from suite.formats.bsr import Bsr
from suite.formats.coo import Coo
from suite.formats.csr import Csr
from suite.formats.sell import Sell
from suite.harness.cuda.device import CudaDevice
from suite.harness.cuda.memory import CudaBuffer, pointer
from suite.harness.device import Buffer, DeviceFault
from suite.harness.judge import POISON
from suite.harness.posed import Posed
from suite.harness.resident import Prepared
from suite.problem import DType, Op

ROW, COLUMN = "row", "column"


@dataclass(frozen=True)
class Candidate:
    """One way of calling the library.

    Attributes:
        format: Storage format.
        algorithm: Name in the library's enumeration, without its prefix.
        preprocess: Whether the library's preprocessing is called first (not timed).
        layout: Layout of B and C; ``row`` for SpMV.
    """

    format: Format
    algorithm: str
    preprocess: bool = False
    layout: str = ROW

    def __str__(self) -> str:
        parts = [self.format.name, self.algorithm.lower()]
        parts += [f"b={self.format.b}"] if isinstance(self.format, Bsr) else []
        parts += ["column-major"] if self.layout == COLUMN else []
        parts += ["preprocessed"] if self.preprocess else []
        return " ".join(parts)


@cache
def _handle(stream: int) -> int:
    # Created once and never destroyed: it names a stream that lives as long as the process.
    from nvmath.bindings import cusparse

    handle = int(cusparse.create())
    cusparse.set_stream(handle, stream)
    return handle


class Call:
    """One prepared call of the library; an ``Executable``."""

    def __init__(self, device: CudaDevice, posed: Posed, candidate: Candidate) -> None:
        try:
            from nvmath.bindings import cusparse
        except ImportError as error:
            raise DeviceFault(
                Status.NOT_APPLICABLE, "cuSPARSE needs the package nvmath-python (extra gpu)"
            ) from error

        ref = posed.ref
        self._api, self._device, self._candidate = cusparse, device, candidate
        self._ref, self._dense_input, self._output = ref, posed.dense, posed.output
        self._handle = _handle(device.stream.handle)
        self._one = np.ones(1, ref.dtype.numpy)
        self._zero = np.zeros(1, ref.dtype.numpy)
        self._type = 0 if ref.dtype is DType.FLOAT32 else 1  # CUDA_R_32F, CUDA_R_64F
        self._own: list[CudaBuffer] = []
        self._descriptors: list[tuple[Callable[[int], None], int]] = []
        try:
            converted = posed.matrix.converted(candidate.format)
            self._prepare(converted.prepared, converted.buffers)
        except DeviceFault:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise DeviceFault(Status.LOAD_ERROR, f"cuSPARSE: {error}") from error

    def run(self) -> None:
        """Enqueues the multiplication."""
        try:
            self._function(*self._arguments, self._workspace)
        except Exception as error:
            raise DeviceFault(Status.LOAD_ERROR, f"cuSPARSE: {error}") from error

    def prepare(self) -> None:
        """Nothing: the library's own preprocessing was done when the call was made."""

    def refresh(self) -> None:
        """Transposes B into the column-major copy."""
        if self._candidate.layout == COLUMN:
            cols = self._ref.shape[1]
            self._device.transpose(
                self._dense_input, self._own[0], cols, self._ref.columns, self._ref.dtype.numpy
            )
            self._device.fill(self._own[1], POISON)

    def collect(self) -> None:
        """Transposes the column-major C into the output."""
        if self._candidate.layout == COLUMN:
            rows = self._ref.shape[0]
            self._device.transpose(
                self._own[1], self._output, self._ref.columns, rows, self._ref.dtype.numpy
            )

    def close(self) -> None:
        """Destroys descriptors and frees memory."""
        self._device.sync()
        for destroy, descriptor in self._descriptors:
            destroy(descriptor)
        for buffer in self._own:
            self._device.free(buffer)
        self._descriptors, self._own = [], []

    def _prepare(self, prepared: Prepared, buffers: dict[str, Buffer]) -> None:
        api, ref = self._api, self._ref
        matrix = self._keep(api.destroy_sp_mat, self._matrix(prepared, buffers))
        operation = int(api.Operation.NON_TRANSPOSE)
        enumeration = api.SpMVAlg if ref.op is Op.SPMV else api.SpMMAlg
        algorithm = int(getattr(enumeration, self._candidate.algorithm))
        one, zero = self._one.ctypes.data, self._zero.ctypes.data
        rows, cols = ref.shape
        if ref.op is Op.SPMV:
            x = self._keep(
                api.destroy_dn_vec, api.create_dn_vec(cols, pointer(self._dense_input), self._type)
            )
            y = self._keep(
                api.destroy_dn_vec, api.create_dn_vec(rows, pointer(self._output), self._type)
            )
            head: tuple[int, ...] = (
                self._handle,
                operation,
                one,
                matrix,
                x,
                zero,
                y,
                self._type,
                algorithm,
            )
            self._function, size, preprocess = (
                api.sp_mv,
                api.sp_mv_buffer_size,
                api.sp_mv_preprocess,
            )
        else:
            dense, output = self._dense_pair()
            b = self._keep(api.destroy_dn_mat, self._dense(cols, dense))
            c = self._keep(api.destroy_dn_mat, self._dense(rows, output))
            head = (
                self._handle,
                operation,
                operation,
                one,
                matrix,
                b,
                zero,
                c,
                self._type,
                algorithm,
            )
            self._function, size, preprocess = (
                api.sp_mm,
                api.sp_mm_buffer_size,
                api.sp_mm_preprocess,
            )
        self._arguments = head
        workspace = self._device.allocate(max(16, size(*head)))
        self._own.append(workspace)
        self._workspace = workspace.pointer
        if self._candidate.preprocess:
            preprocess(*head, self._workspace)

    def _matrix(self, prepared: Prepared, buffers: dict[str, Buffer]) -> int:
        api, sizes = self._api, prepared.sizes
        rows, cols = self._ref.shape
        at = {name: pointer(buffer) for name, buffer in buffers.items()}
        index, base = int(api.IndexType.INDEX_32I), int(api.IndexBase.ZERO)
        match self._candidate.format:
            case Csr():
                return int(
                    api.create_csr(
                        rows,
                        cols,
                        sizes["nnz"],
                        at["row_ptr"],
                        at["col_idx"],
                        at["vals"],
                        index,
                        index,
                        base,
                        self._type,
                    )
                )
            case Coo():
                return int(
                    api.create_coo(
                        rows,
                        cols,
                        sizes["nnz"],
                        at["row_idx"],
                        at["col_idx"],
                        at["vals"],
                        index,
                        base,
                        self._type,
                    )
                )
            case Sell(c=c):
                return int(
                    api.create_sliced_ell(
                        rows, cols, sizes["nnz"], sizes["slots"], c,
                        at["slice_ptr"], at["col_idx"], at["vals"], index, index, base, self._type,
                    )
                )  # fmt: skip
            case Bsr(b=b):
                return int(
                    api.create_bsr(
                        rows // b, cols // b, sizes["blocks"], b, b,
                        at["row_ptr"], at["col_idx"], at["vals"], index, index, base, self._type,
                        int(api.Order.ROW),
                    )
                )  # fmt: skip
        raise DeviceFault(
            Status.LOAD_ERROR, f"cuSPARSE has no format {self._candidate.format.name}"
        )

    def _dense_pair(self) -> tuple[Buffer, Buffer]:
        if self._candidate.layout == ROW:
            return self._dense_input, self._output
        self._own += [self._device.allocate(b.nbytes) for b in (self._dense_input, self._output)]
        self.refresh()
        return self._own[0], self._own[1]

    def _dense(self, rows: int, buffer: Buffer) -> int:
        columns = self._ref.columns
        row_major = self._candidate.layout == ROW
        order = self._api.Order.ROW if row_major else self._api.Order.COL
        stride = columns if row_major else rows
        return int(
            self._api.create_dn_mat(rows, columns, stride, pointer(buffer), self._type, int(order))
        )

    def _keep(self, destroy: Callable[[int], None], descriptor: Any) -> int:
        self._descriptors.append((destroy, int(descriptor)))
        return int(descriptor)
