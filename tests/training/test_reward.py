"""The reward: never lower for a better program, always a number, the same for all weights."""

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.evaluation import Evaluation, Status, Timing
from training.errors import ConfigError
from training.outcome import Outcome, outcome_of
from training.reward import RewardWeights, log_speedup, named, names, ranges, reward

LADDER = (
    Status.PARSE_ERROR,
    Status.BIND_ERROR,
    Status.NOT_APPLICABLE,
    Status.COMPILE_ERROR,
    Status.LOAD_ERROR,
    Status.TIMEOUT,
    Status.MEMORY_FAULT,
    Status.WRONG_RESULT,
    Status.OK,
)
WEIGHTS = st.builds(
    RewardWeights, **{name: st.floats(one.low, one.high) for name, one in ranges().items()}
)
TIMES = st.one_of(st.none(), st.floats())
USUAL = st.floats(1e-3, 1e7)


def right(hot: float | None, **more: float | None) -> Outcome:
    return Outcome(Status.OK, hot_us=hot, cold_us=more.pop("cold_us", hot), **more)


def total(
    outcome: Outcome, reference: Outcome | None, weights: RewardWeights, text: int = 0
) -> float:
    found = reward(outcome, reference, text, weights)
    assert found is not None
    return found.total


@given(WEIGHTS, st.sampled_from(LADDER[:-1]), TIMES, TIMES, st.integers(0, 10**6), TIMES)
def test_a_right_program_is_above_every_other(
    weights: RewardWeights,
    failed: Status,
    mine: float | None,
    theirs: float | None,
    length: int,
    ready: float | None,
) -> None:
    slow = right(mine, prepare_us=ready, conversion_ms=ready)
    assert total(slow, right(theirs), weights, length) > total(
        Outcome(failed, "failed"), right(theirs), weights
    )


@given(WEIGHTS)
def test_the_ladder_goes_up_with_every_step(weights: RewardWeights) -> None:
    found = [
        total(Outcome(s, "" if s is Status.OK else "it failed"), None, weights) for s in LADDER
    ]
    assert found == sorted(found)
    assert found[-1] == 1.0
    assert found[-1] - found[-2] >= 0.49


@given(WEIGHTS, USUAL, USUAL, USUAL)
def test_a_faster_program_is_worth_no_less(
    weights: RewardWeights, one: float, other: float, reference: float
) -> None:
    fast, slow = sorted((one, other))
    assert total(right(fast), right(reference), weights) >= total(
        right(slow), right(reference), weights
    )


@given(USUAL, USUAL)
def test_within_the_clips_each_doubling_of_the_speed_is_worth_the_same(
    reference: float, factor: float
) -> None:
    weights = RewardWeights()
    found = total(right(reference / 2), right(reference), weights)
    assert found == pytest.approx(1 + math.log(2))
    assert total(right(reference), right(reference), weights) == 1.0


@given(WEIGHTS, st.sampled_from(LADDER), TIMES, TIMES, TIMES, TIMES, st.integers(0, 10**9))
def test_a_reward_is_always_a_number(
    weights: RewardWeights,
    status: Status,
    hot: float | None,
    cold: float | None,
    theirs: float | None,
    ready: float | None,
    length: int,
) -> None:
    outcome = Outcome(status, "", hot, cold, ready, ready)
    assert math.isfinite(total(outcome, Outcome(Status.OK, "", theirs, theirs), weights, length))


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, 0.0, -1.0])
def test_without_a_time_that_means_something_a_right_program_has_its_rung(
    missing: float | None,
) -> None:
    weights = RewardWeights()
    assert total(right(missing), right(10.0), weights) == 1.0
    assert total(right(10.0), right(missing), weights) == 1.0
    assert total(right(10.0), None, weights) == 1.0


def test_nothing_is_said_of_a_program_where_the_machine_failed() -> None:
    assert (
        reward(Outcome(Status.INFRASTRUCTURE_ERROR, "disk full"), None, 0, RewardWeights()) is None
    )


def test_an_impossible_time_is_worth_no_more_than_a_wrong_answer() -> None:
    weights = RewardWeights()
    cheat, wrong = (Outcome(s, "no") for s in (Status.IMPOSSIBLE_TIME, Status.WRONG_RESULT))
    assert total(cheat, right(1.0), weights) == total(wrong, right(1.0), weights)


def test_length_and_preparation_cost_what_their_weights_say() -> None:
    weights = RewardWeights(length=0.04, preparing=0.02)
    dear = right(10.0, prepare_us=4000.0, conversion_ms=6.0)  # as long as 1,000 multiplications
    found = reward(dear, right(10.0), 4000, weights)
    assert found is not None
    assert (found.length, found.preparing) == pytest.approx((-0.02, -0.01))
    assert found.total == pytest.approx(0.97)


def test_cold_times_count_by_their_share() -> None:
    mine, theirs = right(5.0, cold_us=40.0), right(10.0, cold_us=20.0)
    assert log_speedup(mine, theirs, 0.5) == pytest.approx(0.0)
    assert log_speedup(mine, theirs, 0.0) == pytest.approx(math.log(2))
    assert log_speedup(mine, theirs, 1.0) == pytest.approx(-math.log(2))


def test_every_weight_has_a_range_that_holds_its_default() -> None:
    weights = RewardWeights()
    assert set(ranges()) == {one.name for one in fields(RewardWeights)}
    for name, one in ranges().items():
        assert one.low <= getattr(weights, name) <= one.high
        assert one.text


def test_all_mistakes_in_weights_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        replace(RewardWeights(), right=0.1, speed=math.nan)
    assert len(caught.value.mistakes) == 2


def test_named_weights_are_there_and_others_are_refused() -> None:
    assert {"sparserl", "correctness_only"} <= set(names())
    alone = named("correctness_only")
    assert total(right(1.0), right(9.0), alone) == total(right(9.0), right(1.0), alone) == 1.0
    assert total(right(1.0), right(9.0), named("sparserl")) > 1.0
    with pytest.raises(ConfigError, match="fastest_ever: is not known; sparserl"):
        named("fastest_ever")


def test_an_outcome_keeps_the_medians_of_an_evaluation() -> None:
    timing = Timing(2.0, 1.9, 2.1, (2.0,), 1, True)
    evaluation = Evaluation(Status.OK, hot=timing, prepare_us=7.0, format="csr")
    assert outcome_of(evaluation) == Outcome(Status.OK, "", 2.0, None, 7.0, None, "csr")
