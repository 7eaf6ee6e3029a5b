"""Runs a judgement in a forked child, so that a fault or a hang ends the child alone.

Fits the emulator, whose problems then need no reloading. A process that holds a GPU must not fork;
there the worker process itself is what gets replaced.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from suite.evaluation import Status, Timing
from suite.harness.emulator.faults import FAULT_EXIT, install_fault_handler, parse_fault
from suite.harness.judge import Verdict
from suite.harness.processes import close_all_but, die_with_parent


def forked(attempt: Callable[[], Verdict], run_s: float) -> Verdict:
    """Runs ``attempt`` in a child.

    Args:
        attempt: What to run; its verdict must pickle.
        run_s: Seconds it may take.

    Returns:
        The child's verdict; ``timeout`` when it took too long, ``memory_fault`` when it hit a guard
        page, ``infrastructure_error`` when it ended in another way.
    """
    verdict_in, verdict_out = os.pipe()
    fault_in, fault_out = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent()
        if os.getppid() == parent:  # else it ended before the request to die with it
            close_all_but(2, verdict_out, fault_out)
            _child(attempt, verdict_out, fault_out)
        os._exit(1)
    os.close(verdict_out)
    os.close(fault_out)
    try:
        answer = _read(verdict_in, time.monotonic() + run_s)
        if answer is None:
            return Verdict(Status.TIMEOUT, f"the program did not finish within {run_s:g} s")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        child = 0
        if status == 0 and answer:
            return _verdict(answer)
        if status == FAULT_EXIT:
            return Verdict(*parse_fault(_read(fault_in, time.monotonic() + 1) or b""))
        return Verdict(Status.INFRASTRUCTURE_ERROR, f"the emulator's process ended with {status}")
    finally:
        os.close(verdict_in)
        os.close(fault_in)
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _child(attempt: Callable[[], Verdict], verdict_out: int, fault_out: int) -> None:
    try:
        gc.disable()
        install_fault_handler(fault_out)
        answer = pickle.dumps(attempt())
        while answer:
            answer = answer[os.write(verdict_out, answer) :]
        os._exit(0)
    except BaseException as error:
        with contextlib.suppress(OSError):  # a file may not grow any more
            os.write(2, f"emulator: {error!r}\n".encode())
        os._exit(1)


_SPOKEN = {(kind.__module__, kind.__name__): kind for kind in (Verdict, Status, Timing)}


class _Verdicts(pickle.Unpickler):
    """Knows the types of a verdict only: a program in the child could have written anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _SPOKEN:
            raise pickle.UnpicklingError(f"the child's answer names {module}.{name}")
        return _SPOKEN[module, name]


def _verdict(answer: bytes) -> Verdict:
    try:
        verdict = _Verdicts(io.BytesIO(answer)).load()
    except Exception as error:  # a pickle may fail in any way
        return Verdict(Status.MEMORY_FAULT, f"the program spoilt its process's answer: {error!r}")
    if not isinstance(verdict, Verdict):
        return Verdict(Status.MEMORY_FAULT, "the program spoilt its process's answer")
    return verdict


def _read(descriptor: int, deadline: float) -> bytes | None:
    """Everything up to the end of the stream; None when the deadline comes first."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
