"""Rates and speedups are over what was asked, whatever became of it (cases 8 and 17)."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite import metrics
from suite.author import Kind
from suite.evaluation import Status
from tests.suite.rows import BLANK, failed, right, unanswered


def test_rates_divide_by_everything_that_was_asked():
    rows = [
        right("mine", 1.0),
        failed(Status.COMPILE_ERROR, "m1"),
        failed(Status.WRONG_RESULT, "m2"),
        failed(Status.INFRASTRUCTURE_ERROR, "m3"),
    ]
    assert metrics.correct_rate(rows) == 1 / 4
    assert metrics.compile_rate(rows) == 2 / 4


def test_not_applicable_is_left_out_for_a_baseline_and_counts_against_who_could_choose():
    baseline = [right("mine", 1.0), failed(Status.NOT_APPLICABLE, "m1")]
    assert metrics.correct_rate(baseline) == 1
    for kind in (Kind.CHOOSER, Kind.MODEL):
        chosen = [dataclasses.replace(row, kind=kind) for row in baseline]
        assert metrics.correct_rate(chosen) == 1 / 2


def test_a_failure_counts_as_a_tenth_of_the_reference():
    rows = [right("mine", 10.0), failed(Status.WRONG_RESULT, "m1")]
    reference = metrics.Reference("cusparse", {"spmv/m0/f32": 40.0, "spmv/m1/f32": 7.0})
    assert metrics.ratios(rows, reference, "hot") == [4.0, 0.1]
    assert metrics.speedup(rows, reference, "hot") == pytest.approx(math.sqrt(0.4))
    assert metrics.speedup(rows, reference, "hot", if_correct=True) == pytest.approx(4.0)


def test_hot_is_compared_with_hot_and_cold_with_cold():
    everyone = [right("mine", 10.0), dataclasses.replace(right("cusparse", 20.0), cold_us=100.0)]
    found = metrics.collect(everyone[:1], everyone)
    assert found["speedup_vs_cusparse.hot"] == pytest.approx(2.0)
    assert found["speedup_vs_cusparse.cold"] == pytest.approx(5.0)


def test_a_problem_without_a_reference_is_left_out_for_everyone():
    rows = [right("mine", 10.0), failed(Status.TIMEOUT, "m1")]
    reference = metrics.Reference("cusparse", {"spmv/m0/f32": 20.0})
    assert metrics.ratios(rows, reference, "hot") == [2.0]


def test_emulated_times_never_become_a_speedup_or_a_bandwidth():
    emulated = [
        dataclasses.replace(BLANK, author=author, emulated_us=us, bytes_moved=10)
        for author, us in (("mine", 1.0), ("cusparse", 100.0))
    ]
    found = metrics.collect(emulated[:1], emulated)
    assert found["emulated_us_median"] == 1.0
    assert not [name for name in found if name.split("_")[0] in ("speedup", "bandwidth", "fast")]
    assert "fastest.hot" not in found


def test_nothing_asked_has_no_rates_and_no_division_error():
    assert metrics.compile_rate([]) is None
    assert metrics.correct_rate([failed(Status.NOT_APPLICABLE)]) is None
    assert metrics.geometric_mean([]) is None
    assert metrics.speedup([], metrics.Reference("cusparse", {}), "hot") is None
    assert metrics.fast_1([], metrics.Reference("cusparse", {}), "hot") is None
    assert metrics.fastest([], "hot") == {}


def test_an_author_that_is_never_right_ranks_below_every_one_that_is():
    everyone = [right("cusparse", 20.0), failed(Status.TIMEOUT)]
    assert metrics.collect(everyone[1:], everyone)["speedup_vs_cusparse.hot"] == pytest.approx(0.1)


def test_library_routines_have_no_compile_rate():
    assert metrics.compile_rate([right("cusparse", 1.0, kind=Kind.LIBRARY)]) is None


def test_bandwidth_is_traffic_over_time_in_gigabytes_a_second():
    assert metrics.bandwidth_gbps(right("mine", 2.0), "hot") == pytest.approx(2.0)  # 4 kB in 2 us
    assert metrics.bandwidth_gbps(right("mine", 2.0), "cold") == pytest.approx(1.0)


def test_a_share_of_the_bandwidth_is_of_what_the_same_device_copies():
    row = dataclasses.replace(right("mine", 2.0), copy_gbps=4.0)
    assert metrics.bandwidth_fraction(row, "hot") == pytest.approx(0.5)  # 2 of 4 GB/s
    assert metrics.bandwidth_fraction(row, "cold") == pytest.approx(0.25)
    assert metrics.bandwidth_fraction(right("mine", 2.0), "hot") is None
    rows = [row, dataclasses.replace(right("mine", 1.0, "m1"), copy_gbps=2.0)]
    assert metrics.collect(rows, rows)["bandwidth_fraction.hot"] == pytest.approx(1.0)


def test_disturbed_measurements_are_counted_where_there_is_a_gpu():
    rows = [right("mine", 2.0), dataclasses.replace(right("mine", 1.0, "m1"), disturbed="hot")]
    assert metrics.collect(rows, rows)["disturbed"] == 1
    emulated = dataclasses.replace(right("mine", 2.0), hot_us=None, emulated_us=3.0)
    assert "disturbed" not in metrics.collect([emulated], [emulated])


def test_the_fastest_is_counted_per_problem_and_ties_count_for_both():
    rows = [right("a", 1.0), right("b", 2.0), right("a", 3.0, "m1"), right("b", 3.0, "m1")]
    assert metrics.fastest(rows, "hot") == {"a": 2, "b": 1}


def test_the_best_of_the_baselines_fails_only_where_all_fail():
    rows = [
        right("a", 5.0),
        right("b", 4.0),
        failed(Status.NOT_APPLICABLE, "m1"),
        failed(Status.WRONG_RESULT, "m1"),
        failed(Status.NOT_APPLICABLE, "m2"),
    ]
    best = metrics.best_of(rows, "best")
    assert [row.hot_us for row in best] == [4.0, None, None]
    assert [row.status for row in best] == [
        Status.OK,
        Status.WRONG_RESULT,
        Status.NOT_APPLICABLE,
    ]
    assert {row.author for row in best} == {"best"}


def test_an_author_who_was_never_reached_has_no_rate_and_no_speedup():
    rows = [unanswered("m0"), unanswered("m1")]
    found = metrics.collect(rows, [*rows, right("cusparse", 20.0)])
    assert (found["asked"], found["unanswered"], found["infrastructure_errors"]) == (2, 2, 0)
    measured = ("compile_rate", "correct_rate", "speedup", "fast", "bandwidth")
    assert not [name for name in found if name.startswith(measured)]


def test_rates_of_an_interrupted_campaign_are_over_what_was_answered():
    rows = [right("mine", 10.0), unanswered("m1")]
    everyone = [*rows, right("cusparse", 20.0), right("cusparse", 20.0, "m1")]
    found = metrics.collect(rows, everyone)
    assert (found["compile_rate"], found["correct_rate"], found["unanswered"]) == (1, 1, 1)
    assert found["speedup_vs_cusparse.hot"] == pytest.approx(2.0)
    assert found["fast_1_vs_cusparse.hot"] == 1


def test_an_infrastructure_error_that_was_answered_stays_in_every_rate():
    rows = [right("mine", 10.0), failed(Status.INFRASTRUCTURE_ERROR, "m1")]
    found = metrics.collect(rows, rows)
    assert (found["correct_rate"], found["infrastructure_errors"]) == (0.5, 1)


def test_the_best_of_the_baselines_is_unknown_where_one_might_still_have_been_right():
    best = metrics.best_of([failed(Status.WRONG_RESULT), unanswered("m0")], "best")
    assert [row.unanswered for row in best] == [True]
    assert metrics.best_of([unanswered("m0"), right("a", 1.0)], "best")[0].ok


def test_a_failure_of_the_reference_counts_for_itself_alone():
    reference = [right("cusparse", 20.0), failed(Status.WRONG_RESULT, "m1", author="cusparse")]
    mine = [right("mine", 10.0), right("mine", 10.0, "m1")]
    everyone = [*reference, *mine]
    own = metrics.collect(reference, everyone)
    assert own["speedup_vs_cusparse.hot"] == pytest.approx(math.sqrt(0.1))
    assert own["speedup_vs_cusparse_if_correct.hot"] == pytest.approx(1.0)
    assert metrics.collect(mine, everyone)["speedup_vs_cusparse.hot"] == pytest.approx(2.0)


def test_a_speedup_says_over_how_many_problems_it_is():
    mine = [right("mine", 10.0), right("mine", 10.0, "m1"), failed(Status.NOT_APPLICABLE, "m2")]
    found = metrics.collect(mine, [*mine, right("cusparse", 20.0)])
    assert (found["problems"], found["speedup_vs_cusparse_problems"]) == (2, 1)
    assert "speedup_vs_cusparse_best_problems" not in found


def test_a_binary_from_the_cache_is_no_compilation_time():
    rows = [dataclasses.replace(BLANK, compile_ms=ms) for ms in (0.0, 0.0, 30.0, None)]
    assert metrics.collect(rows, rows)["compile_ms_median"] == 30.0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Status)),
            st.floats(1e-6, 1e12),
            st.sampled_from(list(Kind)),
            st.sampled_from([None, 0.5, math.inf, math.nan]),
        )
    )
)
def test_no_metric_is_ever_infinite_or_nan(cases):
    rows = [
        dataclasses.replace(
            right("mine", us, f"m{at}", kind)
            if status is Status.OK
            else failed(status, f"m{at}", kind),
            error_ratio=ratio,
        )
        for at, (status, us, kind, ratio) in enumerate(cases)
    ]
    everyone = [*rows, *(right("cusparse", 1e-6, row.matrix) for row in rows)]
    assert all(math.isfinite(value) for value in metrics.collect(rows, everyone).values())


def test_a_failure_is_not_fast_and_as_fast_as_the_reference_is():
    rows = [right("mine", 20.0), right("mine", 40.0, "m1"), failed(Status.TIMEOUT, "m2")]
    times = dict.fromkeys(("spmv/m0/f32", "spmv/m1/f32", "spmv/m2/f32"), 20.0)
    reference = metrics.Reference("cusparse", times)
    assert metrics.fast_1(rows, reference, "hot") == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("kind", "rate", "ratio"),
    [
        (Kind.BASELINE, 1.0, [2.0]),
        (Kind.FILE, 1.0, [2.0]),
        (Kind.LIBRARY, 1.0, [2.0]),
        (Kind.MODEL, 0.5, [2.0, 0.1]),
    ],
)
def test_not_applicable_is_a_failure_of_a_model_alone(kind, rate, ratio):
    rows = [right("mine", 10.0, kind=kind), failed(Status.NOT_APPLICABLE, "m1", kind)]
    times = {"spmv/m0/f32": 20.0, "spmv/m1/f32": 20.0}
    reference = metrics.Reference("cusparse", times)
    assert metrics.correct_rate(rows) == rate
    assert metrics.ratios(rows, reference, "hot") == ratio


def test_the_best_of_the_baselines_has_no_bandwidth_of_one_program_at_the_time_of_another():
    slim = dataclasses.replace(right("slim", 3.0), cold_us=1.0, bytes_moved=1, disturbed="cold")
    best = metrics.best_of([right("a", 2.0), slim], metrics.BEST)
    assert (best[0].cold_us, best[0].bytes_moved, best[0].disturbed) == (1.0, 4000, "cold")
    found = metrics.collect(best, best)
    assert found["bandwidth_gbps.hot"] == pytest.approx(2.0)
    assert "bandwidth_gbps.cold" not in found


def test_the_best_of_the_baselines_has_the_best_hot_and_the_best_cold_time():
    slow_cold = dataclasses.replace(right("a", 4.0), cold_us=100.0)
    (best,) = metrics.best_of([right("b", 5.0), slow_cold], "best")
    assert (best.hot_us, best.cold_us, best.detail) == (4.0, 10.0, "a; cold: b")
    (best,) = metrics.best_of([right("b", 5.0), right("a", 4.0)], "best")
    assert (best.hot_us, best.cold_us, best.detail) == (4.0, 8.0, "a")


def test_bandwidth_over_problems_is_a_geometric_mean():
    rows = [right("mine", 1.0), right("mine", 4.0, "m1")]  # 4 and 1 GB/s
    assert metrics.collect(rows, rows)["bandwidth_gbps.hot"] == pytest.approx(2.0)


def test_the_reference_is_the_best_of_its_times():
    rows = [right("cusparse", 3.0), right("cusparse", 2.0)]
    found = metrics.reference_times(rows, "cusparse", "hot")
    assert found.times == {"spmv/m0/f32": 2.0}


def several(*rows):
    """A model's answers to one problem."""
    return [dataclasses.replace(row, kind=Kind.MODEL, sample=at) for at, row in enumerate(rows)]


