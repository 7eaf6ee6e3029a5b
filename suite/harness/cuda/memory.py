"""Device memory, and what a driver error means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from suite.evaluation import Status
from suite.harness.cuda.guards import layout
from suite.harness.device import Buffer, DeviceFault


@dataclass(eq=False)
class CudaBuffer:
    """Device memory between two guard bands.

    Attributes:
        nbytes: Size.
        allocation: A pycuda DeviceAllocation, bands included.
        name: What programs call it; "" for what no program was given.
    """

    nbytes: int
    allocation: Any
    name: str = ""

    @cached_property
    def pointer(self) -> int:
        """Device address of the first byte."""
        return int(self.allocation) + layout(self.nbytes).start


def pointer(buffer: Buffer) -> int:
    """Device address of a buffer of this device."""
    assert isinstance(buffer, CudaBuffer)
    return buffer.pointer


@contextmanager
def faults(otherwise: Status = Status.INFRASTRUCTURE_ERROR) -> Iterator[None]:
    """Turns driver errors into ``DeviceFault`` with the status they stand for.

    Args:
        otherwise: Status of an error that leaves the context alive.
    """
    try:
        yield
    except DeviceFault:
        raise
    except Exception as error:  # the driver's wrappers share no base class
        text = str(error).splitlines()[0] if str(error) else repr(error)
        raise DeviceFault(Status.MEMORY_FAULT if _context_lost() else otherwise, text) from error


def is_fault(code: int) -> bool:
    """Whether a driver's error code says that a kernel went wrong and took the context with it."""
    return _FIRST_FAULT <= code < _LAST_FAULT


def _context_lost() -> bool:
    from cuda.bindings import driver

    (error,) = driver.cuCtxSynchronize()
    return is_fault(int(error))


_FIRST_FAULT, _LAST_FAULT = 700, 720  # CUDA_ERROR_ILLEGAL_ADDRESS to CUDA_ERROR_LAUNCH_FAILED
