"""Intervals of shares: known values, and what clusters do to them."""

import numpy as np
import pytest

from training.intervals import clustered, wilson


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [
        (0.5, 100, 0.4038, 0.5962),
        (0.0, 10, 0.0, 0.2775),
        (1.0, 10, 0.7225, 1.0),
        (0.9, 50, 0.786, 0.9565),
    ],
)
def test_wilsons_interval_is_the_textbooks(
    share: float, count: int, low: float, high: float
) -> None:
    assert wilson(share, count) == pytest.approx((low, high), abs=1e-3)


def test_independent_answers_are_worth_what_they_are() -> None:
    values = np.random.default_rng(0).random(4000) < 0.3
    found = clustered(values.astype(float).tolist(), (np.arange(4000) // 10).tolist())
    assert found is not None
    narrow = wilson(found.value, 4000)
    assert found.high - found.low == pytest.approx(narrow[1] - narrow[0], rel=0.15)
    assert (found.count, found.clusters) == (4000, 400)


def test_answers_that_are_alike_in_a_cluster_are_worth_one() -> None:
    whole = [float(cluster % 3 == 0) for cluster in range(60) for _ in range(16)]
    found = clustered(whole, [cluster for cluster in range(60) for _ in range(16)])
    assert found is not None
    assert (found.low, found.high) == pytest.approx(wilson(1 / 3, 60), abs=0.01)


def test_where_nothing_scatters_a_cluster_counts_once() -> None:
    found = clustered([1.0] * 160, [at // 16 for at in range(160)])
    assert found is not None
    assert (found.value, found.low, found.high) == (1.0, *wilson(1.0, 10))


def test_of_no_answers_there_is_no_share() -> None:
    assert clustered([], []) is None
