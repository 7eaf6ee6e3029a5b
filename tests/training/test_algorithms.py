"""Advantages: what is better becomes likelier, and nothing poisons a step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from training.algorithms import ALGORITHMS, spread_out

REWARDS = arrays(
    np.float64, (3, 6), elements=st.one_of(st.floats(-1, 4), st.sampled_from([np.nan, 1.0]))
)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(rewards=REWARDS)
def test_advantages_are_numbers_whatever_the_rewards_are(name: str, rewards: np.ndarray) -> None:
    found = ALGORITHMS[name].advantages(rewards, rewards >= 0.9, 0.05)
    assert found.shape == rewards.shape
    assert np.isfinite(found).all()
    assert (found[np.isnan(rewards)] == 0).all()


@pytest.mark.parametrize("name", ["grpo", "rloo"])
@given(rewards=REWARDS)
def test_a_better_program_never_has_a_lower_advantage(name: str, rewards: np.ndarray) -> None:
    found = ALGORITHMS[name].advantages(rewards, rewards >= 0.9, 0.05)
    for mine, of in zip(found, rewards, strict=True):
        known = np.isfinite(of)
        order = np.argsort(of[known], kind="stable")
        assert (np.diff(mine[known][order]) >= -1e-12).all()


@pytest.mark.parametrize("name", ["grpo", "rloo"])
def test_equal_rewards_say_nothing(name: str) -> None:
    found = ALGORITHMS[name].advantages(np.full((2, 4), 1.7), np.ones((2, 4), bool), 0.05)
    assert np.abs(found).max() < 1e-9


def test_noise_does_not_become_a_signal() -> None:
    rewards = np.array([[1.000, 1.001, 1.002, 0.999]])
    right = np.ones((1, 4), bool)
    assert np.abs(ALGORITHMS["grpo"].advantages(rewards, right, 0.1)).max() < 0.02
    assert np.abs(ALGORITHMS["grpo"].advantages(rewards, right, 0.0)).max() > 1


def test_the_leave_one_out_baseline_is_the_mean_of_the_others() -> None:
    rewards = np.array([[1.0, 2.0, 6.0, np.nan]])
    found = ALGORITHMS["rloo"].advantages(rewards, rewards > 0, 0.0)
    assert found[0] == pytest.approx([1 - 4, 2 - 3.5, 6 - 1.5, 0])


def test_only_the_best_right_program_is_an_example() -> None:
    rewards = np.array([[1.0, 2.5, 2.5, np.nan], [-1.0, -0.4, -0.4, -1.0]])
    found = ALGORITHMS["best_of_n"].advantages(rewards, rewards >= 0.9, 0.0)
    assert found.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]


def test_a_rare_strategy_gains_where_it_is_nearly_as_good() -> None:
    rewards = np.array([[2.0, 2.0, 1.9, 1.0, -0.4]])
    names = [["csr", "csr", "ell", "coo", "dia"]]
    found = spread_out(rewards, rewards >= 0.9, names, weight=0.2, margin=0.3)
    assert found[0] == pytest.approx([2.1, 2.1, 2.05, 1.0, -0.4])
    assert spread_out(rewards, rewards >= 0.9, names, 0.0, 0.3).tolist() == rewards.tolist()
