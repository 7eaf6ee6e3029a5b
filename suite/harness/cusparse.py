"""cuSPARSE down the same path as every program: same buffers, same checks, same clock.

Two routines: ``cusparse`` is what a user gets who calls the library with its defaults; ``cusparse_best`` is
the fastest of its algorithms, formats, dense layouts and preprocessing on the problem at hand. For the latter
each candidate is verified and timed briefly, then the fastest few are timed in full; its hot and its cold
figure may come from different candidates, which makes it the strictest reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from suite.evaluation import Status
from suite.formats.base import Format, NotApplicableError
from suite.formats.bsr import Bsr
from suite.formats.coo import Coo
from suite.formats.csr import Csr
from suite.formats.sell import Sell
from suite.harness.bench import Prepared
from suite.harness.cuda import CudaBuffer, CudaDevice
from suite.harness.device import Buffer, Device, DeviceFault
from suite.harness.judge import Stage, Verdict, judge
from suite.harness.timing import Precision
from suite.problem import DType, Op

Arrays = Callable[[Format], tuple[Prepared, dict[str, Buffer]]]

SCREEN = Precision(relative=0.05, least=3, most=5, budget_ms=2.0, sample_us=200.0)
FINALISTS = 3
HOPELESS = 4.0  # a first run so many times slower than the best screened time ends a candidate
MAX_BSR_FILL = 3.0  # value slots per entry beyond which no block format wins
_ROW, _COLUMN = "row", "column"


@dataclass(frozen=True)
class Pose:
    """The problem as the library sees it: matrix, precision and the dense buffers."""

    op: Op
    csr: sparse.csr_array
    columns: int
    dtype: DType
    dense: Buffer
    output: Buffer

    @property
    def shape(self) -> tuple[int, int]:
        """M and N."""
        rows, cols = self.csr.shape
        return rows, cols


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
    layout: str = _ROW

    def __str__(self) -> str:
        parts = [self.format.name, self.algorithm.lower()]
        parts += [f"b={self.format.b}"] if isinstance(self.format, Bsr) else []
        parts += ["column-major"] if self.layout == _COLUMN else []
        parts += ["preprocessed"] if self.preprocess else []
        return " ".join(parts)


def judge_routine(
    device: Device,
    routine: str,
    pose: Pose,
    arrays: Arrays,
    stage: Callable[[Format], Stage],
    precision: Precision | None,
) -> Verdict:
    """Verifies and times a routine.

    Args:
        device: A CUDA device.
        routine: ``cusparse`` or ``cusparse_best``.
        pose: The problem.
        arrays: Gives the problem's matrix in a format.
        stage: Gives the stage to judge that format on.
        precision: How precisely to time.

    Returns:
        The verdict; its detail names the candidate.
    """
    if not isinstance(device, CudaDevice):
        raise DeviceFault(Status.NOT_APPLICABLE, f"{routine} needs an NVIDIA GPU")
    if 0 in (*pose.shape, pose.columns):
        raise DeviceFault(Status.NOT_APPLICABLE, f"{routine} takes no empty dimension")

    def attempt(candidate: Candidate, how: Precision | None) -> Verdict:
        prepared, buffers = arrays(candidate.format)
        call = _Call(device, pose, candidate, prepared, buffers)
        try:
            return judge(device, stage(candidate.format), call, how)
        finally:
            call.close()

    if routine == "cusparse":
        default = Candidate(Csr(), "DEFAULT")
        return replace(attempt(default, precision), detail=str(default))
    return _best(device, pose, arrays, attempt, precision)


def candidates(op: Op) -> Iterator[Candidate]:
    """Everything that the library offers for the operation."""
    if op is Op.SPMV:
        for algorithm in ("CSR_ALG1", "CSR_ALG2"):
            for preprocess in (False, True):
                yield Candidate(Csr(), algorithm, preprocess)
        yield from (Candidate(Coo(), algorithm) for algorithm in ("COO_ALG1", "COO_ALG2"))
        yield Candidate(Sell(c=32, sigma=1), "SELL_ALG1")
        yield from (Candidate(Bsr(b=b), "BSR_ALG1") for b in (2, 3, 4, 8, 16))
        return
    for layout in (_ROW, _COLUMN):
        for algorithm in ("CSR_ALG1", "CSR_ALG2", "CSR_ALG3"):
            for preprocess in (False, True):
                yield Candidate(Csr(), algorithm, preprocess, layout)
        for algorithm in ("COO_ALG1", "COO_ALG2", "COO_ALG3", "COO_ALG4"):
            yield Candidate(Coo(), algorithm, False, layout)
        yield from (Candidate(Bsr(b=b), "BSR_ALG1", False, layout) for b in (2, 3, 4, 8, 16))


def _best(
    device: CudaDevice,
    pose: Pose,
    arrays: Arrays,
    attempt: Callable[[Candidate, Precision | None], Verdict],
    precision: Precision | None,
) -> Verdict:
    screened: list[tuple[float, Candidate, Verdict]] = []
    refused: list[str] = []
    for candidate in candidates(pose.op):
        try:
            if not _sensible(candidate, pose):
                continue
            best = min((us for us, _, _ in screened), default=float("inf"))
            if _first_run_us(device, pose, candidate, arrays) > HOPELESS * best + 50:
                continue
            verdict = attempt(candidate, SCREEN)
        except NotApplicableError:
            continue
        except DeviceFault as fault:
            if fault.status is Status.MEMORY_FAULT:
                raise
            refused.append(f"{candidate}: {fault}")
            continue
        if verdict.status is Status.OK and verdict.hot is not None:
            screened.append((verdict.hot.median_us, candidate, verdict))
        else:
            refused.append(f"{candidate}: {verdict.error}")
    if not screened:
        return Verdict(Status.WRONG_RESULT, f"no candidate was right: {'; '.join(refused)[:500]}")
    screened.sort(key=lambda row: row[0])
    finals = [
        (candidate, attempt(candidate, precision)) for _, candidate, _ in screened[:FINALISTS]
    ]
    timed = [(c, v) for c, v in finals if v.hot is not None and v.cold is not None]
    if not timed:
        return finals[0][1]
    hot = min(timed, key=lambda row: row[1].hot.median_us)  # type: ignore[union-attr]
    cold = min(timed, key=lambda row: row[1].cold.median_us)  # type: ignore[union-attr]
    detail = str(hot[0]) if hot[0] == cold[0] else f"{hot[0]}; cold: {cold[0]}"
    if refused:
        detail += f" ({len(refused)} candidates refused or wrong: {'; '.join(refused)[:300]})"
    return replace(hot[1], cold=cold[1].cold, detail=detail)


def _sensible(candidate: Candidate, pose: Pose) -> bool:
    """Whether a candidate can be called at all and is worth its conversion."""
    fmt = candidate.format
    if not isinstance(fmt, Bsr):
        return True
    if pose.shape[0] % fmt.b or pose.shape[1] % fmt.b:
        return False  # the library would read past x and write past y
    return fmt.footprint(pose.csr).value_slots <= MAX_BSR_FILL * int(pose.csr.nnz)


def _first_run_us(device: CudaDevice, pose: Pose, candidate: Candidate, arrays: Arrays) -> float:
    """A single run between events, to end hopeless candidates early."""
    prepared, buffers = arrays(candidate.format)
    call = _Call(device, pose, candidate, prepared, buffers)
    try:
        call.run()
        return device.single_run_us(call.run)
    finally:
        call.close()


@cache
def _handle(stream: int) -> int:
    # Created once and never destroyed: it names a stream that lives as long as the process.
    from nvmath.bindings import cusparse

    handle = int(cusparse.create())
    cusparse.set_stream(handle, stream)
    return handle


class _Call:
    """One prepared call of the library; an ``Executable``."""

    def __init__(
        self,
        device: CudaDevice,
        pose: Pose,
        candidate: Candidate,
        prepared: Prepared,
        buffers: dict[str, Buffer],
    ) -> None:
        from nvmath.bindings import cusparse

        self._api, self._device, self._pose, self._candidate = cusparse, device, pose, candidate
        self._handle = _handle(device.stream.handle)
        self._one = np.ones(1, pose.dtype.numpy)
        self._zero = np.zeros(1, pose.dtype.numpy)
        self._type = 0 if pose.dtype is DType.FLOAT32 else 1  # CUDA_R_32F, CUDA_R_64F
        self._own: list[CudaBuffer] = []
        self._descriptors: list[tuple[Callable[[int], None], int]] = []
        try:
            self._prepare(prepared, buffers)
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

    def refresh(self) -> None:
        """Transposes B into the column-major copy."""
        if self._candidate.layout == _COLUMN:
            cols = self._pose.shape[1]
            self._device.transpose(
                self._pose.dense, self._own[0], cols, self._pose.columns, self._pose.dtype.numpy
            )
            self._device.fill(self._own[1], 0xFF)

    def collect(self) -> None:
        """Transposes the column-major C into the output."""
        if self._candidate.layout == _COLUMN:
            rows = self._pose.shape[0]
            self._device.transpose(
                self._own[1], self._pose.output, self._pose.columns, rows, self._pose.dtype.numpy
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
        api, pose = self._api, self._pose
        matrix = self._keep(api.destroy_sp_mat, self._matrix(prepared, buffers))
        operation = int(api.Operation.NON_TRANSPOSE)
        enumeration = api.SpMVAlg if pose.op is Op.SPMV else api.SpMMAlg
        algorithm = int(getattr(enumeration, self._candidate.algorithm))
        one, zero = self._one.ctypes.data, self._zero.ctypes.data
        rows, cols = pose.shape
        if pose.op is Op.SPMV:
            x = self._keep(
                api.destroy_dn_vec, api.create_dn_vec(cols, _pointer(pose.dense), self._type)
            )
            y = self._keep(
                api.destroy_dn_vec, api.create_dn_vec(rows, _pointer(pose.output), self._type)
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
        rows, cols = self._pose.shape
        at = {name: _pointer(buffer) for name, buffer in buffers.items()}
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
        if self._candidate.layout == _ROW:
            return self._pose.dense, self._pose.output
        self._own += [
            self._device.allocate(b.nbytes) for b in (self._pose.dense, self._pose.output)
        ]
        self.refresh()
        return self._own[0], self._own[1]

    def _dense(self, rows: int, buffer: Buffer) -> int:
        columns = self._pose.columns
        row_major = self._candidate.layout == _ROW
        order = self._api.Order.ROW if row_major else self._api.Order.COL
        stride = columns if row_major else rows
        return int(
            self._api.create_dn_mat(rows, columns, stride, _pointer(buffer), self._type, int(order))
        )

    def _keep(self, destroy: Callable[[int], None], descriptor: Any) -> int:
        self._descriptors.append((destroy, int(descriptor)))
        return int(descriptor)


def _pointer(buffer: Buffer) -> int:
    assert isinstance(buffer, CudaBuffer)
    return buffer.pointer
