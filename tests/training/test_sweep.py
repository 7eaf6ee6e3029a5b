"""What a study may try, what a trial is worth, what becomes of a winner: all without effects."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training import reward
from training.errors import ConfigError
from training.reward import RewardWeights, named, plain, ranges
from training.rl_config import RlConfig
from training.sweep.apply import applied, apply
from training.sweep.config import SweepConfig, mistakes
from training.sweep.confirm import compared
from training.sweep.objective import Goal, Look, Tried, look_of_curve, look_of_shares, winner
from training.sweep.runner import LOOKS, RUNGS, part_of
from training.sweep.space import Choices, Floats, outside, point, setting, space

GOAL = Goal("constraint", 0.9, 10.0)


def look(speedup: float, correct: float = 1.0) -> Look:
    return Look(speedup, correct, 1.0)


def test_the_space_has_every_weight_with_its_annotated_range() -> None:
    found = space("reward")
    assert [name.removeprefix("reward.") for name in found] == [
        one.name for one in fields(RewardWeights)
    ]
    for name, one in ranges().items():
        assert found[f"reward.{name}"] == Floats(one.low, one.high)


def test_a_search_may_be_of_some_weights_and_options_of_rl() -> None:
    found = space("speed, lr,group,temperature")
    assert list(found) == ["reward.speed", "lr", "group", "temperature"]
    assert isinstance(found["group"], Choices)
    with pytest.raises(ConfigError) as caught:
        space("speed,sped,learning")
    assert len(caught.value.mistakes) == 2
    with pytest.raises(ConfigError, match="names what is searched"):
        space("")


@given(st.data())
def test_every_point_of_the_space_is_a_reward(data: st.DataObject) -> None:
    values = {
        name: data.draw(st.floats(one.low, one.high))
        for name, one in space("reward").items()
        if isinstance(one, Floats)
    }
    found = setting(values, RewardWeights())
    assert point(found.weights, {}, values) == values


def test_what_is_not_searched_stays_as_the_start_has_it() -> None:
    start = replace(RewardWeights(), right=2.0)
    found = setting({"reward.speed": 0.5, "group": 8}, start)
    assert found.weights == replace(start, speed=0.5)
    assert found.options == {"group": 8}


def test_a_start_outside_the_space_is_told() -> None:
    values = {"lr": 1.0, "group": 9, "temperature": 1.0}
    told = outside(values, space("lr,group,temperature"))
    assert [line.split(":")[0] for line in told] == ["lr 1.0", "group 9"]


def test_a_wrong_program_counts_as_the_reference_over_the_penalty() -> None:
    rows = [(0.5, True, True, math.log(4.0)), (0.3, True, False, None), (0.2, False, False, None)]
    found = look_of_shares(rows, penalty=16.0)
    assert found.speedup == pytest.approx(4.0**0.5 * (1 / 16) ** 0.5)
    assert found.correct == 0.5
    assert found.compiled == 0.8


@pytest.mark.parametrize("penalty", [1.0, 10.0, 50.0])
def test_figures_of_a_curve_give_the_same_objective(penalty: float) -> None:
    logs, failed = [math.log(4.0), math.log(0.5)], 3
    tenth = math.exp((sum(logs) + failed * math.log(0.1)) / 5)
    figures = {
        "validation.speedup": tenth,
        "validation.speedup_failures": failed / 5,
        "validation.correct_rate": 0.4,
        "validation.compile_rate": 0.8,
    }
    expected = math.exp((sum(logs) - failed * math.log(penalty)) / 5)
    assert look_of_curve(figures, penalty, 3, 1.0).speedup == pytest.approx(expected)


def test_what_has_no_times_has_no_objective() -> None:
    assert not look_of_curve({"validation.correct_rate": 1.0}, 10.0, 1, 1.0).known
    assert not look_of_shares([(1.0, True, True, None)], 10.0).known


def test_the_winner_is_the_fastest_with_enough_right_programs_in_both_modes() -> None:
    tried = [
        Tried(0, {}, look(1.0, 0.95)),
        Tried(1, {}, look(3.0, 0.89)),
        Tried(2, {}, look(2.0, 0.9)),
        Tried(3, {}, look(2.0, 1.0)),
        Tried(4, {}, look(math.nan)),
    ]
    for goal in (GOAL, replace(GOAL, mode="pareto")):
        best = winner(tried, goal)
        assert best is not None
        assert best.number == 2
    assert winner(tried[1:2], GOAL) is None


def test_modes_differ_in_what_optuna_is_told() -> None:
    one = look(2.0, 0.8)
    assert GOAL.values(one) == (2.0,)
    assert GOAL.violation(one) == pytest.approx(0.1)
    assert replace(GOAL, mode="pareto").values(one) == (2.0, 0.8)


def test_a_budget_is_looked_at_after_a_quarter_a_half_and_all_of_it() -> None:
    found = [part_of(spent, 40.0) for spent in (0.0, 9.9, 10.0, 19.0, 20.0, 39.0, 40.0, 90.0)]
    assert found == [0, 0, 1, 1, 2, 2, LOOKS, LOOKS]
    assert RUNGS[-1] == LOOKS


def test_a_comparison_is_made_seed_by_seed() -> None:
    pairs = [(look(1.0), look(1.2)), (look(2.0), look(2.4)), (look(4.0), look(4.9))]
    found = compared(pairs)
    assert found is not None
    assert found.ratio == pytest.approx(1.2, rel=0.02)
    assert 1 < found.low < found.ratio < found.high
    assert found.better(GOAL)
    assert compared(pairs[:1]) is None


@pytest.mark.parametrize(
    "pairs",
    [
        [(look(1.0), look(1.5)), (look(1.0), look(0.9)), (look(1.0), look(1.1))],
        [(look(1.0), look(1.5, 0.5)), (look(2.0), look(3.0, 0.5))],
    ],
    ids=["no more than seeds explain", "too often wrong"],
)
def test_a_winner_that_is_not_better_is_told(pairs: list[tuple[Look, Look]]) -> None:
    found = compared(pairs)
    assert found is not None
    assert not found.better(GOAL)


PROVENANCE = {"study": "reward", "trial": 7, "device": "a GPU", "speedup": 2.0}


def test_applied_weights_are_what_rl_uses_and_say_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rewards.json"
    path.write_text(reward.NAMED.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(reward, "NAMED", path)
    before = named("sparserl")
    mine = replace(before, speed=0.5, length=0.03, compiled=0.25)
    apply(path, mine, PROVENANCE)
    default = next(one.default for one in fields(RlConfig) if one.name == "reward")
    assert named(str(default)) == mine
    written = json.loads(path.read_text(encoding="utf-8"))["sparserl"]
    assert written["provenance"] == PROVENANCE
    assert "study reward, trial 7" in written["origin"]
    assert named("by_hand") == before
    alone = plain(named("correctness_only"))
    assert alone == plain(mine) | {"speed": 0.0, "length": 0.0, "preparing": 0.0}


def test_a_second_winner_keeps_what_was_chosen_by_hand() -> None:
    known = json.loads(reward.NAMED.read_text(encoding="utf-8"))
    once = applied(known, replace(RewardWeights(), speed=0.5), PROVENANCE)
    twice = applied(once, replace(RewardWeights(), speed=0.7), PROVENANCE)
    assert twice["by_hand"] == once["by_hand"] == known["sparserl"]
    assert twice["sparserl"]["weights"]["speed"] == 0.7


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    assert mistakes(SweepConfig(tmp_path, dry="on")) == []
    wrong = SweepConfig(
        tmp_path, trials=0, budget=0, penalty=0.5, least_correct=2, confirm=1, search="x", start="y"
    )
    assert len(mistakes(wrong)) == 8  # and the adapter
    (told,) = mistakes(SweepConfig(tmp_path, dry="on", search="group", problems=4, batch=64))
    assert "group of 8" in told
