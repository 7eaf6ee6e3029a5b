"""Hands matrices to worker processes without copying them through a pipe."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np

from suite.harness.processes import private_folder
from suite.problem import Problem

_SHARED_MEMORY = Path("/dev/shm")


class Exchange:
    """A private folder of arrays, in shared memory where there is room; gone at exit."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._finalizer: weakref.finalize[..., Exchange] | None = None

    def put(self, problem: Problem) -> Path:
        """Writes the problem's CSR arrays, once per matrix and precision.

        Returns:
            A folder with ``indptr.npy``, ``indices.npy`` and ``values.npy``.

        Raises:
            OSError: No space.
        """
        csr = problem.matrix.csr
        wanted = csr.indptr.nbytes + csr.indices.nbytes + problem.values.nbytes
        folder = self._open(wanted) / problem.matrix.digest / problem.dtype.short
        if not folder.exists():
            folder.mkdir(parents=True)
            try:
                np.save(folder / "indptr.npy", csr.indptr)
                np.save(folder / "indices.npy", csr.indices)
                np.save(folder / "values.npy", problem.values)
            except BaseException:  # full, or interrupted: half an array is not to be taken for one
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return folder

    def drop(self, digest: str) -> None:
        """Removes a matrix, whoever may be writing beside its arrays."""
        if self._folder is not None:
            away = self._folder / f".{uuid4().hex}"  # where no writer finds it, and no ``put``
            with suppress(FileNotFoundError):
                os.rename(self._folder / digest, away)
            shutil.rmtree(away, ignore_errors=True)

    def close(self) -> None:
        """Removes everything."""
        if self._finalizer is not None:
            self._finalizer()
        self._folder = self._finalizer = None

    def _open(self, wanted: int) -> Path:
        if self._folder is None:
            roomy = _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK)
            roomy = roomy and shutil.disk_usage(_SHARED_MEMORY).free > 4 * wanted
            root = _SHARED_MEMORY if roomy else Path(tempfile.gettempdir())
            self._folder = private_folder(root)
            self._finalizer = weakref.finalize(
                self, shutil.rmtree, self._folder, ignore_errors=True
            )
        return self._folder
