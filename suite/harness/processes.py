"""Small things that a child process does for itself before it does anything else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from itertools import pairwise

_PR_SET_PDEATHSIG = 1
_MOST_DESCRIPTORS = 4096


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
