"""The clock's units and what it encloses, on a driver whose time is a number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cuda.bindings
import pytest

from suite.evaluation import Status
from suite.harness.cuda.clock import Clock
from suite.harness.device import DeviceFault
from suite.harness.timing import Precision

HOT_US, COLD_US, SPOIL_US, FLUSH_US = 10.0, 30.0, 7.0, 500.0


class FakeDriver:
    """Streams, events and graphs in virtual milliseconds, as the driver counts them.

    Attributes:
        now: Virtual time.
        graphs: Graphs that exist.
        fault: What synchronising reports.
        persisting: Whether lines in the L2 outlive a flush.
    """

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=0)
    CUevent_record_flags = SimpleNamespace(CU_EVENT_RECORD_EXTERNAL=1)

    def __init__(self) -> None:
        self.now, self.graphs, self.fault = 0.0, 0, 0
        self.resets, self.reset_error, self.persisting = 0, 0, False
        self.captured: list[Callable[[], None]] | None = None

    def submit(self, work: Callable[[], None]) -> tuple[int]:
        if self.captured is None:
            work()
        else:
            self.captured.append(work)
        return (0,)

    def spend(self, us: Callable[[], float]) -> None:
        def work() -> None:
            self.now += us() / 1e3

        self.submit(work)

    def CUstream(self, handle: int) -> int:  # noqa: N802
        return handle

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:  # noqa: N802
        return 0, SimpleNamespace(at=None)

    def cuEventRecord(self, event: Any, stream: int) -> tuple[int]:  # noqa: N802
        assert self.captured is None, "only external events may be recorded in a graph"
        return self.submit(lambda: setattr(event, "at", self.now))

    def cuEventRecordWithFlags(self, event: Any, stream: int, flags: int) -> tuple[int]:  # noqa: N802
        assert flags == self.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        return self.submit(lambda: setattr(event, "at", self.now))

    def cuEventSynchronize(self, event: Any) -> tuple[int]:  # noqa: N802
        return (self.fault,)

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:  # noqa: N802
        return (self.fault,)

    def cuEventElapsedTime(self, begin: Any, end: Any) -> tuple[int, float]:  # noqa: N802
        return 0, end.at - begin.at

    def cuGetErrorString(self, error: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, b"an illegal memory access was encountered"

    def cuCtxResetPersistingL2Cache(self) -> tuple[int]:  # noqa: N802
        assert self.captured is None, "it cannot be captured"
        self.resets += 1
        self.persisting = False
        return (self.reset_error,)

    def cuStreamBeginCapture(self, stream: int, mode: int) -> tuple[int]:  # noqa: N802
        self.captured = []
        return (0,)

    def cuStreamEndCapture(self, stream: int) -> tuple[Any, ...]:  # noqa: N802
        graph, self.captured = self.captured, None
        self.graphs += 1
        return 0, graph

    def cuGraphInstantiate(self, graph: Any, flags: int) -> tuple[Any, ...]:  # noqa: N802
        self.graphs += 1
        return 0, graph

    def cuGraphLaunch(self, graph: Any, stream: int) -> tuple[int]:  # noqa: N802
        for work in graph:
            work()
        return (0,)

    def cuGraphDestroy(self, graph: Any) -> tuple[int]:  # noqa: N802
        self.graphs -= 1
        return (0,)

    cuGraphExecDestroy = cuGraphDestroy  # noqa: N815


class Lab:
    """A program of 10 µs, 30 µs after a flush; spoiling takes 7 µs and a flush 500 µs.

    Attributes:
        answer_us: What the program takes where its earlier answer still stands.
    """

    def __init__(self, driver: FakeDriver) -> None:
        self.driver, self.answer_us, self.runs = driver, HOT_US, 0
        self.clock = Clock(1, self.flush)
        self.cold = self.spoilt = False

    def flush(self) -> None:
        def us() -> float:
            self.cold = not self.driver.persisting
            return FLUSH_US

        self.driver.spend(us)

    def spoil(self) -> None:
        def us() -> float:
            self.spoilt = True
            return SPOIL_US

        self.driver.spend(us)

    def run(self) -> None:
        def us() -> float:
            self.runs += 1
            cold, spoilt = self.cold, self.spoilt
            self.cold = self.spoilt = False
            if cold:
                return COLD_US if spoilt else COLD_US * self.answer_us / HOT_US
            return HOT_US if spoilt else self.answer_us

        self.driver.spend(us)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    driver = FakeDriver()
    monkeypatch.setattr(cuda.bindings, "driver", driver, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    return Lab(driver)


def test_hot_cold_and_fresh_are_microseconds_of_one_multiplication(lab: Lab) -> None:
    found = lab.clock.measure(lab.run, lab.spoil, Precision(sample_us=400))
    assert found.hot.median_us == pytest.approx(HOT_US)
    assert found.cold.median_us == pytest.approx(COLD_US)
    assert found.fresh_us == pytest.approx(HOT_US)
    assert found.warm_us == pytest.approx(COLD_US)
    assert (found.hot.launches, found.cold.launches) == (40, 1)
    assert found.hot.settled
    assert found.cold.settled


def test_an_answer_that_is_only_looked_up_is_fast_hot_and_slow_fresh(lab: Lab) -> None:
    lab.answer_us = 1.0
    found = lab.clock.measure(lab.run, lab.spoil, Precision())
    assert found.hot.median_us == pytest.approx(1.0)
    assert found.fresh_us == pytest.approx(HOT_US)
    assert found.warm_us == pytest.approx(COLD_US / HOT_US)
    assert found.cold.median_us == pytest.approx(COLD_US)


@pytest.mark.parametrize("launches", [1, 8])
def test_spoiling_does_not_count_as_the_programs_time(lab: Lab, launches: int) -> None:
    assert lab.clock.fresh(lab.run, lab.spoil, launches) == pytest.approx(HOT_US)


def test_every_cold_run_finds_a_flushed_cache_and_a_spoilt_output(lab: Lab) -> None:
    seen = []

    def look() -> None:
        lab.driver.submit(lambda: seen.append((lab.cold, lab.spoilt)))
        lab.run()

    lab.clock.cold(look, lab.spoil, Precision())
    assert seen == [(True, True)] * len(seen)


def test_lines_that_a_program_makes_persist_do_not_outlive_a_flush(lab: Lab) -> None:
    def pin() -> None:
        lab.run()
        lab.driver.submit(lambda: setattr(lab.driver, "persisting", True))

    cold = lab.clock.cold(pin, lab.spoil, Precision())
    assert min(cold.samples_us) == pytest.approx(COLD_US)
    assert lab.driver.resets == len(cold.samples_us) + 1


def test_a_device_without_persisting_lines_is_timed_all_the_same(lab: Lab) -> None:
    lab.driver.reset_error = 801
    assert lab.clock.cold(lab.run, lab.spoil, Precision()).median_us == pytest.approx(COLD_US)
    lab.driver.reset_error = 700
    with pytest.raises(DeviceFault, match="while timing"):
        lab.clock.cold(lab.run, lab.spoil, Precision())


def test_the_budget_is_device_time_in_milliseconds(lab: Lab) -> None:
    precision = Precision(relative=-1, least=3, most=1000, budget_ms=3.9, sample_us=400)
    assert len(lab.clock.hot(lab.run, precision).samples_us) == 10  # of 0.4 ms each


def test_a_slow_program_runs_few_times(lab: Lab) -> None:
    lab.answer_us = 1e6
    hot = lab.clock.hot(lab.run, Precision())
    assert (hot.launches, len(hot.samples_us)) == (1, 3)
    assert lab.runs <= 8


def test_one_run_between_events_is_told_in_microseconds(lab: Lab) -> None:
    assert lab.clock.single(lab.run) == pytest.approx(HOT_US)


def test_graphs_are_given_back_even_after_a_fault(lab: Lab) -> None:
    lab.clock.measure(lab.run, lab.spoil, Precision())
    assert lab.driver.graphs == 0
    lab.driver.fault = 700
    with pytest.raises(DeviceFault, match="while timing: an illegal memory access") as caught:
        lab.clock.measure(lab.run, lab.spoil, Precision())
    assert caught.value.status is Status.MEMORY_FAULT
    assert lab.driver.graphs == 0


def test_what_is_done_once_is_timed_with_its_earlier_result_spoilt(lab: Lab) -> None:
    lab.answer_us = 1.0  # where an earlier result lies there
    assert lab.clock.once(lab.run, lab.spoil) == pytest.approx(HOT_US)
    assert lab.driver.graphs == 0
