"""What k drawn answers are worth is what trying every draw says."""

import math
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.drawn import best_of, pass_at


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(
    right: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(right)))
    share = fmean(any(draw) for draw in combinations(right, k))
    assert pass_at(k, sum(right), len(right)) == pytest.approx(share)


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=8), st.data())
def test_best_of_k_is_the_mean_of_the_best_over_draws(
    ratios: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(ratios)))
    logs = [math.log(max(draw)) for draw in combinations(ratios, k)]
    assert math.log(best_of(k, ratios)) == pytest.approx(fmean(logs), abs=1e-9)


def test_more_answers_than_were_given_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="3 answers cannot be drawn from 2"):
        pass_at(3, 1, 2)
    with pytest.raises(ValueError, match="0 answers cannot be drawn from 1"):
        best_of(0, [1.0])
