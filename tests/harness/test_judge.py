"""Each defence of the judge, alone, catches what it is for: NumPy arrays are device and program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from suite.evaluation import Conditions, Status, Timing
from suite.harness.device import Check, DeviceFault, Measured
from suite.harness.judge import (
    EXACT,
    FRESH_RATIO,
    FRESH_US,
    OWN,
    PLAIN,
    SUSPICIOUS,
    SWAPPED,
    WARM_RATIO,
    WARM_US,
    Repeats,
    Stage,
    Verdict,
    implausible,
    judge,
)
from suite.harness.timing import Precision

VALUES = {  # diagonals
    OWN: np.array([2.0, -3.0, 5.0]),
    EXACT: np.array([1.0, -1.0, 1.0]),
    SWAPPED: np.array([-7.0, 3.0, 9.0]),
}
DENSE = {
    OWN: np.array([0.5, 0.25, 1.0]),
    EXACT: np.array([-1.0, 3.0, 5.0]),
    SWAPPED: np.array([1.0, 1.0, -1.0]),
}
TIMED_RUNS = 3
PRECISION = Precision()
REPEATS = Repeats(least=3, most=3)

Program = Callable[[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


class Lab:
    """A diagonal problem, its device and its executable, where everything happens at once.

    A program is a function of (run number, values, x, y, scratch). Runs: 1 on the exact set, 2 on
    the own, 3 to 5 timed on shaken inputs, 6 on the swapped set, 7 to 9 repeat that.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.runs = program, 0
        self.values, self.x, self.y, self.scratch = (np.zeros(3) for _ in range(4))
        self.kept = np.zeros(3)  # what use or shake put into x
        self.number, self.shaken, self.syncs = -1, 0, 0
        self.ratios: list[float] = []
        self.outside: list[str] = []
        self.times: Measured | float = 1.0
        self.repeats = REPEATS
        self.least_bytes = 0

    # The executable

    def run(self) -> None:
        self.runs += 1
        self.program(self.runs, self.values, self.x, self.y, self.scratch)

    def prepare(self) -> None: ...

    def refresh(self) -> None: ...

    def collect(self) -> None: ...

    # The device

    def sync(self) -> None:
        self.syncs += 1

    def fill(self, buffer: np.ndarray, byte: int) -> None:
        buffer.view(np.uint8)[:] = byte

    def digests(self, buffers: Sequence[np.ndarray]) -> list[int]:
        return [hash(buffer.tobytes()) for buffer in buffers]

    def once_us(self, run: Callable[[], None], spoil: Callable[[], None]) -> float | None:
        spoil()
        run()
        return 5.0

    def measure(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Measured | float:
        for _ in range(TIMED_RUNS):
            spoil()
            run()
        return self.times

    # The stage

    def use(self, number: int) -> None:
        self.values[:], self.kept, self.number = VALUES[number], DENSE[number], number
        self.x[:] = self.kept

    def shake(self) -> None:
        self.shaken += 1
        self.kept, self.number = np.random.default_rng(self.shaken).random(3) + 1, OWN
        self.x[:] = self.kept

    def settle(self) -> None:
        self.x[:] = self.kept

    def changed(self) -> list[str]:
        right = {"vals": VALUES[self.number], "x": self.kept}
        held = {"vals": self.values, "x": self.x}
        return [name for name in right if not np.array_equal(held[name], right[name])]

    def check(self) -> Check:
        error = np.abs(self.y - VALUES[self.number] * self.x)
        wrong = ~(error <= 1e-12)
        ratio = self.ratios.pop(0) if self.ratios else float(np.nan_to_num(error.max()))
        return Check(ratio, int(wrong.sum()), int(np.isnan(self.y).sum()), int(wrong.argmax()))

    def judge(self, precision: Precision | None = PRECISION) -> Verdict:
        stage = Stage(
            use=self.use,
            shake=self.shake,
            settle=self.settle,
            check=self.check,
            note=lambda: None,
            changed=self.changed,
            outside=lambda: self.outside,
            output=self.y,
            scratch=(self.scratch,),
            least_bytes=self.least_bytes,
        )
        return judge(self, stage, self, precision, self.repeats)


def right(run, values, x, y, scratch):
    y[:] = values * x


def nothing(run, values, x, y, scratch): ...


def zero(run, values, x, y, scratch):
    y[:] = 0


def right_but_spoils_x(run, values, x, y, scratch):
    y[:] = values * x
    x[1] = 0


def zero_with_x(run, values, x, y, scratch):
    x[:] = y[:] = 0


def after(first: int, cheat: Program) -> Program:
    """Right before run number ``first``, the cheat from then on."""
    return lambda run, *arrays: (right if run < first else cheat)(run, *arrays)


def only(number: int, cheat: Program) -> Program:
    return lambda run, *arrays: (cheat if run == number else right)(run, *arrays)


def test_a_right_program_is_compared_four_times_and_timed() -> None:
    found = Lab(right).judge()
    assert (found.status, found.checks, found.emulated_us) == (Status.OK, 4 + 3, 1.0)


def test_without_timing_three_comparisons_and_the_repeats_are_made() -> None:
    found = Lab(right).judge(None)
    assert (found.status, found.checks, found.emulated_us) == (Status.OK, 3 + 3, None)


@pytest.mark.parametrize(
    ("program", "checks", "says"),
    [
        (nothing, 1, "on input set 2, first in row 0; 3 not a number"),
        (zero, 1, "on input set 2"),
        (after(2, nothing), 2, "on input set 1, first in row 0; 3 not a number"),
        (after(2, zero), 2, "on input set 1"),
        (only(5, nothing), 3, "after the timed runs, first in row 0; 3 not a number"),
        (only(5, zero), 3, "after the timed runs"),
        (only(5, zero_with_x), 3, "after the timed runs"),
        (after(6, nothing), 4, "on input set 3"),
        (only(1, right_but_spoils_x), 0, "overwrote its input x"),
        (only(2, right_but_spoils_x), 1, "overwrote its input x"),
        (only(6, right_but_spoils_x), 3, "overwrote its input x"),
    ],
)
def test_a_cheat_is_caught_by_the_first_defence_that_can(
    program: Program, checks: int, says: str
) -> None:
    found = Lab(program).judge()
    assert found.status is Status.WRONG_RESULT
    assert says in found.error
    assert found.checks == checks
    assert found.emulated_us is None
    assert found.spoiled == ("overwrote" in says)


def test_inputs_are_looked_at_before_an_answer_made_with_them_is_believed() -> None:
    assert "overwrote its input x" in Lab(zero_with_x).judge().error


def test_an_answer_kept_for_the_values_and_not_for_x_is_wrong_after_the_timed_runs() -> None:
    kept: dict[bytes, np.ndarray] = {}

    def remember(run, values, x, y, scratch):
        y[:] = kept.setdefault(values.tobytes(), values * x)

    assert "after the timed runs" in Lab(remember).judge().error


def test_between_timed_runs_the_output_and_x_change() -> None:
    seen = []

    def look(run, values, x, y, scratch):
        seen.append((bool(np.isnan(y).all()), tuple(x)))
        y[:] = values * x

    Lab(look).judge()
    assert all(poisoned for poisoned, _ in seen)
    assert len({x for _, x in seen}) == len(seen) - 3  # the repeated runs are on one set


def test_scratch_is_poisoned_before_every_run_that_is_checked() -> None:
    seen = []

    def look(run, values, x, y, scratch):
        seen.append(bool(np.isnan(scratch).all()))
        y[:], scratch[:] = values * x, 1.0

    Lab(look).judge()
    assert seen == [True] * 9


def test_copies_are_refreshed_before_every_run_and_results_collected_after() -> None:
    class Copying(Lab):
        def refresh(self) -> None:
            self.mine = (self.values.copy(), self.x.copy())

        def run(self) -> None:
            self.result = self.mine[0] * self.mine[1]

        def collect(self) -> None:
            self.y[:] = self.result

    assert Copying(right).judge().status is Status.OK


def test_every_comparison_waits_for_the_device() -> None:
    lab = Lab(right)
    assert lab.syncs == 0
    assert lab.judge().checks == lab.syncs - 1 == 4 + 3  # and once more before the last look


def test_the_largest_error_of_all_comparisons_is_reported() -> None:
    lab = Lab(right)
    lab.ratios = [0.1, 0.7, 0.2, 0.3]
    assert lab.judge().error_ratio == 0.7


def test_a_write_into_the_suites_own_arrays_is_a_memory_fault_that_names_them() -> None:
    lab = Lab(right)
    lab.outside = ["row pointers"]
    with pytest.raises(DeviceFault, match=r"outside its buffers.*row pointers") as caught:
        lab.judge()
    assert caught.value.status is Status.MEMORY_FAULT


def timing(us: float) -> Timing:
    return Timing(us, us, us, (us,), 1, True)


def measured(hot_us: float, fresh_us: float) -> Measured:
    return Measured(timing(hot_us), timing(3 * hot_us), fresh_us)


def test_measured_times_are_the_verdicts_own() -> None:
    lab = Lab(right)
    lab.times = measured(10.0, 12.0)
    found = lab.judge()
    assert (found.status, found.emulated_us) == (Status.OK, None)
    assert (found.hot.median_us, found.cold.median_us, found.fresh_us) == (10.0, 30.0, 12.0)


def test_a_hot_run_much_faster_than_one_into_a_spoilt_output_is_impossible() -> None:
    lab = Lab(right)
    lab.times = measured(10.0, 100.0)
    found = lab.judge()
    assert (found.status, found.checks) == (Status.IMPOSSIBLE_TIME, 4 + 3)
    assert "10.00 us back to back, but 100.00 us" in found.error
    assert (found.hot, found.cold, found.fresh_us) == (None, None, None)


@pytest.mark.parametrize("hot_us", [0.5, 10.0, 1000.0])
def test_a_run_into_a_spoilt_output_may_take_so_much_longer_and_no_more(hot_us: float) -> None:
    most = FRESH_RATIO * hot_us + FRESH_US
    assert (FRESH_RATIO, FRESH_US) == (2.5, 4.0)
    assert not implausible(measured(hot_us, 0.999 * most))
    assert implausible(measured(hot_us, 1.001 * most))


def test_a_cold_run_too_short_for_what_it_must_move_is_impossible() -> None:
    lab = Lab(right)
    lab.least_bytes = 4_800_000 * 30  # 29 us at 1.2 × 4,000 GB/s less the allowance of 1 us
    quiet = Conditions(copy_gbps=4000.0)
    lab.times = replace(measured(9.9, 10.0), conditions=quiet)  # 29.7 us cold
    assert lab.judge().status is Status.OK
    lab = Lab(right)
    lab.least_bytes = 4_800_000 * 30
    lab.times = replace(measured(9.6, 10.0), conditions=quiet)
    found = lab.judge()
    assert (found.status, found.cold) == (Status.IMPOSSIBLE_TIME, None)
    assert "28.80 us with a flushed L2, too short for the 144,000,000 bytes" in found.error


def test_without_a_known_bandwidth_no_cold_time_is_impossible() -> None:
    assert not implausible(measured(1.0, 1.0), least_bytes=10**12)


def test_the_conditions_of_a_measurement_are_the_verdicts_own() -> None:
    lab = Lab(right)
    lab.times = replace(measured(10.0, 12.0), conditions=Conditions(4000.0, 1980, "power cap", 3))
    assert lab.judge().conditions == Conditions(4000.0, 1980, "power cap", 3)


def sometimes(*wrong: int) -> Program:
    """Right, except in those runs."""

    def program(run, values, x, y, scratch):
        y[:] = 0 if run in wrong else values * x

    return program


@pytest.mark.parametrize(("wrong", "bad"), [([7], 1), ([9], 1), ([7, 9], 2), ([7, 8, 9], 3)])
def test_a_program_that_is_sometimes_wrong_is_wrong(wrong: list[int], bad: int) -> None:
    found = Lab(sometimes(*wrong)).judge()
    assert (found.status, found.checks) == (Status.WRONG_RESULT, 4 + 3)
    assert found.error.startswith(f"wrong in {bad} of 3 repeated runs: 3 wrong elements")
    assert found.emulated_us is None


def test_repeated_runs_are_into_a_spoilt_output_on_an_exact_set() -> None:
    lab = Lab(right)
    seen = []

    def look(run, values, x, y, scratch):
        seen.append((np.isnan(y).all() and np.isnan(scratch).all(), lab.number))
        y[:] = values * x

    lab.program = look
    assert lab.judge().status is Status.OK
    assert seen[-3:] == [(True, SWAPPED)] * 3


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_what_repeated_runs_overwrite_is_noticed_though_the_answer_be_right(answer: float) -> None:
    def program(run, values, x, y, scratch):
        y[:] = values * x * (answer if run == 8 else 1)
        x[1] = 0 if run == 8 else x[1]

    found = Lab(program).judge()
    assert (found.status, found.spoiled) == (Status.WRONG_RESULT, True)
    assert found.error == "the program overwrote its input x"


def test_other_bits_of_a_right_answer_are_right() -> None:
    """Where no input set is exact, an order of summation of its own may show in the last bit."""

    def program(run, values, x, y, scratch):
        y[:] = values * x * (1 + 1e-14 * run)

    assert Lab(program).judge().status is Status.OK


def test_suspicious_programs_are_repeated_more_often_and_time_ends_it() -> None:
    for repeats, least in ((Repeats(2, 50, 60.0), 50), (Repeats(2, 50, 0.0), 2)):
        lab = Lab(right)
        lab.repeats = repeats
        assert lab.judge().checks == 4 + least
    assert SUSPICIOUS.most > PLAIN.most
    assert SUSPICIOUS.seconds > PLAIN.seconds


@pytest.mark.parametrize("warm_us", [0.5, 10.0, 1000.0])
def test_with_a_flushed_cache_an_earlier_answer_may_save_so_much_and_no_more(
    warm_us: float,
) -> None:
    """Half of the work saved would pass the comparison of hot with fresh."""
    most = WARM_RATIO * warm_us + WARM_US
    assert (WARM_RATIO, WARM_US) == (1.5, 4.0)

    def times(cold_us: float) -> Measured:
        return Measured(timing(warm_us), timing(cold_us), warm_us, warm_us=warm_us)

    assert implausible(times(0.999 * most)) == ""
    assert "where an earlier answer lies, but" in implausible(times(1.001 * most))
