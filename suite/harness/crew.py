"""Tasks for a few workers, urgent ones first: each worker is one thread's alone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import PriorityQueue
from typing import Any, Generic, Protocol, TypeVar


class Closes(Protocol):
    """What a crew is made of: workers, evaluators."""

    def close(self) -> None:
        """Ends it, whatever it is at. Called from another thread, perhaps more than once."""
        ...


_T = TypeVar("_T")
_W = TypeVar("_W", bound=Closes)
_END, _URGENT, _LATER = range(3)


@dataclass(order=True)
class _Task:
    rank: tuple[int, int]
    do: Callable[[Any], Any] | None = field(default=None, compare=False)
    done: Future[Any] = field(default_factory=Future, compare=False)


class Crew(Generic[_W]):
    """Has tasks done by the first worker that is free, in the order they were given.

    A worker that nobody needed yet is not started. May be used from any thread.
    """

    def __init__(self, workers: Sequence[_W]) -> None:
        self._unused, self._workers = list(workers), list(workers)
        self._threads: list[threading.Thread] = []
        self._tasks: PriorityQueue[_Task] = PriorityQueue()
        self._order = itertools.count()
        self._idle = threading.Semaphore(0)  # as often as a thread has come to the end of a task
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, do: Callable[[_W], _T], urgent: bool) -> Future[_T]:
        """Has a task done; an urgent one before all that are not.

        Raises:
            RuntimeError: The crew is closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the workers are closed")
            task = _Task((_URGENT if urgent else _LATER, next(self._order)), do)
            self._tasks.put(task)
            if not self._idle.acquire(blocking=False) and self._unused:
                worker = self._unused.pop(0)
                self._threads.append(
                    threading.Thread(target=self._serve, args=(worker,), daemon=True)
                )
                self._threads[-1].start()
        return task.done

    def close(self) -> None:
        """Ends the workers and what they are at; what has not begun is cancelled."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._tasks.put(_Task((_END, next(self._order))))
        for thread in self._threads:
            while thread.is_alive():
                for worker in self._workers:  # again, as a task may have started one anew
                    worker.close()
                thread.join(0.05)
        for worker in self._workers:
            worker.close()
        while not self._tasks.empty():
            left = self._tasks.get().done
            left.cancel()
            left.set_running_or_notify_cancel()  # who waits for several is told by this alone

    def _serve(self, worker: _W) -> None:
        while (task := self._tasks.get()).do is not None:
            if task.done.set_running_or_notify_cancel():
                try:
                    task.done.set_result(task.do(worker))
                except BaseException as error:  # whoever waits for the task is told
                    task.done.set_exception(error)
            self._idle.release()
