"""The plan of steps: everything once an epoch, little padding, the same again."""

import numpy as np
import pytest

from training.plan import MULTIPLE, plan, width
from training.sft import candidate_steps

LENGTHS = np.random.default_rng(0).integers(400, 1700, 3000)


def test_an_epoch_has_every_example_once() -> None:
    for epochs in (1, 3):
        counts = np.bincount(np.concatenate(plan(LENGTHS, 16_384, epochs, 0)), minlength=3000)
        assert (counts == epochs).all()


def test_no_batch_is_larger_than_allowed_unless_a_single_example_is() -> None:
    for chosen in plan(LENGTHS, 16_384, 1, 0):
        assert len(chosen) * width(int(LENGTHS[chosen].max())) <= 16_384
    assert all(len(chosen) == 1 for chosen in plan(LENGTHS, 10, 1, 0))


def test_little_is_padding() -> None:
    columns = [
        len(chosen) * width(int(LENGTHS[chosen].max())) for chosen in plan(LENGTHS, 65_536, 1, 0)
    ]
    assert LENGTHS.sum() / sum(columns) > 0.93


def test_batches_follow_from_the_seed_and_differ_between_epochs() -> None:
    def flat(*arguments: int) -> list[list[int]]:
        return [chosen.tolist() for chosen in plan(LENGTHS, *arguments)]

    assert flat(16_384, 2, 0) == flat(16_384, 2, 0)
    assert flat(16_384, 1, 0) == flat(16_384, 2, 0)[: len(flat(16_384, 1, 0))]
    assert flat(16_384, 1, 0) != flat(16_384, 1, 1)
    first, second = flat(16_384, 2, 0)[:100], flat(16_384, 2, 0)[-100:]
    assert {tuple(one) for one in first}.isdisjoint(tuple(one) for one in second)


def test_batches_of_all_lengths_come_in_any_order() -> None:
    longest = [int(LENGTHS[chosen].max()) for chosen in plan(LENGTHS, 16_384, 1, 0)]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.3


def test_widths_are_few() -> None:
    assert [width(n) for n in (1, MULTIPLE, MULTIPLE + 1)] == [MULTIPLE, MULTIPLE, 2 * MULTIPLE]


@pytest.mark.parametrize(
    ("steps", "count", "expected"),
    [(100, 4, [63, 75, 88, 100]), (100, 1, [100]), (3, 4, [2, 3]), (1, 4, [1])],
)
def test_candidates_are_spread_over_the_second_half(
    steps: int, count: int, expected: list[int]
) -> None:
    assert candidate_steps(steps, count) == expected
