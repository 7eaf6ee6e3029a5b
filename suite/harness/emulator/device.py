"""The ``Device`` that needs no GPU.

Everything happens at the call, on the host's processors; ``sync`` has nothing to wait for. An
access out of bounds raises a signal: run evaluations in a forked child that has called
``faults.install_fault_handler``. An endless loop is ended from outside.

What differs from a GPU on purpose: an integer division by zero (or of the lowest integer by −1) is
a fault here, where a GPU goes on with an arbitrary value.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from suite.evaluation import Resources, Status
from suite.harness import verify
from suite.harness.device import Buffer, Check, Compiled, DeviceFacts, DeviceFault, Measured
from suite.harness.emulator import limits
from suite.harness.emulator.build import SHARED_BYTES, Builder
from suite.harness.emulator.library import LaunchRecord, ProgramLibrary, Runtime
from suite.harness.emulator.vault import Vault
from suite.harness.inputs import Stream
from suite.harness.plan import BufferArg, Launch, Plan, ScalarArg
from suite.harness.timing import Precision

MULTIPROCESSORS = 4
VAULT_BYTES = 256 << 20  # a problem of 20,000 rows and 128 columns takes 142 MB


@dataclass(frozen=True)
class HostBuffer:
    """Emulated device memory.

    Attributes:
        address: Of the first byte; a multiple of 16.
        nbytes: Size. Reads may go on to the next multiple of 16, anything further is a fault.
    """

    address: int
    nbytes: int

    @property
    def raw(self) -> memoryview:
        """The bytes, not copied."""
        return memoryview((ctypes.c_uint8 * self.nbytes).from_address(self.address))

    def view(self, dtype: DTypeLike) -> np.ndarray:
        """The contents, not copied, as whole elements of ``dtype``."""
        return np.frombuffer(self.raw, dtype=dtype)


@dataclass(frozen=True)
class Steps:
    """Buffers to clear, then kernels to launch."""

    cleared: tuple[HostBuffer, ...]
    launches: tuple[LaunchRecord, ...]


class EmulatorProgram:
    """A loaded program with its launches; an ``Executable``.

    Attributes:
        runs: Runs so far. Every second one looks for races: it takes threads and blocks in the
            opposite order and lets other threads go first before every store, so that a program
            that owes its answer to the order in which its threads run is wrong in one of two.
    """

    def __init__(
        self,
        runtime: Runtime,
        library: ProgramLibrary,
        preparing: Steps,
        running: Steps,
    ) -> None:
        """Keeps what ``EmulatorDevice.load`` has made ready."""
        self._runtime = runtime
        self._library = library
        self._preparing, self._running = preparing, running
        self.preparations = self.runs = 0

    def prepare(self) -> None:
        """Fills the derived arrays; looks for races and raises as ``run`` does."""
        self._go(self._preparing, backward=self.preparations % 2)
        self.preparations += 1

    def run(self) -> None:
        """Clears, then launches; returns when all is done.

        Raises:
            DeviceFault: ``timeout`` for a deadlock, ``memory_fault`` for a trap or a write beside a
                buffer.
        """
        self._go(self._running, backward=self.runs % 2)
        self.runs += 1

    def _go(self, steps: Steps, backward: int) -> None:
        for buffer in steps.cleared:
            ctypes.memset(buffer.address, 0, buffer.nbytes)
        for record in steps.launches:
            record.backward = backward
            failure = self._runtime.launch(record)
            if failure is not None:
                raise DeviceFault(failure.status, failure.message)

    def refresh(self) -> None:
        """Nothing to take in: programs read the buffers themselves."""

    def collect(self) -> None:
        """Nothing to bring: programs write the output buffer themselves."""

    def close(self) -> None:
        """Unloads the program; a later run does nothing."""
        self._preparing = self._running = Steps((), ())
        self._library.close()


class EmulatorDevice:
    """Runs programs on the host's processors, see ``suite.harness.device.Device``."""

    facts: DeviceFacts

    def __init__(
        self,
        cache: Path,
        *,
        builder: Builder | None = None,
        workers: int | None = None,
        confine: Callable[[], object] = lambda: None,
    ) -> None:
        """Builds or finds the runtime.

        Args:
            cache: Folder for compiled programs.
            builder: How to compile; by default with ``g++`` into ``cache``.
            workers: Host threads that blocks are spread over; by default, one per processor.
            confine: Called when a program is loaded and has not run: takes from the process what
                a program must not have. Only for processes that load one program and end.

        Raises:
            EmulatorUnavailable: This host has no C++ compiler.
        """
        self._builder = builder or Builder(cache)
        self._runtime = Runtime.load(self._builder.runtime)
        self._workers = workers or len(os.sched_getaffinity(0))
        self._confine = confine
        self._vault = Vault(VAULT_BYTES)
        self.facts = DeviceFacts(
            kind="emulator",
            name="emulator",
            arch="sm_90",
            multiprocessors=MULTIPROCESSORS,
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            shared_bytes=SHARED_BYTES,
            l2_bytes=0,
            details={
                "compiler": self._builder.version,
                "host": platform.machine(),
                "workers": str(self._workers),
            },
        )

    def allocate(self, nbytes: int) -> HostBuffer:
        """Memory with undefined contents between inaccessible pages.

        Raises:
            DeviceFault: There is not so much memory (``infrastructure_error``).
        """
        address = self._runtime.allocate(nbytes)
        if address == 0:
            raise DeviceFault(
                Status.INFRASTRUCTURE_ERROR,
                f"the emulator has no memory for a buffer of {nbytes} bytes; use a smaller problem",
            )
        return HostBuffer(address, nbytes)

    def upload(self, array: np.ndarray) -> HostBuffer:
        """A buffer that holds the array."""
        array = np.ascontiguousarray(array)
        buffer = self.allocate(array.nbytes)
        buffer.view(np.uint8)[:] = array.reshape(-1).view(np.uint8)
        return buffer

    def download(self, buffer: Buffer, dtype: np.dtype) -> np.ndarray:
        """A copy of the contents, one-dimensional."""
        return _host(buffer).view(dtype).copy()

    def free(self, buffer: Buffer) -> None:
        """Gives memory back; a later access is a fault."""
        self._runtime.free(_host(buffer).address)

    def fill(self, buffer: Buffer, byte: int) -> None:
        """Sets every byte."""
        ctypes.memset(_host(buffer).address, byte, buffer.nbytes)

    def fill_stream(self, buffer: Buffer, dtype: np.dtype, stream: Stream) -> None:
        """Fills with the stream's first elements."""
        out = _host(buffer).view(dtype)
        key = (stream, out.size, np.dtype(dtype).str)
        with self._vault.open(key, lambda: (stream.take(out.size, dtype),)) as (elements,):
            out[:] = elements

    def gather(self, source: Buffer, slots: Buffer | None, out: Buffer, dtype: np.dtype) -> None:
        """out[i] = source[slots[i]], 0 where slots[i] is -1; a copy where ``slots`` is None."""
        values, target = _host(source).view(dtype), _host(out).view(dtype)
        if slots is None:
            target[:] = values
            return
        index = _host(slots).view(np.int32)
        target[:] = 0
        held = index >= 0
        target[held] = values[index[held]]

    def forget(self) -> None:
        """Drops the inputs and references that it remembers; they will be computed anew."""
        self._vault.clear()

    def digests(self, buffers: Sequence[Buffer]) -> list[int]:
        """A 64-bit digest of each buffer's contents."""
        return [_digest(_host(buffer)) for buffer in buffers]

    def build(self, compiled: Compiled, plan: Plan) -> None:
        """Compiles the program as C++, unless the cache has it: ``load`` then starts no compiler.

        Call it before a fork: the compiler has limits of its own, which a time limit on the child
        that runs the program would cut short.

        Raises:
            DeviceFault: The program calls what no device has (``load_error``).
            UnsupportedProgram: It uses what the emulator lacks, such as inline PTX, or the compiler
                took too long over it.
            EmulatorUnavailable: This host has no C++ compiler.
        """
        self._object(compiled, plan)

    def _object(self, compiled: Compiled, plan: Plan) -> Path:
        # Of empty launches too: one object then serves every matrix.
        launches = (*plan.prepares, *plan.launches)
        kernels = {(launch.kernel, len(launch.args)) for launch in launches}
        return self._builder.program(compiled.source, kernels)

    def load(
        self, compiled: Compiled, plan: Plan, buffers: Mapping[str, Buffer]
    ) -> EmulatorProgram:
        """Prepares the program's launches; compiles it first, where ``build`` has not.

        Raises:
            DeviceFault: A launch is beyond the limits of the architecture (``load_error``), or as
                ``build``.
            UnsupportedProgram: As ``build``.
            EmulatorUnavailable: As ``build``.
        """
        for launch in plan.kernels:
            why = limits.refusal(launch, compiled.kernels.get(launch.kernel, Resources(0)))
            if why:
                raise DeviceFault(Status.LOAD_ERROR, f"kernel {launch.kernel} asks for {why}")
        for name, buffer in buffers.items():
            self._runtime.name(_host(buffer).address, name)
        path = self._object(compiled, plan)
        library = ProgramLibrary(path, {launch.kernel for launch in plan.kernels})

        def steps(launches: Iterable[Launch], cleared: list[str]) -> Steps:
            scratch = [w.name for w in plan.workspaces if w.zero]
            return Steps(
                tuple(_host(buffers[name]) for name in scratch + cleared),
                tuple(self._record(la, library, buffers) for la in launches if not la.empty),
            )

        program = EmulatorProgram(
            self._runtime,
            library,
            steps(plan.prepares, [a.name for a in plan.derived if a.zero]),
            steps(plan.launches, [plan.output] * plan.init_zero),
        )
        self._confine()
        return program

    def _record(
        self, launch: Launch, library: ProgramLibrary, buffers: Mapping[str, Buffer]
    ) -> LaunchRecord:
        words = [_word(argument, buffers) for argument in launch.args]
        return LaunchRecord(
            name=launch.kernel.encode(),
            kernel=library.entries[launch.kernel],
            arguments=(ctypes.c_uint64 * max(1, len(words)))(*words),
            grid=launch.grid,
            block=launch.block,
            shared_bytes=launch.shared_bytes,
            workers=self._workers,
            shared=library.shared,
        )

    def sync(self) -> None:
        """Nothing to wait for: every call returns when it is done."""

    def check(
        self,
        csr: tuple[Buffer, Buffer, Buffer],
        dense: Buffer,
        output: Buffer,
        rows: int,
        columns: int,
        dtype: np.dtype,
        exact: bool,
    ) -> Check:
        """Compares ``output`` with ``A @ dense`` by ``suite.harness.verify``."""
        if rows * columns == 0:
            return Check(0.0, 0, 0, -1)
        row_ptr, col_idx = (_host(part).view(np.int32) for part in csr[:2])
        values, factor = (_host(part).view(dtype) for part in (csr[2], dense))
        key = (rows, columns, np.dtype(dtype).str, exact, *self.digests((*csr, dense)))

        def reference() -> tuple[np.ndarray, ...]:
            found = verify.reference(row_ptr, col_idx, values, factor, columns)
            return (found[0].astype(dtype),) if exact else found  # the same, in half the bytes

        with self._vault.open(key, reference) as (right, *bound):
            got = _host(output).view(dtype)
            return verify.compare_with(right, None if exact else bound[0], got)

    def once_us(self, run: Callable[[], None], spoil: Callable[[], None]) -> float | None:
        """None: the host's time says nothing about a GPU."""
        return None

    def measure(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Measured | float:
        """Host microseconds of one run, which no number of runs would make a GPU's."""
        spoil()
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e6

    def copy_gbps(self) -> None:
        """Nothing: the host's memory is no GPU's."""


def _digest(buffer: HostBuffer) -> int:
    digest = hashlib.sha256(buffer.raw).digest()  # processors have instructions for it
    return int.from_bytes(digest[:8], "little")


def _host(buffer: Buffer) -> HostBuffer:
    if not isinstance(buffer, HostBuffer):
        raise TypeError(f"the emulator was given a {type(buffer).__name__}, not its own buffer")
    return buffer


def _word(argument: BufferArg | ScalarArg, buffers: Mapping[str, Buffer]) -> int:
    """An argument as the 8 bytes that the kernel's entry reads it from."""
    if isinstance(argument, BufferArg):
        return _host(buffers[argument.name]).address
    return argument.value % 2**64
