"""What a worker process can be: a compiler, a GPU, or the emulator."""

from __future__ import annotations

from pathlib import Path

from suite.harness.bench import Bench
from suite.harness.compile import Cache
from suite.harness.judge import Verdict
from suite.harness.processes import limit_memory
from suite.harness.resident import Posed
from suite.harness.timing import Precision

COMPILER_BYTES = 4 << 30  # address space; an ordinary program takes under 1 GB


def compiler(cache: Path) -> Cache:
    """Compiles programs, keeping them in ``cache``, within ``COMPILER_BYTES`` of memory."""
    limit_memory(COMPILER_BYTES)
    return Cache(cache)


def cuda(cache: Path, ordinal: int) -> Bench:
    """A bench on a GPU."""
    from suite.harness.cuda.cusparse import judge_routine
    from suite.harness.cuda.device import CudaDevice

    device = CudaDevice(cache, ordinal)

    def library(routine: str, posed: Posed, precision: Precision | None) -> Verdict:
        return judge_routine(device, routine, posed, precision)

    return Bench(device, library=library)


def emulator(cache: Path, run_s: float) -> Bench:
    """A bench on the emulator; every program runs in a child, for at most ``run_s`` seconds."""
    from suite.harness.emulator.device import EmulatorDevice
    from suite.harness.isolate import forked

    return Bench(EmulatorDevice(cache), lambda attempt: forked(attempt, run_s), anchor=False)
