"""A verdict cannot hold what its status forbids."""

import pytest

from suite.evaluation import Evaluation, Resources, Status, Timing

HOT = Timing(2.0, 1.0, 3.0, (1.0, 2.0, 3.0), 10, True)


TIMES = [
    {"hot": HOT},
    {"cold": HOT},
    {"emulated_us": 0.0},
    {"fresh_us": 1.0},
    {"prepare_us": 0.0},
]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("status", [s for s in Status if s is not Status.OK])
def test_only_ok_has_a_time(status, time) -> None:
    with pytest.raises(ValueError, match="cannot carry a time"):
        Evaluation(status, "because", **time)


@pytest.mark.parametrize("fields", [{"hot": HOT}, {"cold": HOT}])
def test_a_time_is_emulated_or_measured(fields) -> None:
    with pytest.raises(ValueError, match="never both"):
        Evaluation(Status.OK, emulated_us=1.0, **fields)


@pytest.mark.parametrize("name", ["fresh_us", "prepare_us"])
def test_what_belongs_to_a_hot_time_comes_with_one(name) -> None:
    assert Evaluation(Status.OK, hot=HOT, **{name: 1.0}).ok
    with pytest.raises(ValueError, match="go with a hot time"):
        Evaluation(Status.OK, emulated_us=1.0, **{name: 1.0})


def test_an_error_is_there_exactly_when_it_is_not_ok() -> None:
    for status, error in ((Status.OK, "why"), (Status.TIMEOUT, "")):
        with pytest.raises(ValueError, match="one says ok"):
            Evaluation(status, error)


COMPILED = {"load_error", "timeout", "memory_fault", "wrong_result", "ok", "impossible_time"}


@pytest.mark.parametrize("status", Status)
def test_what_has_passed_the_compiler(status) -> None:
    assert status.compiled == (status in COMPILED)
    error = "" if status is Status.OK else "because"
    if status.compiled:
        assert Evaluation(status, error, resources=Resources(8)).resources
    else:
        with pytest.raises(ValueError, match="compiled resources"):
            Evaluation(status, error, resources=Resources(8))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_is_finite_and_positive(bad) -> None:
    with pytest.raises(ValueError, match="finite and positive"):
        Timing(bad, bad, bad, (bad,), 1, True)
