"""Device time of one multiplication, by replaying captured graphs.

Timing single launches with events would add the host's launch cost, 10 to 20 µs, to whoever
launches most. So every competitor is captured into a graph:

- hot: many multiplications back to back between two events, as in an iterative solver;
- cold: the output is spoilt and the L2 flushed before each multiplication, lines that were to
  persist in it included, and event nodes inside the graph enclose the multiplication alone;
- fresh: as hot, but the output is spoilt before each, and the time of spoiling alone is taken off.
  A program that finds its answer lying there from the last run is fast hot, and slow here;
- warm: as cold, with nothing spoilt. Nothing but an earlier answer can make it faster than cold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from suite.evaluation import Status, Timing
from suite.harness.cuda.memory import is_fault
from suite.harness.device import DeviceFault, Measured
from suite.harness.timing import Precision, enough, summarise

_UNSUPPORTED = 801  # CUDA_ERROR_NOT_SUPPORTED

WARM = Precision(least=5, most=9, budget_ms=2.0)
FRESH_LAUNCHES = 20  # of a graph at most: each is four to six of them, and it says yes or no


class Clock:
    """Measures on one stream.

    Args:
        stream: Handle of the stream on which ``run`` enqueues.
        flush: Enqueues, on that stream, something that leaves nothing of interest in the L2.
    """

    def __init__(self, stream: int, flush: Callable[[], None]) -> None:
        from cuda.bindings import driver

        self._api = driver
        self._stream = driver.CUstream(stream)
        self._flush = flush
        self._events = [self._call(driver.cuEventCreate, 0) for _ in range(2)]
        flush()  # allocates; must not happen inside a capture

    def measure(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Measured:
        """All times of ``run``."""
        hot = self.hot(run, precision)
        cold = self.cold(run, spoil, precision)
        warm = self.cold(run, lambda: None, WARM)
        fresh_us = self.fresh(run, spoil, min(hot.launches, FRESH_LAUNCHES))
        return Measured(hot, cold, fresh_us, warm_us=warm.median_us)

    def single(self, run: Callable[[], None]) -> float:
        """Microseconds of one run between events, launch cost included."""
        begin, end = self._events
        self._call(self._api.cuEventRecord, begin, self._stream)
        run()
        self._call(self._api.cuEventRecord, end, self._stream)
        self._call(self._api.cuEventSynchronize, end)
        return self._elapsed(begin, end)

    def once(self, run: Callable[[], None], spoil: Callable[[], None]) -> float:
        """Microseconds of something that is done once: the median of three replays.

        Before each its earlier result is spoilt, which is not timed.
        """
        begin, end = self._events[:2]
        with self._graph(run) as graph:
            self._replay(graph)
            samples = []
            for _ in range(3):
                spoil()
                samples.append(self._between(begin, end, graph))
            return median(samples)

    def hot(self, run: Callable[[], None], precision: Precision) -> Timing:
        """Back-to-back time."""
        begin, end = self._events
        with self._graph(run) as graph:  # also warms up
            self._replay(graph)
            one_us = min(self._between(begin, end, graph) for _ in range(2))
        launches = precision.launches(one_us)

        def repeated() -> None:
            for _ in range(launches):
                run()

        with self._graph(repeated) as graph:
            self._replay(graph)
            return self._sample(
                lambda: [self._between(begin, end, graph) / launches], launches, precision
            )

    def fresh(self, run: Callable[[], None], spoil: Callable[[], None], launches: int) -> float:
        """Microseconds of a multiplication into a spoilt output: with spoiling, less spoiling."""
        begin, end = self._events

        def total_us(enqueue: Callable[[], None]) -> float:
            def repeated() -> None:
                for _ in range(launches):
                    enqueue()

            with self._graph(repeated) as graph:
                if launches > 1:  # else the program is slow, and two runs say enough
                    self._replay(graph)
                repeats = 3 if launches > 1 else 2
                return min(self._between(begin, end, graph) for _ in range(repeats))

        def both() -> None:
            spoil()
            run()

        spoiling = total_us(spoil)
        return (total_us(both) - spoiling) / launches

    def cold(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Timing:
        """Time with the output spoilt and the L2 flushed before each multiplication."""
        external = self._api.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        begin, end = self._events

        def flushed() -> None:
            spoil()
            self._flush()
            self._call(self._api.cuEventRecordWithFlags, begin, self._stream, external)
            run()
            self._call(self._api.cuEventRecordWithFlags, end, self._stream, external)

        # One run a graph: what it makes persist has to be given up before the next flush, and that
        # cannot be captured.
        with self._graph(flushed) as graph:

            def samples() -> list[float]:
                self._unpin()
                self._replay(graph)
                return [self._elapsed(begin, end)]

            samples()
            return self._sample(samples, 1, precision)

    def _unpin(self) -> None:
        """Lines that persist in the L2 become ordinary ones, which a flush displaces."""
        (error,) = self._api.cuCtxResetPersistingL2Cache()
        if int(error) != _UNSUPPORTED:  # such a device has none
            self._succeeded(error)

    def _sample(
        self, take: Callable[[], list[float]], launches: int, precision: Precision
    ) -> Timing:
        samples: list[float] = []
        spent_ms = 0.0
        while not enough(samples, spent_ms, precision):
            new = take()
            samples += new
            spent_ms += sum(new) * launches / 1e3
        return summarise(samples, launches, precision)

    def _between(self, begin: Any, end: Any, graph: Any) -> float:
        self._call(self._api.cuEventRecord, begin, self._stream)
        self._call(self._api.cuGraphLaunch, graph, self._stream)
        self._call(self._api.cuEventRecord, end, self._stream)
        self._call(self._api.cuEventSynchronize, end)
        return self._elapsed(begin, end)

    def _replay(self, graph: Any) -> None:
        self._call(self._api.cuGraphLaunch, graph, self._stream)
        self._call(self._api.cuStreamSynchronize, self._stream)

    def _elapsed(self, begin: Any, end: Any) -> float:
        return float(self._call(self._api.cuEventElapsedTime, begin, end)) * 1e3

    @contextmanager
    def _graph(self, enqueue: Callable[[], None]) -> Iterator[Any]:
        mode = self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._call(self._api.cuStreamBeginCapture, self._stream, mode)
        try:
            enqueue()
        finally:
            graph = self._call(self._api.cuStreamEndCapture, self._stream)
        executable = self._call(self._api.cuGraphInstantiate, graph, 0)
        try:
            yield executable
        finally:
            self._api.cuGraphExecDestroy(executable)
            self._api.cuGraphDestroy(graph)

    def _call(self, function: Callable[..., tuple[Any, ...]], *args: Any) -> Any:
        error, *results = function(*args)
        self._succeeded(error)
        return results[0] if results else None

    def _succeeded(self, error: Any) -> None:
        if error != self._api.CUresult.CUDA_SUCCESS:
            _, text = self._api.cuGetErrorString(error)
            message = (text or b"").decode() or str(error)
            status = Status.MEMORY_FAULT if is_fault(int(error)) else Status.INFRASTRUCTURE_ERROR
            raise DeviceFault(status, f"while timing: {message}")
