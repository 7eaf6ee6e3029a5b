"""The seam between the evaluation path and the machine that runs a program.

Two implementations: ``cuda`` (pycuda on the primary context) and ``emulator`` (the same device code
as C++ on the host). Both live inside a worker process, so a fault or a hang costs the worker, not
the run. Everything above this seam is the same for every device, and everything below knows plans
only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from suite.evaluation import Conditions, Resources, Status, Timing
from suite.harness.inputs import Stream
from suite.harness.plan import Plan
from suite.harness.timing import Precision


class DeviceFault(RuntimeError):
    """A program failed on the device; ``status`` is its verdict."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(status, message)  # both, so that it can be pickled
        self.status = status

    def __str__(self) -> str:
        return str(self.args[1])


@dataclass(frozen=True)
class DeviceFacts:
    """What a device is, for the record.

    Attributes:
        kind: ``cuda`` or ``emulator``.
        name: ``NVIDIA H200``; for the emulator, ``emulator``.
        arch: The architecture that programs are compiled for, ``sm_90``.
        multiprocessors: Programs may name it as ``sms``.
        memory_bytes: Device memory in all.
        shared_bytes: Shared memory that one block may use.
        l2_bytes: Size of the L2 cache.
        details: Driver, clocks, compiler and the like, as text.
    """

    kind: str
    name: str
    arch: str
    multiprocessors: int
    memory_bytes: int
    shared_bytes: int
    l2_bytes: int
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Compiled:
    """A compiled program.

    Attributes:
        cubin: Machine code for the GPU.
        source: What was compiled (prelude and code), which the emulator compiles again as C++.
        log: Compiler output.
        kernels: Resources by kernel.
        milliseconds: Time of compilation; 0 when it came from the cache.
        lasting: Names of what it has that would outlive a run: variables in global memory, calls of
            the device's heap and console.
        meets: Whether its threads meet in memory: by atomics, shared memory, volatile accesses.
    """

    cubin: bytes
    source: str
    log: str
    kernels: Mapping[str, Resources]
    milliseconds: float
    lasting: tuple[str, ...] = ()
    meets: bool = False


@dataclass(frozen=True)
class Check:
    """Comparison of one output with the reference.

    Attributes:
        ratio: Largest |error| / bound; infinite where an element was not finite or not written.
        wrong: Elements beyond their bound.
        unwritten: Elements that still hold the poison (NaN).
        row: Row of the first wrong element, -1 when none is.
    """

    ratio: float
    wrong: int
    unwritten: int
    row: int


@dataclass(frozen=True)
class Measured:
    """Device times of one multiplication.

    Attributes:
        hot: Back to back.
        cold: With the L2 flushed and the output spoilt before each.
        fresh_us: Back to back, but the output spoilt before each: a program that does its work
            takes about its hot time here too.
        conditions: How the device was meanwhile.
        warm_us: As cold, but with nothing spoilt: a program that does its work takes its cold time
            here too. 0 where it was not measured.
    """

    hot: Timing
    cold: Timing
    fresh_us: float
    conditions: Conditions = field(default_factory=Conditions)
    warm_us: float = 0.0


class Executable(Protocol):
    """Something that can be enqueued on the device: a loaded program or a library call."""

    def run(self) -> None:
        """Enqueues one whole multiplication, clears included; errors come at ``sync``."""
        ...

    def prepare(self) -> None:
        """Enqueues what is done once for a matrix and its values. Most do nothing."""
        ...

    def refresh(self) -> None:
        """Takes in changed inputs, where it keeps copies of its own; not timed. Most do nothing."""
        ...

    def collect(self) -> None:
        """Brings the result into the output buffer, where it is elsewhere; not timed."""
        ...

    def close(self) -> None:
        """Frees what loading took."""
        ...


class Buffer(Protocol):
    """Device memory."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        ...


class Device(Protocol):
    """Memory, programs, checks and clocks of one device.

    Letters: M rows, N columns, Z entries, K dense columns. Any method raises ``DeviceFault`` when
    the device reports one.
    """

    facts: DeviceFacts

    def allocate(self, nbytes: int) -> Buffer:
        """Memory with undefined contents. ``nbytes`` may be 0."""
        ...

    def upload(self, array: np.ndarray) -> Buffer:
        """A buffer that holds the array."""
        ...

    def download(self, buffer: Buffer, dtype: np.dtype) -> np.ndarray:
        """The buffer's contents, one-dimensional."""
        ...

    def free(self, buffer: Buffer) -> None:
        """Gives memory back."""
        ...

    def fill(self, buffer: Buffer, byte: int) -> None:
        """Sets every byte; 0xFF makes every float a NaN."""
        ...

    def fill_stream(self, buffer: Buffer, dtype: np.dtype, stream: Stream) -> None:
        """Fills with the stream's first elements."""
        ...

    def gather(self, source: Buffer, slots: Buffer | None, out: Buffer, dtype: np.dtype) -> None:
        """out[i] = source[slots[i]], 0 where slots[i] is -1; a copy where ``slots`` is None."""
        ...

    def digests(self, buffers: Sequence[Buffer]) -> list[int]:
        """A 64-bit digest of each buffer: changed contents change it. One request for all."""
        ...

    def load(self, compiled: Compiled, plan: Plan, buffers: Mapping[str, Buffer]) -> Executable:
        """Loads a program. ``buffers`` has every bound name and every workspace."""
        ...

    def sync(self) -> None:
        """Waits until everything enqueued is done."""
        ...

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
        """Compares ``output`` with ``A @ dense`` by the bound of ``suite.harness.verify``.

        Args:
            csr: Row pointers (M + 1), column indices (Z) and values (Z) that no program was given.
            dense: x or B, N × K, row-major.
            output: y or C, M × K, row-major.
            rows: M.
            columns: K.
            dtype: Precision of values, dense input and output.
            exact: Whether no rounding is possible on these inputs, so that every error is wrong.
        """
        ...

    def build(self, compiled: Compiled, plan: Plan) -> None:
        """Does what loading needs beforehand and may take long; not the program's time."""
        ...

    def once_us(self, run: Callable[[], None], spoil: Callable[[], None]) -> float | None:
        """Device time of something that is done once, microseconds; None on the emulator.

        Args:
            run: Enqueues it.
            spoil: Enqueues, untimed, what makes an earlier result useless.
        """
        ...

    def measure(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Measured | float:
        """Device times of ``run``; on the emulator, host microseconds of one run.

        Args:
            run: Enqueues one multiplication.
            spoil: Enqueues what makes an earlier output useless.
            precision: How precisely.
        """
        ...

    def copy_gbps(self) -> float | None:
        """Bandwidth of a copy within the device; None where times say nothing about a GPU."""
        ...
