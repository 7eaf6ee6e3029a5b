"""Small things that a child process does for itself before it does anything else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import tempfile
from itertools import pairwise
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_MOST_DESCRIPTORS = 4096
_PREFIX = "sparserl-"
_PROCESSES = Path("/proc")
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "SYSTEMROOT",
)
_PASSED_ON_PREFIXES = ("CUDA_", "NVIDIA_", "OPENBLAS_", "OMP_")


def environment() -> dict[str, str]:
    """The few variables that other processes need; credentials are not among them."""
    return {
        k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith(_PASSED_ON_PREFIXES)
    }


def private_folder(root: Path | None = None) -> Path:
    """A new folder that nobody else on this host can read, in the temporary folder or ``root``.

    Its name holds this process's number. Folders of processes that were killed before they could
    remove them are removed.
    """
    root = root or Path(tempfile.gettempdir())
    can_tell = (_PROCESSES / "self").exists()  # elsewhere nobody knows who still lives
    for folder in root.glob(f"{_PREFIX}*-*") if can_tell else ():
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not (_PROCESSES / owner).exists():
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))


def die_with_parent() -> None:
    """Has the kernel end this process when its parent thread ends; Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def close_all_but(*kept: int) -> None:
    """Closes every other descriptor: a child must hold no line to anyone but its parent."""
    edges = [-1, *sorted(kept), _MOST_DESCRIPTORS]
    for low, high in pairwise(edges):
        os.closerange(low + 1, high)


def limit_memory(nbytes: int) -> None:
    """Limits the address space of this process; a lower limit in force stays."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = nbytes if hard == resource.RLIM_INFINITY else min(nbytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
