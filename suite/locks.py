"""One campaign, one writer: locks that the kernel gives up with the process that holds them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

from suite.journal import JournalError

_LOCK = ".lock"


class Locks:
    """Keeps others from writing into a campaign; given up with the process at the latest.

    Args:
        folder: The campaign's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = ExitStack()
        self._names: set[str] = set()

    def hold(self, process: str) -> None:
        """Takes the lock of one of the campaign's processes; again does nothing.

        Raises:
            JournalError: Another process has it.
        """
        if process in self._names:
            return
        lock = FileLock(self._folder / f"{process}{_LOCK}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise JournalError(
                f"{self._folder}: another process measures this campaign right now; wait for its"
                " end, or end it"
            ) from None
        except OSError as error:
            raise JournalError(
                f"{error.filename or self._folder}: {error.strerror or error}; free space or give"
                " another folder with --suite-folder"
            ) from error
        self._held.callback(lock.release)
        self._names.add(process)

    def check(self) -> None:
        """Makes sure that nobody else writes.

        Raises:
            JournalError: Somebody does.
        """
        for path in sorted(self._folder.glob(f"*{_LOCK}")):
            process = path.name.removesuffix(_LOCK)
            if process not in self._names:
                other = Locks(self._folder)
                other.hold(process)
                other.release()

    def release(self) -> None:
        """Lets others write."""
        self._held.close()
        self._names.clear()
