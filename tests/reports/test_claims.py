"""A sentence never says more than its interval."""

import pytest

from reports.claims import ENOUGH, compare
from reports.intervals import Figure


def figure(value: float, low: float, high: float) -> Figure:
    return Figure(value, low, high, "x", 20)


@pytest.mark.parametrize(
    ("found", "n", "said"),
    [
        (figure(1.2, 1.1, 1.3), 20, "a is faster than b, by a factor of 1.20 (1.10 to 1.30) over"),
        (figure(0.8, 0.7, 0.9), 20, "a is slower than b, with 0.80 (0.70 to 0.90) of its speed"),
        (figure(1.2, 1.0, 1.4), 20, "a cannot be told from b in the mean"),
        (figure(1.2, 0.9, 1.4), 20, "a cannot be told from b in the mean"),
        (figure(9.0, 8.0, 9.9), ENOUGH - 1, "too few for a claim"),
        (figure(9.0, 8.0, 9.9), ENOUGH, "a is faster than b"),
    ],
)
def test_a_claim_is_as_strong_as_its_interval(found: Figure, n: int, said: str) -> None:
    sentence = compare("a", "b", found, n)
    assert said in sentence
    assert f"over {n} matrices" in sentence
