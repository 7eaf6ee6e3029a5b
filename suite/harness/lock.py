"""Who may use a GPU at a time: one who measures or generates on it, or any number who verify."""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path


class _GpuLock:
    """An advisory lock on a file; ends with the process that holds it. Not to be nested."""

    def __init__(self, path: Path, shared: bool) -> None:
        self._path = path
        self._kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._file = -1

    def __enter__(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with suppress(OSError):  # another user's, who has let everyone in
            os.fchmod(self._file, 0o666)
        fcntl.flock(self._file, self._kind)

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)


def gpu_lock(bus_id: str | None, shared: bool = False) -> AbstractContextManager[None]:
    """A lock across processes and users of the host.

    Args:
        bus_id: Address of the GPU on its bus, ``0000:0F:00.0``; None where there is no GPU, and
            then nothing is locked.
        shared: For work whose time does not matter: others like it may go on, whoever measures
            waits.
    """
    if bus_id is None:
        return nullcontext()
    # Not the temporary folder of this process: everyone on the host must mean the same file.
    name = bus_id.replace(":", "-").lower()
    return _GpuLock(Path("/tmp") / f"sparserl-gpu-{name}.lock", shared)
