"""What a worker process can be: a compiler, a GPU, or the emulator.

Modules that are imported here say ``scipy.sparse``, which SciPy loads at its first use: a compiler
never needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from suite.harness.bench import Bench
from suite.harness.bind import check_names
from suite.harness.compile import Cache, CompileError, Target, program_source
from suite.harness.device import Compiled, DeviceFacts
from suite.harness.judge import Verdict
from suite.harness.parse import parse
from suite.harness.plan import ProgramError
from suite.harness.posed import Posed
from suite.harness.processes import limit_memory
from suite.harness.sandbox import confine, no_network
from suite.harness.timing import Precision
from suite.problem import Op


class Compiler:
    """Compiles programs, keeping what comes of it in a cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def compile(self, source: str, target: Target) -> Compiled:
        """See ``Cache.compile``."""
        return self._cache.compile(source, target)

    def compile_ahead(self, text: str, target: Target) -> None:
        """Compiles a program's text, so that the cache knows binary or refusal.

        Everything is done here, reading the text included, so that whoever asks many compilers is
        not what they wait for.
        """
        try:
            declaration = parse(text)
            check_names(declaration, Op(declaration.op), target.dtype)
            source = program_source(declaration, target.dtype)
            self._cache.compile(source, target)
        except (ProgramError, CompileError):
            pass  # whoever evaluates the program is told


def compiler(cache: Path, memory_bytes: int, output_bytes: int) -> Compiler:
    """A compiler within its limits on memory and machine code, and without a network."""
    limit_memory(memory_bytes)
    no_network()
    return Compiler(Cache(cache, output_bytes))


def cuda(cache: Path, ordinal: int, workspace_bytes: int, confined: bool = True) -> Bench:
    """A bench on a GPU; without a network, unless a tool that watches has to talk to it."""
    from suite.harness.cuda.cusparse import judge_routine
    from suite.harness.cuda.device import CudaDevice

    device = CudaDevice(cache, ordinal)
    # Now that the driver has done what it must.
    filtered = confined and no_network(local_sockets=True)
    device.facts = _with_sandbox(device.facts, "no network" if filtered else "none")

    def library(routine: str, posed: Posed, precision: Precision | None) -> Verdict:
        return judge_routine(device, routine, posed, precision)

    return Bench(device, library=library, workspace_bytes=workspace_bytes)


def emulator(cache: Path, run_s: float, workspace_bytes: int) -> Bench:
    """A bench on the emulator; every program runs in a child, for at most ``run_s`` seconds."""
    from suite.harness.emulator.device import EmulatorDevice
    from suite.harness.isolate import forked

    filtered = no_network()
    device = EmulatorDevice(cache, confine=confine)
    kind = "system calls filtered" if filtered else "limits on resources only"
    device.facts = _with_sandbox(device.facts, kind)

    def isolated(attempt: Callable[[], Verdict]) -> Verdict:
        return forked(attempt, run_s)

    return Bench(
        device, isolated, anchored=False, workspace_bytes=workspace_bytes, forget=device.forget
    )


def _with_sandbox(facts: DeviceFacts, kind: str) -> DeviceFacts:
    return replace(facts, details={**facts.details, "sandbox": kind})
