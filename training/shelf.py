"""The matrices of the next steps, built in other processes while this one does something else."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from suite.harness.worker import Worker, WorkerDied
from suite.matrices.base import Matrix, MatrixSpec
from suite.problem import Problem
from training.curriculum import Curriculum

Kept = MutableMapping[str, Matrix]  # by their sources

BUILD_S = 300.0  # for one matrix
AHEAD = 2  # steps


class Builder:
    """What a process that builds matrices does."""

    def build(self, spec: MatrixSpec) -> Matrix:
        """Builds one."""
        return spec.build()


class Shelf:
    """Problems of a curriculum by their number.

    Args:
        curriculum: Says which are needed.
        builders: Processes that build; 0 builds here.
        last: Steps in all; nothing is built for later ones.
        kept: Matrices that are there already, and get those that are built; for runs of one process
            that ask for the same.
    """

    def __init__(
        self, curriculum: Curriculum, builders: int, last: int, kept: Kept | None = None
    ) -> None:
        self._curriculum, self._last, self._kept = curriculum, last, kept
        self._workers = [Worker("training.shelf:Builder", {}) for _ in range(builders)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(max(builders, 1), "shelf")
        self._problems: dict[int, Future[Problem]] = {}

    def close(self) -> None:
        """Ends the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def take(self, step: int) -> list[Problem]:
        """The problems of a step; those of the following ones are begun.

        Raises:
            MatrixError: One cannot be built.
        """
        for later in range(step, min(step + AHEAD, self._last - 1) + 1):
            for number in self._curriculum.at(later):
                self._begin(number)
        return [self._problems[number].result() for number in self._curriculum.at(step)]

    def ready(self, step: int) -> list[Problem]:
        """Those problems of a step that are built already."""
        found = [self._problems.get(number) for number in self._curriculum.at(step)]
        return [one.result() for one in found if one and one.done() and not one.exception()]

    def leave(self, step: int, release: Callable[[Matrix], None]) -> None:
        """Gives up the matrices that no later step asks for.

        Args:
            step: The one that is over.
            release: Told of each.
        """
        first = self._curriculum.there(step + 1).start
        for number in [number for number in self._problems if number < first]:
            release(self._problems.pop(number).result().matrix)

    def _begin(self, number: int) -> None:
        if number not in self._problems:
            self._problems[number] = self._threads.submit(
                self._build, number, self._curriculum.spec(number)
            )

    def _build(self, number: int, spec: MatrixSpec) -> Problem:
        matrix = self._kept.get(spec.source) if self._kept is not None else None
        if matrix is None:
            matrix = self._remote(spec) if self._workers else spec.build()
            if self._kept is not None:
                self._kept[spec.source] = matrix
        _ = matrix.digest  # takes a while too
        return self._curriculum.problem(number, matrix)

    def _remote(self, spec: MatrixSpec) -> Matrix:
        worker = self._free.get()
        try:
            try:
                matrix = worker.call("build", spec, timeout=BUILD_S)
            except WorkerDied:  # whoever killed it may have meant another
                matrix = worker.call("build", spec, timeout=BUILD_S)
        finally:
            self._free.put(worker)
        assert isinstance(matrix, Matrix)
        return matrix
