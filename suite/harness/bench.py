"""Problems resident on a device, and the judging of programs on them. Runs inside a worker process.

A matrix is uploaded once, converted once per format, and stays until it is released. Programs get
their own copies; the copies that the check uses are never given to a program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse

from suite.evaluation import Status
from suite.formats.base import Footprint, Format, NotApplicableError
from suite.harness import verify
from suite.harness.device import (
    Buffer,
    Check,
    Compiled,
    Device,
    DeviceFacts,
    DeviceFault,
    Executable,
)
from suite.harness.judge import Stage, Verdict, faulted, judge
from suite.harness.plan import Plan
from suite.harness.timing import Precision
from suite.problem import DType, Op

ANCHOR_FLOPS = (
    3e8  # multiplications up to this size are anchored to SciPy when loaded: well under a second
)
MAX_WORKSPACE = 0.25  # of the device's memory


@dataclass(frozen=True)
class ProblemRef:
    """A problem as it travels to a worker.

    Attributes:
        key: Its name within the campaign.
        digest: Content digest of the matrix.
        folder: Where ``indptr.npy``, ``indices.npy`` and ``values.npy`` (in the problem's
            precision) lie.
        shape: M and N.
        op: The operation.
        columns: K.
        dtype: Precision.
        seed: Of the fresh values and dense inputs.
    """

    key: str
    digest: str
    folder: Path
    shape: tuple[int, int]
    op: Op
    columns: int
    dtype: DType
    seed: int


@dataclass(frozen=True)
class Prepared:
    """A matrix in a format, ready on the device.

    Attributes:
        sizes: Every integer that a program may name.
        nbytes: Bytes of each array.
        conversion_ms: Host time of the conversion.
    """

    sizes: dict[str, int]
    nbytes: dict[str, int]
    conversion_ms: float


@dataclass(eq=False)
class _Converted:
    prepared: Prepared
    index: dict[str, Buffer]
    slots: dict[str, Buffer | None]
    values: dict[str, Buffer]
    in_place: int = -1  # the input set whose values are there


@dataclass(eq=False)
class _Resident:
    """A matrix on the device: the trusted copy, with both value sets, and its formats."""

    csr: sparse.csr_array
    row_ptr: Buffer
    col_idx: Buffer
    values: tuple[Buffer, Buffer]
    formats: dict[Format, _Converted] = field(default_factory=dict)
    footprints: dict[Format, Footprint | NotApplicableError] = field(default_factory=dict)

    def footprint(self, fmt: Format) -> Footprint:
        """The format's footprint on this matrix, or its refusal; computed once."""
        if fmt not in self.footprints:
            try:
                self.footprints[fmt] = fmt.footprint(self.csr)
            except NotApplicableError as refusal:
                self.footprints[fmt] = refusal
        found = self.footprints[fmt]
        if isinstance(found, NotApplicableError):
            raise NotApplicableError(str(found))
        return found


@dataclass(eq=False)
class _Posed:
    """A problem on the device: a resident matrix with dense input and output."""

    ref: ProblemRef
    resident: _Resident
    dense: Buffer
    output: Buffer
    in_place: int = -1


