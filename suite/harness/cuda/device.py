"""The CUDA device: pycuda on the primary context, with graph replays for the clock.

Lives in a worker process: after a fault the context is lost, and the process with it.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from suite.evaluation import Conditions, Status
from suite.harness.compile import Cache
from suite.harness.cuda import guards
from suite.harness.cuda.clock import Clock
from suite.harness.cuda.facts import facts
from suite.harness.cuda.kernels import Kernels
from suite.harness.cuda.memory import CudaBuffer, faults, pointer
from suite.harness.cuda.program import Program
from suite.harness.cuda.witness import Witness
from suite.harness.device import Buffer, Check, Compiled, DeviceFault, Executable, Measured
from suite.harness.inputs import Stream
from suite.harness.plan import Plan
from suite.harness.steady import disturbances, lowest_clock, repeated
from suite.harness.timing import Precision
from suite.harness.verify import GROWTH

COPIED_L2S = 4  # a copy of that many times the L2 runs at the memory's speed
LONG_ROW = 4096  # entries from which the check gives a row a block of its own
_COPIES = Precision(least=5, most=9, budget_ms=3.0)
_SLOTS = 64  # digests that one request takes at most
_SINGLE = np.dtype(np.float32)  # for kernels that are alike in either precision


class CudaUnavailable(RuntimeError):
    """There is no CUDA device that this process can use; the message says why."""


class CudaDevice:
    """The ``Device`` protocol on one NVIDIA GPU."""

    def __init__(self, cache: Path, ordinal: int = 0) -> None:
        """Opens the device.

        Args:
            cache: Folder for compiled programs.
            ordinal: Which device, as CUDA counts them.

        Raises:
            CudaUnavailable: No driver, no device or no pycuda.
        """
        try:
            import pycuda.driver as driver

            driver.init()
            device = driver.Device(ordinal)
            context = device.retain_primary_context()
            context.push()
        except Exception as error:
            raise CudaUnavailable(f"no usable CUDA device: {error}".splitlines()[0]) from error
        # pycuda aborts the process at exit when a context is still current.
        atexit.register(lambda: driver.Context.pop())
        self._driver, self._cuda = driver, device
        self.stream = driver.Stream()
        self._witness = Witness(device.pci_bus_id())
        self.facts = facts(driver, device, self._witness.facts())
        self._kernels = Kernels(driver, Cache(cache), self.facts.arch, self.stream)
        self._guarded: WeakSet[CudaBuffer] = WeakSet()
        # Those buffers in order with the table of their bands, until one comes or goes.
        self._bands: tuple[list[CudaBuffer], Any] | None = None
        self._long_rows: dict[int, CudaBuffer] = {}

    # Memory

    def allocate(self, nbytes: int) -> CudaBuffer:
        """See ``Device``."""
        placed = guards.layout(nbytes)
        with faults():
            buffer = CudaBuffer(nbytes, self._driver.mem_alloc(placed.total))
            for band in (placed.before, placed.after):
                start = int(buffer.allocation) + band.start
                self._driver.memset_d8(start, guards.BYTE, band.nbytes)
        self._guarded.add(buffer)
        self._bands = None
        return buffer

    def upload(self, array: np.ndarray) -> CudaBuffer:
        """See ``Device``."""
        array = np.ascontiguousarray(array)
        buffer = self.allocate(array.nbytes)
        with faults():
            if array.nbytes:
                self._driver.memcpy_htod(buffer.pointer, array.reshape(-1).view(np.uint8))
        return buffer

    def download(self, buffer: Buffer, dtype: np.dtype) -> np.ndarray:
        """See ``Device``."""
        array = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
        with faults():
            self.stream.synchronize()
            if array.nbytes:
                self._driver.memcpy_dtoh(array, pointer(buffer))
        return array

    def free(self, buffer: Buffer) -> None:
        """See ``Device``."""
        self._long_rows.pop(id(buffer), None)
        assert isinstance(buffer, CudaBuffer)
        self._guarded.discard(buffer)
        self._bands = None
        buffer.allocation.free()

    def fill(self, buffer: Buffer, byte: int) -> None:
        """See ``Device``."""
        if buffer.nbytes:
            with faults():
                self._driver.memset_d8_async(pointer(buffer), byte, buffer.nbytes, self.stream)

    # Trusted kernels

    def fill_stream(self, buffer: Buffer, dtype: np.dtype, stream: Stream) -> None:
        """See ``Device``."""
        count = buffer.nbytes // np.dtype(dtype).itemsize
        args = (stream.seed % 2**64, stream.bits, 2.0**stream.exponent)
        self._spread("stream", dtype, count, pointer(buffer), count, *args)

    def gather(self, source: Buffer, slots: Buffer | None, out: Buffer, dtype: np.dtype) -> None:
        """See ``Device``."""
        if slots is None:
            with faults():
                if out.nbytes:
                    self._driver.memcpy_dtod_async(
                        pointer(out), pointer(source), out.nbytes, self.stream
                    )
            return
        count = slots.nbytes // 4
        self._spread("gather", dtype, count, pointer(source), pointer(slots), pointer(out), count)

    def digests(self, buffers: Sequence[Buffer]) -> list[int]:
        """See ``Device``."""
        found: list[int] = []
        for start in range(0, len(buffers), _SLOTS):
            some = buffers[start : start + _SLOTS]
            self.fill(self._slots, 0)
            for slot, buffer in enumerate(some):
                words = -(-buffer.nbytes // 4)
                args = (pointer(buffer), words, self._slots.pointer + 8 * slot)
                self._spread("digest", _SINGLE, words, *args)
            found += self.download(self._slots, np.dtype(np.uint64))[: len(some)].tolist()
        return found

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
        """See ``Device``."""
        if rows * columns == 0:
            return Check(0.0, 0, 0, -1)
        row_ptr, col_idx, values = (pointer(b) for b in csr)
        info = np.finfo(dtype)
        result = self._scratch
        self.fill(result, 0)
        with faults():  # no copy from the host, which would wait for everything before it
            self._driver.memset_d32_async(result.pointer + 24, 2**31 - 1, 1, self.stream)
        unit, tiny = (0.0, 0.0) if exact else (float(info.eps) / 2, float(info.smallest_subnormal))
        tail = (
            *(row_ptr, col_idx, values, pointer(dense), pointer(output)),
            *(GROWTH, unit, tiny, result.pointer),
        )
        chunks = -(-columns // 32)
        if columns == 1:
            args: tuple[float, ...] = (rows, LONG_ROW, *tail)
            self._kernels.launch("check_vector", dtype, (-(-rows // 8), 1), 256, *args)
        else:
            args = (rows, LONG_ROW, columns, *tail)
            self._kernels.launch("check_matrix", dtype, (-(-rows * chunks // 8), 1), 256, *args)
        long_rows = self._long(csr[0])
        if long_rows.nbytes:
            args = (long_rows.pointer, columns, *tail)
            self._kernels.launch("check_long", dtype, (long_rows.nbytes // 4, chunks), 1024, *args)
        found = self.download(result, np.dtype(np.uint64))
        ratio = float(found[:1].view(np.float64)[0])
        wrong, row = int(found[1]), int(found[3] & np.uint64(0xFFFFFFFF))
        return Check(ratio, wrong, int(found[2]), row if wrong else -1)

    def transpose(
        self, source: Buffer, out: Buffer, rows: int, columns: int, dtype: np.dtype
    ) -> None:
        """``out`` becomes the transpose of ``source``, which is rows × columns, row-major."""
        args = (pointer(source), pointer(out), rows, columns)
        self._spread("transpose", dtype, rows * columns, *args)

    # Programs

    def load(self, compiled: Compiled, plan: Plan, buffers: Mapping[str, Buffer]) -> Executable:
        """See ``Device``."""
        for name, buffer in buffers.items():
            assert isinstance(buffer, CudaBuffer)
            buffer.name = name
        with faults(Status.LOAD_ERROR):
            module = self._driver.module_from_buffer(compiled.cubin)
            return Program(module, plan, buffers, self.stream, self.facts.shared_bytes, self.fill)

    def sync(self) -> None:
        """See ``Device``.

        Raises:
            DeviceFault: The device reported one, or a guard band was written to.
        """
        with faults():
            self.stream.synchronize()
        self._look_at_guards()

    def build(self, compiled: Compiled, plan: Plan) -> None:
        """Nothing: the machine code is there already."""

    def measure(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Measured | float:
        """See ``Device``."""

        def once() -> tuple[Measured, Sequence[str]]:
            before = self._witness.recent()
            found = self._clock.measure(run, spoil, precision)
            after = self._witness.read()
            readings = [reading for reading in (before, after) if reading]
            series = {"hot": found.hot.samples_us, "cold": found.cold.samples_us}
            conditions = Conditions(self.copy_gbps(), lowest_clock(readings))
            return replace(found, conditions=conditions), disturbances(readings, series)

        return repeated(once, time.perf_counter)

    def copy_gbps(self) -> float:
        """See ``Device``."""
        return self._copied_gbps

    def once_us(self, run: Callable[[], None], spoil: Callable[[], None]) -> float | None:
        """See ``Device``."""
        return self._clock.once(run, spoil)

    def single_run_us(self, run: Callable[[], None]) -> float:
        """Microseconds of one launch between events, host cost included: for screening only."""
        return self._clock.single(run)

    # Inside

    @cached_property
    def _copied_gbps(self) -> float:
        nbytes = COPIED_L2S * max(self.facts.l2_bytes, 1 << 24)
        source, target = self.allocate(nbytes), self.allocate(nbytes)
        try:
            self.fill(source, 0)

            def copy() -> None:
                self._driver.memcpy_dtod_async(target.pointer, source.pointer, nbytes, self.stream)

            fastest_us = min(self._clock.hot(copy, _COPIES).samples_us)
        finally:
            self.free(source)
            self.free(target)
        return 2 * nbytes / fastest_us / 1e3

    @cached_property
    def _clock(self) -> Clock:
        return Clock(self.stream.handle, self._flush)

    @cached_property
    def _flush_buffer(self) -> CudaBuffer:
        buffer = self.allocate(-(-2 * self.facts.l2_bytes // 16) * 16)
        self.fill(buffer, 0)
        return buffer

    def _flush(self) -> None:
        buffer = self._flush_buffer
        args = (buffer.pointer, buffer.nbytes // 16, self._scratch.pointer)
        self._kernels.launch("flush", _SINGLE, (self.facts.multiprocessors * 4, 1), 512, *args)

    @cached_property
    def _scratch(self) -> CudaBuffer:
        return self.allocate(32)

    @cached_property
    def _slots(self) -> CudaBuffer:
        return self.allocate(8 * _SLOTS)

    def _look_at_guards(self) -> None:
        result = self._scratch
        if self._bands is None:
            listed = list(self._guarded)
            table = guards.table((int(b.allocation), b.nbytes) for b in listed)
            with faults():
                self._bands = listed, self._driver.to_device(np.array(table, np.uint64))
        buffers, bands = self._bands
        count = 2 * len(buffers)
        self.fill(result, 0xFF)
        self._kernels.launch(
            "guards", _SINGLE, (count, 1), 128, 0, int(bands), count, result.pointer
        )
        band = int(self.download(result, np.dtype(np.uint64))[0])
        if band < count:
            written = buffers[band // 2]
            text = guards.describe(band, written.name, written.nbytes)
            raise DeviceFault(Status.MEMORY_FAULT, text)

    def _long(self, row_ptr: Buffer) -> CudaBuffer:
        if id(row_ptr) not in self._long_rows:
            lengths = np.diff(self.download(row_ptr, np.dtype(np.int32)))
            self._long_rows[id(row_ptr)] = self.upload(
                np.flatnonzero(lengths > LONG_ROW).astype(np.int32)
            )
        return self._long_rows[id(row_ptr)]

    def _spread(self, kernel: str, dtype: np.dtype, count: int, *args: float) -> None:
        if count:
            blocks = min(-(-count // 512), self.facts.multiprocessors * 16)
            self._kernels.launch(kernel, dtype, (blocks, 1), 512, *args)
