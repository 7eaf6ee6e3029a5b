"""Looks at a GPU through NVML: clocks, what holds them down, who else is at work.

All of it is optional: where the management library or one of its answers is missing, that is not
known, and the samples themselves still say whether a measurement was disturbed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from suite.harness.steady import Reading

_SECOND_US = 1_000_000
RECENT_S = 0.1  # a reading so old still says how things were when a measurement began,
STRANGERS_S = 0.5  # and a look at other processes, which covers a second, is good for so long
_WORKER = b"suite.harness.worker"  # in the command line of processes that wait for the same lock


class Witness:
    """One GPU, by its address on the bus."""

    def __init__(self, bus_id: str) -> None:
        """Opens the management library; does nothing where it is not there."""
        self._handle: Any = None
        self._nvml: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)
            self._nvml = pynvml
        except Exception:  # the library is optional, and so is everything below
            return
        self._last: tuple[float, Reading] | None = None
        self._seen_strangers: tuple[float, dict[int, int]] | None = None
        # In a container, process ids may be those of the host and then say nothing here.
        self._knows_processes = os.getpid() in self.processes()
        self._ours: dict[int, bool] = {}

    def facts(self) -> dict[str, str]:
        """Driver, clocks and load as found; empty where the library is not there."""
        nvml, handle = self._nvml, self._handle
        if nvml is None:
            return {}
        others = [pid for pid in self.processes() if pid != os.getpid()]
        started = time.perf_counter()
        self.read()
        reading_us = (time.perf_counter() - started) * 1e6
        asked: dict[str, Callable[[], object]] = {
            "driver": nvml.nvmlSystemGetDriverVersion,
            "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "sm_clock_max_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "power_limit_w": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) // 1000,
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(
                handle, nvml.NVML_TEMPERATURE_GPU
            ),
            "utilization_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "other_processes": lambda: len(others) if self._knows_processes else None,
            "reading_us": lambda: round(reading_us),
        }
        found = {name: self._ask(answer) for name, answer in asked.items()}
        return {name: str(value) for name, value in found.items() if value is not None}

    def processes(self) -> list[int]:
        """Ids of the processes that have a context on the GPU."""
        running = self._ask(lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        return [int(process.pid) for process in running or ()]

    def recent(self) -> Reading | None:
        """The last look where it is not older than ``RECENT_S``, otherwise another one.

        A look takes some milliseconds; what ended one measurement may begin the next.
        """
        if self._nvml and self._last and time.monotonic() - self._last[0] < RECENT_S:
            return self._last[1]
        return self.read()

    def read(self) -> Reading | None:
        """One look; None where the library is not there."""
        nvml, handle = self._nvml, self._handle
        if nvml is None:
            return None
        found = Reading(
            sm_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            memory_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            reasons=self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0,
            power_ns=self._held_down_ns(nvml.NVML_PERF_POLICY_POWER),
            thermal_ns=self._held_down_ns(nvml.NVML_PERF_POLICY_THERMAL),
            strangers=self._strangers(),
        )
        self._last = time.monotonic(), found
        return found

    def _held_down_ns(self, policy: int) -> int | None:
        status = self._ask(lambda: self._nvml.nvmlDeviceGetViolationStatus(self._handle, policy))
        return None if status is None else int(status.violationTime)

    def _strangers(self) -> dict[int, int]:
        if not self._knows_processes:
            return {}
        now = time.monotonic()
        if self._seen_strangers and now - self._seen_strangers[0] < STRANGERS_S:
            return self._seen_strangers[1]
        since = int(time.time() * _SECOND_US) - _SECOND_US
        samples = self._ask(lambda: self._nvml.nvmlDeviceGetProcessUtilization(self._handle, since))
        found: dict[int, int] = {}
        for sample in samples or ():
            pid = int(sample.pid)
            # What the library returns may be older than what it was asked for.
            if sample.timeStamp > since and sample.smUtil and not self._is_ours(pid):
                found[pid] = max(int(sample.smUtil), found.get(pid, 0))
        self._seen_strangers = now, found
        return found

    def _is_ours(self, pid: int) -> bool:
        """Whether a process works only while we do not: itself, another worker, or who started us.

        Who started us may generate programs on the same GPU, and then holds the same lock.
        """
        if pid not in self._ours:
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                return True  # it has ended, perhaps a worker that was replaced
            self._ours[pid] = pid in (os.getpid(), os.getppid()) or _WORKER in command
        return self._ours[pid]

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except self._nvml.NVMLError:  # this GPU or driver does not say
            return None
