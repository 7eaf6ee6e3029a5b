"""The emulator's native runtime, and programs, as seen from Python."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from suite.evaluation import Status

_Three = ctypes.c_uint * 3


class LaunchRecord(ctypes.Structure):
    """The runtime's ``emu_core::Launch``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kernel", ctypes.c_void_p),
        ("arguments", ctypes.POINTER(ctypes.c_uint64)),
        ("grid", _Three),
        ("block", _Three),
        ("shared_bytes", ctypes.c_uint),
        ("workers", ctypes.c_uint),
        ("backward", ctypes.c_uint),
        ("shared", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class Failure:
    """How a launch ended that did not succeed."""

    status: Status
    message: str


_OUTCOMES = {
    1: Status.TIMEOUT,  # a deadlock hangs on a GPU
    2: Status.MEMORY_FAULT,
    3: Status.INFRASTRUCTURE_ERROR,
}


class Runtime:
    """The native runtime, loaded into this process.

    Attributes:
        latest: The one that was loaded last, None before any was.
    """

    latest: ClassVar[Runtime | None] = None
    _loaded: ClassVar[dict[str, Runtime]] = {}

    @classmethod
    def load(cls, path: Path) -> Runtime:
        """The runtime at ``path``, or an equal one that this process has already.

        Its name holds its digest. Two copies in one process would be confused: the loader gives
        every program the first one of that name.
        """
        if path.name not in cls._loaded:
            cls._loaded[path.name] = cls(path)
        return cls._loaded[path.name]

    def __init__(self, path: Path) -> None:
        """Loads the runtime from ``path``; use ``load``."""
        native = ctypes.CDLL(str(path))
        Runtime.latest = self
        self._allocate = native.emu_allocate
        self._allocate.argtypes = (ctypes.c_size_t,)
        self._allocate.restype = ctypes.c_void_p
        self._free = native.emu_free
        self._free.argtypes = (ctypes.c_void_p,)
        self._free.restype = None
        self._name = native.emu_name
        self._name.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
        self._name.restype = None
        self._launch = native.emu_launch
        self._launch.argtypes = (ctypes.POINTER(LaunchRecord), ctypes.c_char_p, ctypes.c_size_t)
        self._launch.restype = ctypes.c_int
        self._install = native.emu_install_fault_handler
        self._install.argtypes = (ctypes.c_int,)
        self._install.restype = None

    def allocate(self, nbytes: int) -> int:
        """Address of a new buffer, a multiple of 16; 0 when there is no memory."""
        return self._allocate(nbytes) or 0

    def free(self, address: int) -> None:
        """Gives a buffer back."""
        self._free(address)

    def name(self, address: int, name: str) -> None:
        """Says what messages call a buffer."""
        self._name(address, name.encode())

    def launch(self, record: LaunchRecord) -> Failure | None:
        """Runs one launch to its end; without the interpreter's lock."""
        message = ctypes.create_string_buffer(512)
        outcome = self._launch(record, message, len(message))
        if outcome == 0:
            return None
        return Failure(_OUTCOMES[outcome], message.value.decode("utf-8", "replace"))

    def install_fault_handler(self, fd: int) -> None:
        """Makes signals of a program write a line to ``fd`` and end the process."""
        self._install(fd)


class ProgramLibrary:
    """A program's shared object, loaded with fresh ``__device__`` variables."""

    def __init__(self, path: Path, kernels: Iterable[str]) -> None:
        """Loads the object at ``path`` and finds the entries of ``kernels``.

        It is loaded from an anonymous copy: the loader would answer a second load of the same file
        with the first one's variables.
        """
        copy = os.memfd_create("program")
        try:
            os.write(copy, path.read_bytes())
            native = ctypes.CDLL(f"/proc/self/fd/{copy}")
        finally:
            os.close(copy)
        self._handle = native._handle
        self.shared = _address(native, "emu_shared")
        self.entries = {name: _address(native, f"emu_entry_{name}") for name in kernels}

    def close(self) -> None:
        """Unloads the program; its entries must not be used again. Closing twice is harmless."""
        handle, self._handle = self._handle, 0
        if handle:
            unload = ctypes.CDLL(None).dlclose
            unload.argtypes = (ctypes.c_void_p,)
            unload(handle)


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
