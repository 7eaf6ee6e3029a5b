"""Timing decisions are functions of numbers: when to stop, and what interval to report."""

import numpy as np
import pytest

from suite.harness.timing import Precision, enough, median_interval, summarise

PRECISION = Precision(relative=0.01, least=7, most=60, budget_ms=10)


def test_the_interval_encloses_the_median_and_needs_no_distribution() -> None:
    low, middle, high = median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 100.0, 2.5])
    assert low <= middle <= high
    assert middle == 3.0


def test_the_interval_covers_the_true_median_about_95_times_in_100() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        low, _, high = median_interval(list(rng.exponential(size=25)))
        covered += low <= np.log(2) <= high
    assert 0.93 <= covered / 2000 <= 0.99


def test_steady_samples_stop_at_the_least_number() -> None:
    assert not enough([10.0] * 6, 0.1, PRECISION)
    assert enough([10.0] * 7, 0.1, PRECISION)


def test_noisy_samples_go_on_until_the_budget_ends() -> None:
    noisy = [10.0, 20.0] * 6
    assert not enough(noisy, 9.9, PRECISION)
    assert enough(noisy, 10.0, PRECISION)


def test_no_more_than_the_most_samples_are_taken() -> None:
    assert enough([10.0, 20.0] * 30, 0.0, PRECISION)


def test_a_very_slow_program_gets_three_samples_whatever_the_budget() -> None:
    assert not enough([1e6, 1e6], 2000.0, PRECISION)
    assert enough([1e6, 1e6, 1e6], 3000.0, PRECISION)


def test_a_summary_says_whether_it_settled() -> None:
    assert summarise([10.0] * 7, 5, PRECISION).settled
    assert not summarise([10.0, 12.0] * 4, 5, PRECISION).settled


@pytest.mark.parametrize(
    ("one_us", "launches"), [(1.0, 100), (4.0, 100), (40.0, 10), (399.0, 2), (5000.0, 1)]
)
def test_fast_programs_run_many_times_a_sample(one_us: float, launches: int) -> None:
    assert PRECISION.launches(one_us) == launches


@pytest.mark.parametrize(("n", "low", "high"), [(5, 1, 5), (7, 1, 7), (25, 7, 19), (60, 22, 39)])
def test_the_interval_is_made_of_these_ranks(n: int, low: int, high: int) -> None:
    assert median_interval([float(i) for i in range(n, 0, -1)])[::2] == (low, high)


def test_a_summary_keeps_its_samples_their_order_and_its_launches() -> None:
    found = summarise([3.0, 1.0, 2.0], 5, PRECISION)
    assert (found.low_us, found.median_us, found.high_us) == (1.0, 2.0, 3.0)
    assert (found.samples_us, found.launches) == ((3.0, 1.0, 2.0), 5)
