"""What k answers are worth that are drawn, without replacement, from those given to a problem.

The means over all draws are exact, so that k may be anything up to the number of answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

KS = (1, 2, 4, 8, 16, 32, 64)  # that metrics and tables have, as far as there are answers


def pass_at(k: int, right: int, answers: int) -> float:
    """Chance that one of k answers is right, when ``right`` of ``answers`` were (Chen et al. 2021).

    Raises:
        ValueError: Fewer than k answers.
    """
    _check(k, answers)
    return 1.0 - math.comb(answers - right, k) / math.comb(answers, k)


def best_of(k: int, ratios: Sequence[float]) -> float:
    """The largest of k speedups: its geometric mean over all draws.

    Args:
        k: Answers drawn.
        ratios: Positive, one for each answer.

    Raises:
        ValueError: Fewer than k.
    """
    _check(k, len(ratios))
    draws = math.comb(len(ratios), k)
    # The one of rank r is the largest of as many draws as there are choices of k − 1 below it.
    ranked = enumerate(sorted(ratios))
    return math.exp(math.fsum(math.comb(r, k - 1) * math.log(v) for r, v in ranked) / draws)


def _check(k: int, answers: int) -> None:
    if not 1 <= k <= answers:
        raise ValueError(f"{k} answers cannot be drawn from {answers}")
