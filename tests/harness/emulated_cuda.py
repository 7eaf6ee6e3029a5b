"""What the CUDA device asks of ``pycuda.driver``, done by the emulator: its own kernels run here.

Stricter than the driver: a kernel can only be prepared with the types of its parameters in the
source, and a launch only be given as many numbers that fit them.
"""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from suite.harness.compile import Cache, Target
from suite.harness.cuda import kernels
from suite.harness.cuda.device import CudaDevice
from suite.harness.device import Compiled
from suite.harness.emulator.device import EmulatorDevice, HostBuffer
from suite.harness.plan import Launch, Plan, ScalarArg

_LETTERS = {"u64": "Q", "int": "i", "double": "d"}
_DEFINITION = re.compile(r"__global__ void (\w+)\(([^)]*)\)")


def declared() -> dict[str, str]:
    """Each kernel's parameters as the source has them, in the letters of ``struct``."""

    def letter(parameter: str) -> str:
        return "P" if "*" in parameter else _LETTERS[parameter.split()[0]]

    return {
        name: "".join(letter(one) for one in parameters.split(","))
        for name, parameters in _DEFINITION.findall(kernels.TEXT)
    }


@dataclass(frozen=True)
class Allocation:
    """A ``DeviceAllocation``."""

    driver: Driver
    buffer: HostBuffer

    def __int__(self) -> int:
        return self.buffer.address

    def free(self) -> None:
        self.driver.emulator.free(self.buffer)


@dataclass
class Function:
    """A kernel of the device's own."""

    driver: Driver
    source: str
    name: str
    letters: str = ""

    def prepare(self, letters: str) -> Function:
        if letters != declared()[self.name]:
            raise TypeError(f"{self.name} has {declared()[self.name]}, not {letters}")
        self.letters = letters
        return self

    def prepared_async_call(
        self, grid: tuple[int, ...], block: tuple[int, ...], stream: object, *args: float
    ) -> None:
        assert len(grid) == len(block) == 3
        assert stream is self.driver.stream
        struct.pack(self.letters, *args)  # refuses another count, and what does not fit
        words = [struct.pack(letter, arg) for letter, arg in zip(self.letters, args, strict=True)]
        values = tuple(ScalarArg(int.from_bytes(word, "little"), "long long") for word in words)
        # With all kernels, empty, beside it: one compilation then serves them all.
        every = [
            Launch(name, (0, 0, 0), (1, 1, 1), 0, (ScalarArg(0, "long long"),) * len(letters))
            for name, letters in declared().items()
        ]
        launches = (*every, Launch(self.name, grid, block, 0, values))
        emulator = self.driver.emulator
        loaded = emulator.load(
            Compiled(b"", self.source, "", {}, 0.0), Plan("y", False, (), launches, ()), {}
        )
        loaded.run()
        loaded.close()
        self.driver.calls[f"launch {self.name}"] += 1


class Driver:
    """``pycuda.driver`` of one device.

    Attributes:
        calls: How often everything was asked for that reaches a GPU.
    """

    device_attribute = SimpleNamespace(
        MULTIPROCESSOR_COUNT=2, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232448, L2_CACHE_SIZE=1 << 20
    )
    Context = SimpleNamespace(pop=lambda: None)

    def __init__(self, emulator: EmulatorDevice) -> None:
        self.emulator = emulator
        self.calls: Counter[str] = Counter()
        self.stream = SimpleNamespace(handle=0, synchronize=lambda: self._count("synchronize"))

    def _count(self, call: str) -> None:
        self.calls[call] += 1

    def init(self) -> None: ...

    def get_driver_version(self) -> int:
        return 13000

    def Device(self, ordinal: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(
            retain_primary_context=lambda: SimpleNamespace(push=lambda: None),
            pci_bus_id=lambda: "0000:00:00.0",
            compute_capability=lambda: (9, 0),
            name=lambda: "emulated",
            total_memory=lambda: 1 << 30,
            get_attribute=lambda value: value,
        )

    def Stream(self) -> object:  # noqa: N802
        return self.stream

    def mem_alloc(self, nbytes: int) -> Allocation:
        return Allocation(self, self.emulator.allocate(nbytes))

    def to_device(self, array: np.ndarray) -> Allocation:
        return Allocation(self, self.emulator.upload(array))

    def memset_d8(self, address: int, byte: int, count: int) -> None:
        ctypes.memset(address, byte, count)

    def memset_d8_async(self, address: int, byte: int, count: int, stream: object) -> None:
        assert stream is self.stream
        self._count("memset")
        self.memset_d8(address, byte, count)

    def memset_d32_async(self, address: int, word: int, count: int, stream: object) -> None:
        assert stream is self.stream
        assert address % 4 == 0
        self._count("memset")
        ctypes.memmove(address, struct.pack("I", word) * count, 4 * count)

    def memcpy_htod(self, address: int, array: np.ndarray) -> None:
        self._count("upload")
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def memcpy_dtoh(self, array: np.ndarray, address: int) -> None:
        self._count("download")
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def memcpy_dtod_async(self, to: int, source: int, nbytes: int, stream: object) -> None:
        assert stream is self.stream
        ctypes.memmove(to, source, nbytes)

    def module_from_buffer(self, source: bytes) -> SimpleNamespace:
        return SimpleNamespace(get_function=lambda name: Function(self, source.decode(), name))


def open_device(emulator: EmulatorDevice, patch: pytest.MonkeyPatch) -> tuple[CudaDevice, Driver]:
    """The CUDA device on such a driver; what is compiled for the GPU is its source."""

    def compile_(cache: Cache, source: str, target: Target) -> Compiled:
        return Compiled(source.encode(), source, "", {}, 0.0)

    driver = Driver(emulator)
    patch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=driver))
    patch.setitem(sys.modules, "pycuda.driver", driver)
    patch.setattr(Cache, "compile", compile_)
    return CudaDevice(Path("nowhere")), driver
