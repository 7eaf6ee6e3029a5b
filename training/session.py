"""One session at a time in the folder of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from training.errors import TrainingError


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Makes the folder and keeps other sessions out of it.

    Raises:
        TrainingError: One is there already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / ".lock", timeout=0).acquire()
    except Timeout as error:
        raise TrainingError(
            f"{folder}: another session trains here; wait for it, or give another folder"
        ) from error
    with lock:
        yield
