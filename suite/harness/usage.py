"""What this process and its children hold of the host's memory, and of a GPU's."""

from __future__ import annotations

import os
from pathlib import Path


def host_bytes() -> int:
    """Resident memory of this process and all that came from it; Linux only, 0 elsewhere."""
    resident: dict[int, int] = {}
    parents: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)], resident[int(folder.name)] = int(fields[1]), int(fields[21])
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return page * sum(resident.get(pid, 0) for pid in family)


def device_bytes(bus_id: str) -> int | None:
    """Memory of a GPU that is in use, whoever uses it; None where nobody can tell."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except Exception:  # no library, no driver, no such device: each with an exception of its own
        return None
