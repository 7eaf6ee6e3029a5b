"""Whether a GPU was left alone and kept its clocks while it was measured. Knows numbers only.

A look at the GPU before and after the figures of a measurement, and the samples
themselves, decide. What was disturbed is measured again, and marked when that does not help; it is
never averaged with what was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from suite.harness.device import Measured

CLOCK_CHANGE = 0.02  # of the highest clock seen; one step of 15 MHz is under a hundredth
STRANGER_PERCENT = 5  # multiprocessor time of another process, from which it counts as active
HELD_MS = 0.5  # held down for power or heat while measuring
DRIFT = 0.08  # between the medians of a series' halves; on a quiet H200 at most 0.055
OUTLIER = 1.5  # times the median,
OUTLIERS = 0.1  # and the share of such samples; on a quiet H200 at most 0.017
LEAST = 6  # samples from which a series says anything
ATTEMPTS = 3
BUDGET_MS = 60.0  # of host time, after which a program gets no third attempt

# NVML's clock event reasons that slow a GPU down on its own account; idle, application clocks and
# display settings are somebody's choice.
SLOWDOWNS: Mapping[int, str] = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x020: "thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}
_IDLE = 0x001


@dataclass(frozen=True)
class Reading:
    """One look at a GPU; None where it does not say.

    Attributes:
        sm_mhz: Clock of the multiprocessors.
        memory_mhz: Clock of the memory.
        reasons: NVML's bit mask of what holds the clocks down at this moment.
        power_ns: Time spent held down for power since the driver started.
        thermal_ns: The same for heat.
        strangers: Multiprocessor time in per cent of every process that is not the suite's, by its
            id, over the last second.
    """

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    reasons: int = 0
    power_ns: int | None = None
    thermal_ns: int | None = None
    strangers: Mapping[int, int] = field(default_factory=dict)


def disturbances(readings: Sequence[Reading], series: Mapping[str, Sequence[float]]) -> list[str]:
    """What was wrong while measuring, one phrase each; nothing on a quiet GPU.

    Args:
        readings: In the order taken; may be empty where the GPU does not say.
        series: Samples by their name, in the order taken.
    """
    found = [_slowdowns(readings), _strangers(readings)]
    found += [_changed(readings, name) for name in ("sm", "memory")]
    found += [text for name, samples in series.items() for text in _uneven(name, samples)]
    return [text for text in found if text]


def lowest_clock(readings: Sequence[Reading]) -> int | None:
    """The lowest clock of the multiprocessors that was seen under way, in MHz."""
    return min(_clocks(readings, "sm"), default=None)


def repeated(
    measure: Callable[[], tuple[Measured, Sequence[str]]], now_s: Callable[[], float]
) -> Measured:
    """Measures until nothing disturbs, up to ``ATTEMPTS`` times; the last attempt stands.

    Every attempt is whole: no sample of a disturbed one is kept.

    Args:
        measure: Measures once and says what disturbed it.
        now_s: A clock in seconds.
    """
    started = now_s()
    for attempt in range(1, ATTEMPTS + 1):
        measured, found = measure()
        late = attempt > 1 and (now_s() - started) * 1e3 > BUDGET_MS
        if not found or late:
            break
    conditions = replace(measured.conditions, disturbed="; ".join(found), attempts=attempt)
    return replace(measured, conditions=conditions)


def _slowdowns(readings: Sequence[Reading]) -> str:
    held = 0
    for reading in readings:
        held |= reading.reasons
    names = [name for bit, name in SLOWDOWNS.items() if held & bit]
    for name in ("power", "thermal"):
        counts = [c for r in readings if (c := getattr(r, f"{name}_ns")) is not None]
        held_ms = (counts[-1] - counts[0]) / 1e6 if counts else 0.0
        if held_ms > HELD_MS:
            names.append(f"{held_ms:.1f} ms held down for {name}")
    return ", ".join(names)


def _strangers(readings: Sequence[Reading]) -> str:
    most: dict[int, int] = {}
    for reading in readings:
        for pid, percent in reading.strangers.items():
            most[pid] = max(percent, most.get(pid, 0))
    busy = {pid: percent for pid, percent in most.items() if percent >= STRANGER_PERCENT}
    return ", ".join(f"process {pid} had {percent} % of the GPU" for pid, percent in busy.items())


def _changed(readings: Sequence[Reading], which: str) -> str:
    clocks = _clocks(readings, which)
    if not clocks or min(clocks) >= (1 - CLOCK_CHANGE) * max(clocks):
        return ""
    return f"{which} clock between {min(clocks)} and {max(clocks)} MHz"


def _clocks(readings: Sequence[Reading], which: str) -> list[int]:
    """Clocks of an idle GPU say nothing about those under load."""
    awake = [reading for reading in readings if not reading.reasons & _IDLE]
    return [mhz for reading in awake if (mhz := getattr(reading, f"{which}_mhz")) is not None]


def _uneven(name: str, samples: Sequence[float]) -> list[str]:
    if len(samples) < LEAST:
        return []
    found = []
    half = len(samples) // 2
    drift = median(samples[-half:]) / median(samples[:half]) - 1
    if abs(drift) > DRIFT:
        found.append(f"{name} samples drift by {drift:+.0%}")
    middle = median(samples)
    far = sum(sample > OUTLIER * middle for sample in samples)
    if far > OUTLIERS * len(samples):
        found.append(f"{far} of {len(samples)} {name} samples over {OUTLIER} times the median")
    return found
