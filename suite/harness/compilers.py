"""Compiler processes: they compile in parallel, and may hang or die of a program."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import wait
from functools import partial

from suite.harness.compile import Target, program_source
from suite.harness.crew import Crew
from suite.harness.device import Compiled
from suite.harness.parse import parse
from suite.harness.plan import Declaration
from suite.harness.settings import Settings
from suite.harness.worker import Worker, WorkerDied, WorkerTimeout

# The compiler takes and returns some 10 MB a program. Left to it, glibc gives them back to the
# kernel each time, and page faults take an eighth of the time.
_KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 26),
}


class CompilerGaveUp(Exception):
    """The compiler hung or died on a program."""


class Compilers:
    """As many processes as the settings say; each starts when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._limit = settings.compile_s
        arguments = {
            "cache": settings.cache / "cubin",
            "memory_bytes": settings.compiler_bytes,
            "output_bytes": settings.output_bytes,
        }
        workers = [
            Worker("suite.harness.services:compiler", arguments, _KEEP_MEMORY)
            for _ in range(settings.compilers or os.cpu_count() or 1)
        ]
        self._crew = Crew(workers)
        self._gave_up: dict[bytes, str] = {}  # on which sources, and how

    def close(self) -> None:
        """Ends the processes, and with them whatever somebody waits for."""
        self._crew.close()

    def compile(self, declaration: Declaration, target: Target) -> Compiled:
        """Compiles a program, or finds what became of it before.

        Raises:
            CompileError: The compiler refuses it.
            CompilerGaveUp: The compiler hung or died on it, now or earlier.
            CompilerUnavailable: There is none.
            WorkerDied: Somebody killed its process, twice.
            WorkerUnavailable: Its process could not be started.
            CancelledError: ``close`` was called meanwhile.
            RuntimeError: ``close`` was called before.
        """
        source = program_source(declaration, target.dtype)
        known = self._gave_up.get(_key(source))
        if known:
            raise CompilerGaveUp(known)

        def once_more(worker: Worker) -> Compiled:
            try:
                compiled = worker.call("compile", source, target, timeout=self._limit)
            except WorkerDied:  # once may be the machine's fault, twice is the program's
                compiled = worker.call("compile", source, target, timeout=self._limit)
            assert isinstance(compiled, Compiled)
            return compiled

        try:
            return self._crew.submit(once_more, urgent=True).result()
        except WorkerTimeout:
            raise CompilerGaveUp(self._note_hang(source)) from None
        except WorkerDied as death:
            if death.killed:
                raise
            reason = f"the compiler died of this program twice: {death}"
            self._gave_up[_key(source)] = reason
            raise CompilerGaveUp(reason) from None

    def compile_ahead(self, texts: Sequence[str], target: Target) -> None:
        """Compiles texts in parallel; asking for one then finds binary or refusal.

        Calls from several threads are served in their order, and all of them after ``compile``.
        """

        def one(text: str, worker: Worker) -> None:
            try:
                worker.call("compile_ahead", text, target, timeout=self._limit)
            except WorkerTimeout:  # once is enough
                declaration = parse(text)  # the compiler could
                self._note_hang(program_source(declaration, target.dtype))
            except Exception:  # whoever asks for the program is told
                pass

        tasks = [self._crew.submit(partial(one, text), urgent=False) for text in texts]
        try:
            wait(tasks)
        finally:  # interrupted, perhaps
            for task in tasks:
                task.cancel()

    def _note_hang(self, source: str) -> str:
        reason = f"the compiler did not finish within {self._limit:g} s"
        self._gave_up[_key(source)] = reason
        return reason


def _key(source: str) -> bytes:
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).digest()
