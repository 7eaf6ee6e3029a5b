"""A change is a difference only beyond what repeats; each threshold is tried on both sides."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.noise import THRESHOLDS, Verdict, judge, judge_ratio
from suite.evaluation import Status
from suite.record import Row
from tests.suite.rows import failed, right


def timed(us: float, **more: object) -> Row:
    row = right("fast", us)
    tight = {"hot_low_us": us * 0.999, "hot_high_us": us * 1.001, "hot_settled": True}
    return replace(row, **{**tight, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (100.0, 102.9, Verdict.SAME),
        (100.0, 103.2, Verdict.SLOWER),
        (103.2, 100.0, Verdict.FASTER),
        (9.0, 9.5, Verdict.SAME),  # short times repeat less well
        (9.0, 9.6, Verdict.SLOWER),
    ],
)
def test_a_change_counts_from_the_threshold_on(
    before: float, after: float, verdict: Verdict
) -> None:
    assert judge(timed(before), timed(after), "hot") is verdict
    assert judge_ratio(before / after, min(before, after)) is verdict


def test_intervals_that_meet_are_no_difference() -> None:
    wide = timed(100.0, hot_low_us=90.0, hot_high_us=111.0)
    assert judge(wide, timed(110.0), "hot") is Verdict.SAME


@pytest.mark.parametrize("trouble", [{"disturbed": "power cap"}, {"hot_settled": False}])
def test_a_disturbed_or_loose_time_makes_a_change_unclear(trouble: dict[str, object]) -> None:
    assert judge(timed(100.0, **trouble), timed(120.0), "hot") is Verdict.UNCLEAR
    assert judge(timed(100.0, **trouble), timed(101.0), "hot") is Verdict.SAME


def test_what_failed_is_not_compared() -> None:
    assert judge(timed(100.0), failed(Status.WRONG_RESULT), "hot") is None


def test_the_thresholds_are_beyond_what_two_published_campaigns_differ() -> None:
    """99 % of the times of one command that ran twice differ by less."""
    import pandas as pd

    table = pd.read_parquet(REPEATED)
    assert len(table) == 2484
    for _, times in table.groupby("cache"):
        change = (times.second_us / times.first_us - 1).abs()
        long = times.first_us >= THRESHOLDS.short_us
        assert change[long].quantile(0.99) < THRESHOLDS.change
        assert change[~long].quantile(0.99) < THRESHOLDS.short_change


REPEATED = Path(__file__).parents[2] / "reports/published/h200/first-set/repeated_times.parquet"
