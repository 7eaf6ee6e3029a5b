"""Who may use a GPU at a time: one who measures or generates on it, or any number who verify."""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO


class _GpuLock:
    """An advisory lock on a file; ends with the process that holds it. Not to be nested.

    Everyone first waits for a turn and keeps it until the GPU is theirs, so that whoever measures
    is not overtaken for ever by others who share.
    """

    def __init__(self, path: Path, shared: bool) -> None:
        self._path, self._turn = path, path.with_suffix(".turn")
        self._kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._held: list[IO[bytes]] = []  # more than one where threads share

    def __enter__(self) -> None:
        with _opened(self._turn) as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            file = _opened(self._path)
            fcntl.flock(file, self._kind)
        self._held.append(file)

    def __exit__(self, *exception: object) -> None:
        with self._held.pop() as file:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing would leave it to a child forked meanwhile


def _opened(path: Path) -> IO[bytes]:
    """A file that every user of the host may open; made where there is none."""
    try:
        # In a sticky folder the kernel may refuse to "create" what is another user's.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with suppress(OSError):  # another user's by now, who lets everyone in
            os.fchmod(file, 0o666)
    return os.fdopen(file, "rb")


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
