"""Intervals and p values are those of the textbooks."""

import pytest

from reports.intervals import geometric, holm, share, sign_flip_p


def test_answers_to_one_problem_are_one_piece_of_evidence() -> None:
    values = [0.0, 1.0] * 10
    alone = share(values, range(20))
    repeated = share([value for value in values for _ in range(8)], [i // 8 for i in range(160)])
    assert repeated.value == alone.value == 0.5
    assert (repeated.low, repeated.high) == (alone.low, alone.high)
    assert repeated.n == 160


def test_all_of_a_few_does_not_mean_always() -> None:
    found = share([1.0] * 6, range(6))
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(0.025 ** (1 / 6))  # Clopper and Pearson
    none = share([0.0] * 12, [i // 2 for i in range(12)])
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 6))  # six problems, not twelve


def test_a_geometric_mean_lies_in_its_interval() -> None:
    found = geometric([1.0, 2.0, 4.0], "abc")
    assert found.value == pytest.approx(2)
    assert 1 <= found.low < 2 < found.high <= 4


def test_flipping_signs_is_exact_for_few_differences() -> None:
    assert sign_flip_p([1.0] * 6) == pytest.approx(2 / 2**6)
    assert sign_flip_p([1.0, -1.0]) == 1
    assert sign_flip_p([]) == 1
    assert sign_flip_p([1.0] * 40) < 0.001


def test_several_comparisons_are_adjusted_in_their_order() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
