"""Device memory, and what a driver error means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from suite.evaluation import Status
from suite.harness.device import Buffer, DeviceFault

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


def pointer(buffer: Buffer) -> int:
    """Device address of a buffer of this device."""
    assert isinstance(buffer, CudaBuffer)
    return buffer.pointer


@contextmanager
def faults(otherwise: Status = Status.INFRASTRUCTURE_ERROR) -> Iterator[None]:
    """Turns driver errors into ``DeviceFault`` with the status they stand for.

    Args:
        otherwise: Status of an error that is neither a fault of the program nor a launch it may not
            ask for.
    """
    try:
        yield
    except DeviceFault:
        raise
    except Exception as error:  # the driver's wrappers share no base class
        text = str(error).splitlines()[0] if str(error) else repr(error)
        if any(word in text for word in _FAULTS):
            raise DeviceFault(Status.MEMORY_FAULT, text) from error
        if "too many resources" in text or "invalid argument" in text or "invalid value" in text:
            raise DeviceFault(Status.LOAD_ERROR, text) from error
        raise DeviceFault(otherwise, text) from error