class Bench:
    """Judges programs on resident problems.

    Args:
        device: Where they run.
        isolate: Runs a judgement so that its fault does no harm here; the identity where the whole
            process is the isolation.
    """

    def __init__(
        self, device: Device, isolate: Callable[[Callable[[], Verdict]], Verdict] = lambda f: f()
    ) -> None:
        self.device = device
        self._isolate = isolate
        self._matrices: dict[tuple[str, DType], _Resident] = {}
        self._posed: dict[str, _Posed] = {}

    def facts(self) -> DeviceFacts:
        """What the device is."""
        return self.device.facts

    def hold(self, ref: ProblemRef) -> None:
        """Makes a problem resident.

        Raises:
            DeviceFault: No memory for it, or the device's check disagrees with SciPy.
        """
        if ref.key in self._posed:
            return
        resident = self._matrix(ref)
        itemsize = ref.dtype.numpy.itemsize
        rows, cols = ref.shape
        dense = self.device.allocate(cols * ref.columns * itemsize)
        output = self.device.allocate(rows * ref.columns * itemsize)
        self._posed[ref.key] = posed = _Posed(ref, resident, dense, output)
        if (
            self.device.facts.kind == "cuda"
            and 0 < 2 * resident.csr.nnz * ref.columns <= ANCHOR_FLOPS
        ):
            self._anchor(posed)

    def prepare(self, key: str, fmt: Format) -> Prepared:
        """Converts a resident problem's matrix to a format.

        Raises:
            NotApplicableError: The format does not fit the matrix.
            DeviceFault: No memory for it.
        """
        posed = self._posed[key]
        try:
            return self._converted(posed, fmt).prepared
        except DeviceFault:
            self._drop_formats(posed.resident)  # memory is short: keep this one only
            return self._converted(posed, fmt).prepared

    def judge_program(
        self, key: str, fmt: Format, plan: Plan, compiled: Compiled, precision: Precision | None
    ) -> Verdict:
        """Verifies and times a program on a resident problem in a prepared format."""
        posed = self._posed[key]
        converted = self._converted(posed, fmt)

        def attempt() -> Verdict:
            try:
                return self._run_program(posed, converted, plan, compiled, precision)
            except DeviceFault as fault:
                return faulted(fault)

        verdict = self._isolate(attempt)
        if verdict.spoiled:
            self._forget(posed, fmt)
        return verdict

    def judge_library(self, key: str, routine: str, precision: Precision | None) -> Verdict:
        """Verifies and times a library routine on a resident problem."""
        from suite.harness.cuda import cusparse  # needs a CUDA device
        from suite.harness.cuda.cusparse_call import Pose

        posed = self._posed[key]

        def arrays(fmt: Format) -> tuple[Prepared, dict[str, Buffer]]:
            converted = self._converted(posed, fmt)
            return converted.prepared, {**converted.index, **converted.values}

        def stage(fmt: Format) -> Stage:
            return self._stage(posed, self._converted(posed, fmt), ())

        pose = Pose(
            posed.ref.op,
            posed.ref.shape,
            posed.ref.columns,
            posed.ref.dtype,
            posed.dense,
            posed.output,
            posed.resident.footprint,
        )
        try:
            return cusparse.judge_routine(self.device, routine, pose, arrays, stage, precision)
        except DeviceFault as fault:
            return faulted(fault)

    def release(self, digest: str) -> None:
        """Frees everything of one matrix."""
        for key in [k for k, p in self._posed.items() if p.ref.digest == digest]:
            posed = self._posed.pop(key)
            self.device.free(posed.dense)
            self.device.free(posed.output)
        for known in [k for k in self._matrices if k[0] == digest]:
            resident = self._matrices.pop(known)
            self._drop_formats(resident)
            for buffer in (resident.row_ptr, resident.col_idx, *resident.values):
                self.device.free(buffer)

    # Inside

    def _matrix(self, ref: ProblemRef) -> _Resident:
        known = (ref.digest, ref.dtype)
        if known not in self._matrices:
            indptr, indices, values = (
                np.load(ref.folder / f"{name}.npy", mmap_mode="r")
                for name in ("indptr", "indices", "values")
            )
            csr = sparse.csr_array((values, indices, indptr), shape=ref.shape, copy=False)
            csr.has_canonical_format = True
            fresh = self.device.allocate(values.nbytes)
            self.device.uniform(fresh, ref.dtype.numpy, ref.seed + 1)
            own = self.device.upload(values)
            self._matrices[known] = _Resident(
                csr, self.device.upload(indptr), self.device.upload(indices), (own, fresh)
            )
        return self._matrices[known]

    def _converted(self, posed: _Posed, fmt: Format) -> _Converted:
        resident = posed.resident
        if fmt in resident.formats:
            return resident.formats[fmt]
        resident.footprint(fmt)  # refuses before anything is allocated
        started = time.perf_counter()
        layout = fmt.convert(resident.csr)
        elapsed = (time.perf_counter() - started) * 1e3
        itemsize = posed.ref.dtype.numpy.itemsize
        index = {name: self.device.upload(array) for name, array in layout.index.items()}
        slots = {n: None if m is None else self.device.upload(m) for n, m in layout.values.items()}
        counts = {n: resident.csr.nnz if m is None else m.size for n, m in layout.values.items()}
        values = {name: self.device.allocate(count * itemsize) for name, count in counts.items()}
        nbytes = {name: buffer.nbytes for name, buffer in {**index, **values}.items()}
        rows, cols = posed.ref.shape
        sizes = {
            "rows": rows,
            "cols": cols,
            "nnz": resident.csr.nnz,
            "sms": self.device.facts.multiprocessors,
            "itemsize": itemsize,
            **layout.sizes,
        }
        resident.formats[fmt] = _Converted(Prepared(sizes, nbytes, elapsed), index, slots, values)
        return resident.formats[fmt]

    def _stage(self, posed: _Posed, converted: _Converted, scratch: tuple[Buffer, ...]) -> Stage:
        ref, resident = posed.ref, posed.resident
        name = "x" if ref.op is Op.SPMV else "B"
        dtype = ref.dtype.numpy

        def use(number: int) -> None:
            if converted.in_place != number:
                for value, out in converted.values.items():
                    self.device.gather(resident.values[number], converted.slots[value], out, dtype)
                converted.in_place = number
            if posed.in_place != number:
                self.device.uniform(posed.dense, dtype, _dense_seed(ref, number))
                posed.in_place = number

        def check() -> Check:
            csr = (resident.row_ptr, resident.col_idx, resident.values[posed.in_place])
            return self.device.check(
                csr, posed.dense, posed.output, ref.shape[0], ref.columns, dtype
            )

        inputs = {**converted.index, **converted.values, name: posed.dense}
        return Stage(use, check, posed.output, inputs, scratch)

    def _run_program(
        self,
        posed: _Posed,
        converted: _Converted,
        plan: Plan,
        compiled: Compiled,
        precision: Precision | None,
    ) -> Verdict:
        wanted = sum(w.nbytes for w in plan.workspaces)
        limit = int(self.device.facts.memory_bytes * MAX_WORKSPACE)
        if wanted > limit:
            raise DeviceFault(
                Status.LOAD_ERROR, f"{wanted:,} bytes of workspace; at most {limit:,} are given"
            )
        scratch: dict[str, Buffer] = {}
        executable: Executable | None = None
        try:
            for workspace in plan.workspaces:
                scratch[workspace.name] = self.device.allocate(workspace.nbytes)
            stage = self._stage(posed, converted, tuple(scratch.values()))
            bound = {n: b for n, b in stage.inputs.items() if n in plan.bound}
            stage = Stage(stage.use, stage.check, stage.output, bound, stage.scratch)
            buffers = {**stage.inputs, **scratch, plan.output: posed.output}
            executable = self.device.load(compiled, plan, buffers)
            return judge(self.device, stage, executable, precision)
        finally:
            if executable is not None:
                executable.close()
            for buffer in scratch.values():
                self.device.free(buffer)

    def _anchor(self, posed: _Posed) -> None:
        """Holds the device's check to SciPy: it accepts its product, sees one element altered."""
        ref, resident = posed.ref, posed.resident
        self.device.uniform(posed.dense, ref.dtype.numpy, _dense_seed(ref, 0))
        dense = self.device.download(posed.dense, ref.dtype.numpy)
        csr = resident.csr
        exact, bound = verify.reference(csr.indptr, csr.indices, csr.data, dense, ref.columns)
        right = exact.astype(ref.dtype.numpy)
        with np.errstate(over="ignore"):
            altered = right.copy()
            row = int(np.argmax(bound[:, 0]))
            altered[row, 0] += np.asarray(4 * bound[row, 0]).astype(ref.dtype.numpy)
        trusted = (resident.row_ptr, resident.col_idx, resident.values[0])
        for product, wrong in ((right, 0), (altered, int(altered[row, 0] != right[row, 0]))):
            output = self.device.upload(product.reshape(-1))
            found = self.device.check(
                trusted, posed.dense, output, ref.shape[0], ref.columns, ref.dtype.numpy
            )
            self.device.free(output)
            if found.wrong != wrong:
                raise DeviceFault(
                    Status.INFRASTRUCTURE_ERROR,
                    f"{ref.key}: the device's check and SciPy disagree ({found.wrong} wrong"
                    f" instead of {wrong}, ratio {found.ratio:.3g}, row {found.row})",
                )

    def _forget(self, posed: _Posed, fmt: Format) -> None:
        posed.in_place = -1
        converted = posed.resident.formats.pop(fmt, None)
        if converted is not None:
            self._free(converted)

    def _drop_formats(self, resident: _Resident) -> None:
        for converted in resident.formats.values():
            self._free(converted)
        resident.formats.clear()

    def _free(self, converted: _Converted) -> None:
        slots = [b for b in converted.slots.values() if b is not None]
        for buffer in (*converted.index.values(), *slots, *converted.values.values()):
            self.device.free(buffer)


def _dense_seed(ref: ProblemRef, number: int) -> int:
    return ref.seed + 1000 + number
