"""How a faulting evaluation tells its parent: one line to a descriptor, then a known exit code.

The line is written by C code inside a signal handler (``native/faults.cpp``).
"""

from __future__ import annotations

from suite.evaluation import Status
from suite.harness.emulator.library import Runtime

FAULT_EXIT = 70  # exit code of a process that the handler ended

_STATUSES = {s.value: s for s in (Status.MEMORY_FAULT, Status.INFRASTRUCTURE_ERROR)}


def install_fault_handler(fd: int) -> None:
    """Makes a signal that a program provokes end this process, with a line to ``fd``.

    For a process of its own per evaluation. Covers the runtime that was loaded last; without one
    there is nothing that could fault.

    Args:
        fd: Where the line goes; must stay open.
    """
    runtime = Runtime.latest
    if runtime is not None:
        runtime.install_fault_handler(fd)


def parse_fault(line: bytes) -> tuple[Status, str]:
    """Status and message from what the handler wrote.

    Args:
        line: All that came from the descriptor; may be empty or cut short. Of two threads that
            fault at once, both may get a line out; the first counts.
    """
    text = line.decode("utf-8", "replace").strip().partition("\n")[0]
    name, _, message = text.partition(" ")
    if name in _STATUSES and message:
        return _STATUSES[name], message
    return Status.INFRASTRUCTURE_ERROR, f"the emulator's process ended in a fault and said {text!r}"
