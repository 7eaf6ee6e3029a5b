"""What is asked of NVML, on one that answers as told."""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from suite.harness.cuda.witness import RECENT_S, Witness
from suite.harness.steady import Reading


class FakeNvml:
    """A management library of one GPU.

    Attributes:
        running: Ids of processes with a context.
        used: Process id, age in seconds and per cent of utilisation samples.
        refuses: Names of functions that this GPU does not support.
    """

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.running = [os.getpid(), 1]
        self.used: list[tuple[int, float, int]] = []
        self.refuses: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetHandleByPciBusId": lambda bus: bus,
            "nvmlSystemGetDriverVersion": lambda: "580.1",
            "nvmlDeviceGetClockInfo": lambda handle, which: {1: 1980, 2: 3201}[which],
            "nvmlDeviceGetMaxClockInfo": lambda handle, which: 1980,
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
            "nvmlDeviceGetTemperature": lambda handle, which: 38,
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=12),
            "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 0x4,
            "nvmlDeviceGetViolationStatus": lambda handle, policy: SimpleNamespace(
                violationTime=[500, 900][policy]
            ),
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
                SimpleNamespace(pid=pid) for pid in self.running
            ],
            "nvmlDeviceGetProcessUtilization": lambda handle, since: [
                SimpleNamespace(pid=pid, timeStamp=int((time.time() - age) * 1e6), smUtil=percent)
                for pid, age, percent in self.used
            ],
        }

        def call(*arguments: Any) -> Any:
            if name in self.refuses:
                raise self.NVMLError(name)
            return answers[name](*arguments)

        return call


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_a_reading_is_what_the_library_says(nvml: FakeNvml) -> None:
    assert Witness("bus").read() == Reading(1980, 3201, 0x4, 500, 900, {})


def test_what_a_device_does_not_say_is_not_known_and_the_rest_is(nvml: FakeNvml) -> None:
    nvml.refuses = {"nvmlDeviceGetViolationStatus", "nvmlDeviceGetProcessUtilization"}
    assert Witness("bus").read() == Reading(1980, 3201, 0x4, None, None, {})


def test_processes_that_worked_in_the_last_second_are_strangers_unless_they_are_ours(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = os.getppid()
    monkeypatch.setattr(os, "getppid", lambda: parent if parent != 1 else os.getpid())
    ended = 2**22 + 1  # beyond the largest id there can be
    nvml.used = [(os.getpid(), 0.1, 90), (1, 0.2, 30), (1, 0.3, 40), (1, 2.0, 80), (ended, 0.1, 50)]
    nvml.used.append((os.getppid(), 0.1, 60))  # who started us generates programs between times
    found = Witness("bus").read()
    assert found is not None
    assert found.strangers == {1: 40}


def test_a_recent_reading_serves_twice_and_an_old_one_does_not(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    witness = Witness("bus")
    first = witness.read()
    nvml.refuses = {"nvmlDeviceGetViolationStatus"}
    assert witness.recent() is first
    now[0] += 2 * RECENT_S
    second = witness.recent()
    assert second is not None
    assert second.power_ns is None


def test_other_processes_are_looked_for_anew_after_half_a_second(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    witness = Witness("bus")
    witness.read()
    nvml.used = [(1, 0.2, 30)]
    for later, strangers in ((0.4, {}), (0.2, {1: 30})):
        now[0] += later
        found = witness.read()
        assert found is not None
        assert found.strangers == strangers


def test_where_process_ids_are_not_ours_to_read_nobody_is_a_stranger(nvml: FakeNvml) -> None:
    nvml.running, nvml.used = [70_000], [(1, 0.1, 90)]
    witness = Witness("bus")
    found = witness.read()
    assert found is not None
    assert found.strangers == {}
    assert "other_processes" not in witness.facts()


def test_facts_are_text_and_say_how_busy_the_device_was(nvml: FakeNvml) -> None:
    nvml.refuses = {"nvmlDeviceGetTemperature"}
    found = Witness("bus").facts()
    assert found.pop("reading_us").isdigit()
    assert found == {
        "driver": "580.1",
        "sm_clock_mhz": "1980",
        "memory_clock_mhz": "3201",
        "sm_clock_max_mhz": "1980",
        "power_limit_w": "700",
        "utilization_percent": "12",
        "other_processes": "1",
    }


def test_without_the_library_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it fails
    witness = Witness("bus")
    assert witness.read() is None
    assert witness.facts() == {}
