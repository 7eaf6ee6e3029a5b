"""Reads matrix files in a child with little memory, and says what came of it."""

from __future__ import annotations

import multiprocessing
import resource
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from suite.matrices.base import MatrixError, canonical
from suite.matrices.files import read

ROOM = 2 << 30  # bytes of address space beyond what the child starts with
SECONDS = 20.0  # for one small file, on a busy host


@dataclass(frozen=True)
class Outcome:
    """What came of reading a file.

    Attributes:
        kind: ``read``, ``refused`` (a ``MatrixError``), or what should never be: the name of
            another exception, ``died`` or ``hung``.
        text: The message, or shape and entries.
        grown_kb: How much the child's largest resident size has grown.
    """

    kind: str
    text: str
    grown_kb: int = 0


class Reader:
    """A child process that reads one file at a time; a context manager."""

    def __enter__(self) -> Reader:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()
        return self

    def __exit__(self, *exception: object) -> None:
        self._pipe.close()
        self._child.kill()
        self._child.join()

    def read(self, path: Path, seconds: float = SECONDS) -> Outcome:
        """Reads the file there; after a death or a hang the child is replaced."""
        self._pipe.send(path)
        try:
            if self._pipe.poll(seconds):
                return Outcome(*self._pipe.recv())
            what = "hung"
        except EOFError:
            what = "died"
        self.__exit__()
        self.__enter__()
        return Outcome(what, "")


def _serve(pipe: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        try:
            path = pipe.recv()
        except EOFError:
            return
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kind, text = _read(path)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        pipe.send((kind, text, grown))


def _read(path: Path) -> tuple[str, str]:
    try:
        matrix = canonical(read(path), path.name)
        matrix.check_format(full_check=True)
    except MatrixError as error:
        return "refused", str(error)
    except BaseException as error:  # any other is what is looked for
        return type(error).__name__, str(error)
    return "read", f"{matrix.shape} {matrix.nnz}"
