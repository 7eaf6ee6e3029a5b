"""What counts as disturbed: recorded and made-up series, each rule with a value on both sides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from suite.evaluation import Conditions, Timing
from suite.harness.device import Measured
from suite.harness.steady import (
    ATTEMPTS,
    Reading,
    disturbances,
    lowest_clock,
    repeated,
)

QUIET = Reading(sm_mhz=1980, memory_mhz=3201, power_ns=0, thermal_ns=0)
# Published for an H200: csr_vector-lanes4 on band-33-1m, in microseconds, rounded.
HOT = (98.59, 97.83, 98.09, 98.02, 97.87, 97.94, 97.77)
COLD = (99.23, 99.01, 100.03, 98.94, 99.94, 99.49, 99.71, 98.43)
PUBLISHED = Path(__file__).parents[2] / "reports" / "published" / "h200" / "rows.parquet"


def wrong(*readings: Reading, hot: tuple[float, ...] = HOT) -> list[str]:
    return disturbances([QUIET, *readings, QUIET], {"hot": hot, "cold": COLD})


def test_nothing_is_wrong_on_a_quiet_device_nor_where_it_does_not_say() -> None:
    assert wrong(QUIET) == []
    assert disturbances([], {"hot": HOT}) == []
    assert wrong(Reading()) == []


def test_no_published_series_of_a_quiet_device_looks_disturbed() -> None:
    names = ("status", "hot_samples_us", "cold_samples_us")
    rows = pq.read_table(PUBLISHED, columns=list(names)).to_pylist()
    right = [row for row in rows if row["status"] == "ok"]
    assert len(right) > 1000
    for row in right:
        assert disturbances([], {name: row[name] for name in names[1:]}) == []


@pytest.mark.parametrize(
    ("reasons", "says"),
    [
        (0x004, ["power cap"]),
        (0x020, ["thermal slowdown"]),
        (0x048, ["hardware slowdown, hardware thermal slowdown"]),
        (0x001, []),  # idle
        (0x002, []),  # application clocks: somebody's choice
        (0x110, []),  # sync boost, display
    ],
)
def test_what_slows_a_device_down_is_named_and_what_somebody_chose_is_not(
    reasons: int, says: list[str]
) -> None:
    assert wrong(replace(QUIET, reasons=reasons)) == says


def test_time_held_down_counts_from_half_a_millisecond() -> None:
    start, end = replace(QUIET, power_ns=7_000_000), replace(QUIET, power_ns=7_490_000)
    assert disturbances([start, end], {}) == []
    end = replace(end, power_ns=8_200_000, thermal_ns=2_000_000)
    assert disturbances([start, end], {}) == [
        "1.2 ms held down for power, 2.0 ms held down for thermal"
    ]


def test_a_clock_that_changes_by_more_than_a_fiftieth_is_named() -> None:
    assert wrong(replace(QUIET, sm_mhz=1950)) == []
    assert wrong(replace(QUIET, sm_mhz=1935)) == ["sm clock between 1935 and 1980 MHz"]
    assert wrong(replace(QUIET, memory_mhz=2619)) == ["memory clock between 2619 and 3201 MHz"]


def test_the_clocks_of_an_idle_device_say_nothing() -> None:
    idle = replace(QUIET, sm_mhz=345, reasons=0x001)
    assert wrong(idle) == []
    assert lowest_clock([idle, replace(QUIET, sm_mhz=1965), QUIET]) == 1965
    assert lowest_clock([idle]) is None


def test_another_process_at_work_is_named_and_a_sleeping_one_is_not() -> None:
    assert wrong(replace(QUIET, strangers={4711: 4})) == []
    assert wrong(replace(QUIET, strangers={4711: 38}), replace(QUIET, strangers={4711: 7})) == [
        "process 4711 had 38 % of the GPU"
    ]


def test_samples_that_drift_are_named() -> None:
    rising = (10.0, 10.1, 10.0, 10.2, 10.8, 10.7, 10.8, 10.8)
    assert wrong(hot=rising) == []  # not quite 8 %
    assert wrong(hot=(*rising[:4], 11.2, 11.2, 11.1, 11.2)) == ["hot samples drift by +11%"]
    assert wrong(hot=(10.0, 12.0, 12.0, 12.0, 12.0)) == []  # too few to say


def test_samples_that_another_process_cut_into_are_named() -> None:
    sliced = (10.0, 21.0, 10.0, 10.0, 10.0, 10.1, 20.0, 10.0, 10.0, 10.0)
    assert wrong(hot=sliced) == ["2 of 10 hot samples over 1.5 times the median"]
    assert wrong(hot=(*sliced[:6], 10.0, *sliced[7:])) == []  # one outlier of ten happens


def timed(number: int) -> Measured:
    timing = Timing(number, number, number, (number,), 1, True)
    return Measured(timing, timing, number, Conditions(sm_mhz=1980))


class Script:
    """Measurements in turn, each disturbed as told and a given time long."""

    def __init__(self, *found: list[str], seconds: float = 0.01) -> None:
        self.found, self.seconds, self.now, self.number = list(found), seconds, 0.0, 0

    def __call__(self) -> tuple[Measured, list[str]]:
        self.now += self.seconds
        self.number += 1
        return timed(self.number), self.found.pop(0)

    def run(self) -> Measured:
        return repeated(self, lambda: self.now)


def test_a_quiet_measurement_is_made_once() -> None:
    found = Script([]).run()
    assert found.conditions == Conditions(sm_mhz=1980, disturbed="", attempts=1)


def test_a_disturbed_measurement_is_made_again_and_nothing_of_it_is_kept() -> None:
    found = Script(["power cap"], []).run()
    assert (found.hot.median_us, found.conditions.disturbed) == (2, "")
    assert found.conditions.attempts == 2


def test_what_stays_disturbed_is_marked_and_given_up() -> None:
    script = Script(*[["power cap", "sm clock between 1 and 2 MHz"]] * ATTEMPTS)
    found = script.run()
    assert (found.hot.median_us, script.number) == (ATTEMPTS, ATTEMPTS)
    assert found.conditions.disturbed == "power cap; sm clock between 1 and 2 MHz"


def test_a_slow_program_is_repeated_once_and_no_more() -> None:
    script = Script(*[["power cap"]] * ATTEMPTS, seconds=1.0)
    assert script.run().conditions.attempts == 2
