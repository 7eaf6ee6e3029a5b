"""The CUDA device: pycuda on the primary context, with graph replays for the clock.

Lives in a worker process: after a fault the context is lost, and the process with it.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from suite.evaluation import Status, Timing
from suite.harness import cuda_clock
from suite.harness.compile import (
    Cache,
    Target,
    architecture,
    compiler_version,
    source_of,
    supported_architectures,
)
from suite.harness.device import Buffer, Check, Compiled, DeviceFacts, DeviceFault, Executable
from suite.harness.plan import Launch, Plan, ScalarArg
from suite.harness.timing import Precision
from suite.problem import DType

LONG_ROW = 4096  # entries from which the check gives a row a block of its own
_KERNELS = Path(__file__).with_name("cuda_kernels.cu")
_FAULTS = (
    "illegal",
    "misaligned",
    "invalid program counter",
    "hardware stack",
    "assert",
    "unspecified",
    "launch failed",
    "launch failure",
    "trap",
)
_LETTERS = {
    "int": "i",
    "unsigned int": "I",
    "long long": "q",
    "unsigned long long": "Q",
}  # as in struct


class CudaUnavailable(RuntimeError):
    """There is no CUDA device that this process can use; the message says why."""


@dataclass(eq=False)
class CudaBuffer:
    """Device memory; the allocation ends at the next multiple of 16 bytes."""

    nbytes: int
    allocation: Any
    """A pycuda DeviceAllocation."""

    @property
    def pointer(self) -> int:
        """Device address."""
        return int(self.allocation)


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
        self._cache = Cache(cache)
        self.stream = driver.Stream()
        self.facts = _facts(driver, device)
        self._trusted: dict[np.dtype, Any] = {}
        self._long_rows: dict[int, CudaBuffer] = {}

    # Memory

    def allocate(self, nbytes: int) -> CudaBuffer:
        """See ``Device``."""
        with _faults(Status.LOAD_ERROR):
            return CudaBuffer(nbytes, self._driver.mem_alloc(max(16, -(-nbytes // 16) * 16)))

    def upload(self, array: np.ndarray) -> CudaBuffer:
        """See ``Device``."""
        array = np.ascontiguousarray(array)
        buffer = self.allocate(array.nbytes)
        tail = array.nbytes // 16 * 16
        with _faults():
            if tail < array.nbytes or not array.nbytes:
                self._driver.memset_d8(buffer.pointer + tail, 0, 16)
            if array.nbytes:
                self._driver.memcpy_htod(buffer.pointer, array.reshape(-1).view(np.uint8))
        return buffer

    def download(self, buffer: Buffer, dtype: np.dtype) -> np.ndarray:
        """See ``Device``."""
        array = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
        with _faults():
            self.stream.synchronize()
            if array.nbytes:
                self._driver.memcpy_dtoh(array, _pointer(buffer))
        return array

    def free(self, buffer: Buffer) -> None:
        """See ``Device``."""
        self._long_rows.pop(id(buffer), None)
        assert isinstance(buffer, CudaBuffer)
        buffer.allocation.free()

    def fill(self, buffer: Buffer, byte: int) -> None:
        """See ``Device``."""
        if buffer.nbytes:
            with _faults():
                self._driver.memset_d8_async(_pointer(buffer), byte, buffer.nbytes, self.stream)

    # Trusted kernels

    def uniform(self, buffer: Buffer, dtype: np.dtype, seed: int) -> None:
        """See ``Device``."""
        count = buffer.nbytes // np.dtype(dtype).itemsize
        self._spread(
            "uniform", dtype, count, _pointer(buffer), np.uint64(count), np.uint64(seed % 2**64)
        )

    def gather(self, source: Buffer, slots: Buffer | None, out: Buffer, dtype: np.dtype) -> None:
        """See ``Device``."""
        if slots is None:
            with _faults():
                if out.nbytes:
                    self._driver.memcpy_dtod_async(
                        _pointer(out), _pointer(source), out.nbytes, self.stream
                    )
            return
        count = slots.nbytes // 4
        self._spread(
            "gather",
            dtype,
            count,
            _pointer(source),
            _pointer(slots),
            _pointer(out),
            np.uint64(count),
        )

    def digest(self, buffer: Buffer) -> int:
        """See ``Device``."""
        result = self._scratch
        self.fill(result, 0)
        words = -(-buffer.nbytes // 4)
        self._spread(
            "digest",
            np.dtype(np.float32),
            words,
            _pointer(buffer),
            np.uint64(words),
            result.pointer,
        )
        return int(self.download(result, np.dtype(np.uint64))[0])

    def check(
        self,
        csr: tuple[Buffer, Buffer, Buffer],
        dense: Buffer,
        output: Buffer,
        rows: int,
        columns: int,
        dtype: np.dtype,
    ) -> Check:
        """See ``Device``."""
        if rows * columns == 0:
            return Check(0.0, 0, 0, -1)
        row_ptr, col_idx, values = (_pointer(b) for b in csr)
        info = np.finfo(dtype)
        result = self._scratch
        start = np.zeros(4, np.uint64)
        start[3] = np.uint64(2**31 - 1)
        with _faults():
            self._driver.memcpy_htod(result.pointer, start)
        tail = (
            _pointer(dense),
            _pointer(output),
            np.float64(float(info.eps) / 2),
            np.float64(float(info.smallest_subnormal)),
            result.pointer,
        )
        if columns == 1:
            args: tuple[Any, ...] = (
                np.int32(rows),
                np.int32(LONG_ROW),
                row_ptr,
                col_idx,
                values,
                *tail,
            )
            self._launch_trusted("check_vector", dtype, (-(-rows // 8), 1), 256, *args)
        else:
            warps = rows * -(-columns // 32)
            args = (
                np.int32(rows),
                np.int32(LONG_ROW),
                np.int32(columns),
                row_ptr,
                col_idx,
                values,
                *tail,
            )
            self._launch_trusted("check_matrix", dtype, (-(-warps // 8), 1), 256, *args)
        long_rows = self._long(csr[0])
        if long_rows.nbytes:
            grid = (long_rows.nbytes // 4, 1 if columns == 1 else -(-columns // 32))
            args = (long_rows.pointer, np.int32(columns), row_ptr, col_idx, values, *tail)
            self._launch_trusted("check_long", dtype, grid, 1024, *args)
        found = self.download(result, np.dtype(np.uint64))
        ratio = float(found[:1].view(np.float64)[0])
        wrong, row = int(found[1]), int(found[3] & np.uint64(0xFFFFFFFF))
        return Check(ratio, wrong, int(found[2]), row if wrong else -1)

    def transpose(
        self, source: Buffer, out: Buffer, rows: int, columns: int, dtype: np.dtype
    ) -> None:
        """``out`` becomes the transpose of ``source``, which is rows × columns, row-major."""
        args = (_pointer(source), _pointer(out), np.uint64(rows), np.uint64(columns))
        self._spread("transpose", dtype, rows * columns, *args)

    # Programs

    def load(self, compiled: Compiled, plan: Plan, buffers: Mapping[str, Buffer]) -> Executable:
        """See ``Device``."""
        with _faults(Status.LOAD_ERROR):
            module = self._driver.module_from_buffer(compiled.cubin)
            return _Program(self, module, plan, buffers)

    def sync(self) -> None:
        """See ``Device``."""
        with _faults():
            self.stream.synchronize()

    def measure(
        self, run: Callable[[], None], precision: Precision
    ) -> tuple[Timing, Timing] | float:
        return self._clock.measure(run, precision)

    def single_run_us(self, run: Callable[[], None]) -> float:
        """Microseconds of one launch between events, host cost included: for screening only."""
        return self._clock.single(run)

    # Inside

    @cached_property
    def _clock(self) -> cuda_clock.Clock:
        return cuda_clock.Clock(self.stream.handle, self._flush)

    @cached_property
    def _flush_buffer(self) -> CudaBuffer:
        buffer = self.allocate(-(-2 * self.facts.l2_bytes // 16) * 16)
        self.fill(buffer, 0)
        return buffer

    def _flush(self) -> None:
        buffer = self._flush_buffer
        count = np.uint64(buffer.nbytes // 16)
        self._launch_trusted(
            "flush",
            np.dtype(np.float32),
            (self.facts.multiprocessors * 4, 1),
            512,
            buffer.pointer,
            count,
            self._scratch.pointer,
        )

    @cached_property
    def _scratch(self) -> CudaBuffer:
        return self.allocate(32)

    def _long(self, row_ptr: Buffer) -> CudaBuffer:
        if id(row_ptr) not in self._long_rows:
            lengths = np.diff(self.download(row_ptr, np.dtype(np.int32)))
            self._long_rows[id(row_ptr)] = self.upload(
                np.flatnonzero(lengths > LONG_ROW).astype(np.int32)
            )
        return self._long_rows[id(row_ptr)]

    def _spread(self, kernel: str, dtype: np.dtype, count: int, *args: Any) -> None:
        if count:
            blocks = min(-(-count // 512), self.facts.multiprocessors * 16)
            self._launch_trusted(kernel, dtype, (blocks, 1), 512, *args)

    def _launch_trusted(
        self, kernel: str, dtype: np.dtype, grid: tuple[int, int], block: int, *args: Any
    ) -> None:
        function = self._module(np.dtype(dtype)).get_function(kernel)
        packed = [np.uint64(a) if isinstance(a, int) else a for a in args]
        with _faults():
            function(*packed, grid=(*grid, 1), block=(block, 1, 1), stream=self.stream)

    def _module(self, dtype: np.dtype) -> Any:
        if dtype not in self._trusted:
            wide = "#define WIDE\n" if dtype == np.float64 else ""
            target = Target(self.facts.arch, DType(dtype.name))
            source = source_of(wide + _KERNELS.read_text(), {}, target.dtype)
            self._trusted[dtype] = self._driver.module_from_buffer(
                self._cache.compile(source, target).cubin
            )
        return self._trusted[dtype]


class _Program:
    """A loaded program with its arguments packed."""

    def __init__(
        self, device: CudaDevice, module: Any, plan: Plan, buffers: Mapping[str, Buffer]
    ) -> None:
        self._device, self._module = device, module
        cleared = [w.name for w in plan.workspaces if w.zero] + [plan.output] * plan.init_zero
        self._cleared = [buffers[name] for name in cleared]
        self._launches = [
            self._prepare(module, launch, buffers) for launch in plan.launches if not launch.empty
        ]

    def _prepare(
        self, module: Any, launch: Launch, buffers: Mapping[str, Buffer]
    ) -> tuple[Any, ...]:
        driver = self._device._driver
        function = module.get_function(launch.kernel)
        attribute = driver.function_attribute
        static = function.get_attribute(attribute.SHARED_SIZE_BYTES)
        limit = self._device.facts.shared_bytes
        if static + launch.shared_bytes > limit:
            raise DeviceFault(
                Status.LOAD_ERROR,
                f"kernel {launch.kernel} wants {static + launch.shared_bytes:,} bytes of shared memory; a block has {limit:,}",
            )
        threads = function.get_attribute(attribute.MAX_THREADS_PER_BLOCK)
        wanted = launch.block[0] * launch.block[1] * launch.block[2]
        if wanted > threads:
            raise DeviceFault(
                Status.LOAD_ERROR,
                f"kernel {launch.kernel} is launched with {wanted} threads a block; its registers allow {threads}",
            )
        if launch.shared_bytes > 48 * 1024:
            function.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.shared_bytes)
        letters = [
            _LETTERS[arg.ctype] if isinstance(arg, ScalarArg) else "P" for arg in launch.args
        ]
        values = [
            arg.value if isinstance(arg, ScalarArg) else _pointer(buffers[arg.name])
            for arg in launch.args
        ]
        function.prepare("".join(letters))
        return function, launch, values

    def run(self) -> None:
        """Enqueues clears and launches."""
        for buffer in self._cleared:
            self._device.fill(buffer, 0)
        with _faults():
            for function, launch, values in self._launches:
                function.prepared_async_call(
                    launch.grid,
                    launch.block,
                    self._device.stream,
                    *values,
                    shared_size=launch.shared_bytes,
                )

    def refresh(self) -> None:
        """Nothing: a program reads the buffers themselves."""

    def collect(self) -> None:
        """Nothing: a program writes the output itself."""

    def close(self) -> None:
        """Unloads the module."""
        self._launches, self._module = [], None


def _pointer(buffer: Buffer) -> int:
    assert isinstance(buffer, CudaBuffer)
    return buffer.pointer


class _faults:  # noqa: N801 - reads as a statement: with _faults(): …
    """Turns driver errors into ``DeviceFault`` with the status they stand for."""

    def __init__(self, otherwise: Status = Status.INFRASTRUCTURE_ERROR) -> None:
        self._otherwise = otherwise

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if error is None or isinstance(error, DeviceFault) or not isinstance(error, Exception):
            return
        text = str(error).splitlines()[0] if str(error) else repr(error)
        if any(word in text for word in _FAULTS):
            raise DeviceFault(Status.MEMORY_FAULT, text) from error
        if "too many resources" in text or "invalid argument" in text or "invalid value" in text:
            raise DeviceFault(Status.LOAD_ERROR, text) from error
        raise DeviceFault(self._otherwise, text) from error


def _facts(driver: Any, device: Any) -> DeviceFacts:
    attribute = driver.device_attribute
    major, minor = device.compute_capability()
    return DeviceFacts(
        kind="cuda",
        name=device.name(),
        arch=architecture(10 * major + minor, supported_architectures()),
        multiprocessors=device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
        memory_bytes=device.total_memory(),
        shared_bytes=device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        l2_bytes=device.get_attribute(attribute.L2_CACHE_SIZE),
        details={
            "driver_cuda": ".".join(map(str, _cuda_version(driver.get_driver_version()))),
            "compiler": compiler_version(),
            "pci_bus_id": device.pci_bus_id(),
            **_management(device.pci_bus_id()),
        },
    )


def _cuda_version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


def _management(bus_id: str) -> dict[str, str]:
    """What the management library knows: driver and clocks as found; empty where it is not there."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)
        return {
            "driver": str(pynvml.nvmlSystemGetDriverVersion()),
            "sm_clock_mhz": str(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "memory_clock_mhz": str(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            "sm_clock_max_mhz": str(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "power_limit_w": str(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) // 1000),
            "temperature_c": str(
                pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
            ),
        }
    except Exception:  # optional facts: any failure means that they are not known
        return {}
