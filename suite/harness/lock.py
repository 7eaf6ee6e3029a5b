"""One user of a GPU at a time: whoever measures, and whoever generates programs on it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock


def gpu_lock(bus_id: str | None) -> AbstractContextManager[object]:
    """A lock across processes and users of the host.

    Args:
        bus_id: Address of the GPU on its bus, ``0000:0F:00.0``; None where there is no GPU, and
            then nothing is locked.
    """
    if bus_id is None:
        return nullcontext()
    # Not the temporary folder of this process: everyone on the host must mean the same file.
    name = bus_id.replace(":", "-").lower()
    return FileLock(Path("/tmp") / f"sparserl-gpu-{name}.lock", mode=0o666)
