"""Conversions to storage formats ahead of the programs that read them, several at a time.

What a conversion makes lies in files beside those of its matrix until a device has taken it. One
that nobody asked for ahead, that failed, or that found no room is simply done where it is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import scipy

from suite.formats.base import Format, Layout, NotApplicableError
from suite.harness.crew import Crew
from suite.harness.worker import Worker

FORMATS = "formats"  # folder beside a matrix's arrays
ROOM = 4  # files are written where so many times their size is free


def convert(csr: scipy.sparse.csr_array, fmt: Format) -> tuple[Layout, float]:
    """A matrix in a format, and the milliseconds of a core that it took."""
    started = time.thread_time()  # not by the clock: others may convert beside it
    layout = fmt.convert(csr)
    return layout, (time.thread_time() - started) * 1e3


def matrix(folder: Path, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """The matrix that ``Exchange`` has put into a folder; its arrays are not copied."""
    names = ("values", "indices", "indptr")
    arrays = tuple(np.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
    csr = scipy.sparse.csr_array(arrays, shape=shape, copy=False)
    csr.has_canonical_format = True
    return csr


class Converter:
    """What a process of ``Conversions`` does."""

    def convert(self, folder: Path, shape: tuple[int, int], fmt: Format) -> None:
        """Converts the matrix of a folder, where there is room for what comes of it.

        Raises:
            OSError: The folder is gone.
        """
        csr = matrix(folder, shape)
        try:
            wanted = fmt.footprint(csr).bytes(4)
        except NotApplicableError:
            return  # whoever evaluates the program is told
        if shutil.disk_usage(folder).free > ROOM * wanted:
            _write(_place(folder, fmt), *convert(csr, fmt))


def _write(place: Path, layout: Layout, milliseconds: float) -> None:
    """Whole or not at all; the folder of all formats must be there."""
    draft = place.with_name(f".{uuid4().hex}")
    draft.mkdir()
    try:
        for kind, arrays in (("index", layout.index), ("values", layout.values)):
            for name, array in arrays.items():
                if array is not None:
                    np.save(draft / f"{kind}.{name}.npy", array)
        sizes = {name: int(size) for name, size in layout.sizes.items()}
        facts = {"sizes": sizes, "index": [*layout.index], "values": [*layout.values]}
        (draft / "layout.json").write_text(json.dumps({**facts, "milliseconds": milliseconds}))
        os.rename(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read(folder: Path, fmt: Format) -> tuple[Layout, float] | None:
    """What was converted ahead, with the milliseconds that it took; None where nothing was."""
    place = _place(folder, fmt)
    try:
        facts = json.loads((place / "layout.json").read_text())
    except FileNotFoundError:
        return None

    def array(kind: str, name: str) -> np.ndarray | None:
        path = place / f"{kind}.{name}.npy"
        return np.load(path, mmap_mode="r") if path.exists() else None

    index = {name: array("index", name) for name in facts["index"]}
    values = {name: array("values", name) for name in facts["values"]}
    layout = Layout(facts["sizes"], {n: a for n, a in index.items() if a is not None}, values)
    return layout, facts["milliseconds"]


class Conversions:
    """Processes that convert; each starts when it is first needed. For one thread at a time.

    Args:
        processes: How many; 0 for one per core.
    """

    def __init__(self, processes: int) -> None:
        self._crew = Crew(
            [
                Worker("suite.harness.conversions:Converter", {})
                for _ in range(processes or os.cpu_count() or 1)
            ]
        )
        self._begun: dict[Path, Future[None]] = {}

    def close(self) -> None:
        """Ends the processes."""
        self._crew.close()

    def begin(self, folder: Path, shape: tuple[int, int], formats: Iterable[Format]) -> None:
        """Has the matrix of a folder converted, to each format that is not under way."""
        (folder / FORMATS).mkdir(exist_ok=True)
        for fmt in formats:
            if _place(folder, fmt) not in self._begun:
                do = partial(_one, folder, shape, fmt)
                self._begun[_place(folder, fmt)] = self._crew.submit(do, urgent=False)

    def finish(self, folder: Path, fmt: Format) -> None:
        """Waits for a conversion if it was begun, whatever becomes of it."""
        if begun := self._begun.get(_place(folder, fmt)):
            wait([begun])

    def forget(self, folder: Path, fmt: Format) -> None:
        """Removes what a device has taken."""
        if self._begun.pop(_place(folder, fmt), None):
            shutil.rmtree(_place(folder, fmt), ignore_errors=True)

    def drop(self, digest: str) -> None:
        """Gives up what was begun for a matrix; ``Exchange`` removes its files."""
        for place in [place for place in self._begun if digest in place.parts]:
            self._begun.pop(place).cancel()


def _one(folder: Path, shape: tuple[int, int], fmt: Format, worker: Worker) -> None:
    with suppress(Exception):  # then it is done where it is needed
        worker.call("convert", folder, shape, fmt, timeout=600.0)


def _place(folder: Path, fmt: Format) -> Path:
    return folder / FORMATS / hashlib.blake2b(fmt.spelling.encode(), digest_size=8).hexdigest()