def test_of_several_answers_the_best_and_the_chance_of_a_right_one_are_told():
    mine = several(right("m", 1.0), right("m", 4.0), failed(Status.WRONG_RESULT, author="m"))
    mine += several(*(right("m", 2.0, "m1") for _ in range(4)))
    rows = [*mine, right("cusparse", 4.0), right("cusparse", 2.0, "m1")]
    found = metrics.collect(mine, rows)
    draws = [4.0, 4.0, 1.0]  # best of two of 4, 1 and a tenth
    expected = math.sqrt(math.prod(draws) ** (1 / 3) * 1.0)
    assert found["best_of_2_vs_cusparse.hot"] == pytest.approx(expected)
    assert found["pass_at_2"] == found["pass_at_4"] == 1.0
    assert found["best_of_4_vs_cusparse.hot"] == pytest.approx(1.0)  # of the second problem alone
    assert not {"pass_at_1", "pass_at_8"} & found.keys()


def test_who_gives_one_answer_has_no_best_of_several():
    mine = [right("mine", 1.0), right("mine", 1.0, "m1")]
    found = metrics.collect(mine, [*mine, right("cusparse", 2.0)])
    assert "speedup_vs_cusparse.hot" in found
    assert not [name for name in found if "best_of" in name or "pass_at" in name]


def test_there_is_an_oracle_where_several_baselines_were_timed():
    timed = [right("a", 2.0), right("b", 1.0), right("m", 0.5, kind=Kind.MODEL)]
    assert [row.hot_us for row in metrics.oracle(timed)] == [1.0]
    emulated = [dataclasses.replace(r, hot_us=None, cold_us=None) for r in timed]
    assert metrics.oracle(emulated) == metrics.oracle(timed[1:]) == []


def test_the_best_of_several_answers_has_the_best_hot_and_the_best_cold_time():
    slow_cold = dataclasses.replace(right("m", 4.0), cold_us=100.0)
    (best,) = metrics.best_of(several(right("m", 5.0), slow_cold), "m")
    assert (best.hot_us, best.cold_us) == (4.0, 10.0)
