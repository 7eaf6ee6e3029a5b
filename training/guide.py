"""Programs that were found elsewhere, shown to a group that has none as fast.

Sampling finds what the policy already writes now and then. What the autotuner, another run or an
earlier step found for the same problem is known by time and text; it takes the place of the group's
worst program, so that the update also goes towards it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from training.measured import Measurements
from training.rollout import Sample

FASTER = 1.03  # times the group's fastest, from which on a known program is shown


def guided(
    samples: Sequence[Sample],
    group: int,
    known: Measurements,
    example: Callable[[Sample, str], Sample | None],
) -> list[Sample]:
    """The samples, in each group the worst replaced where something faster is known.

    Args:
        samples: Problem by problem.
        group: Programs of each.
        known: What was measured so far.
        example: Makes a sample of a known text, for the problem of another sample; None where the
            text is too long for the policy.
    """
    found = list(samples)
    for start in range(0, len(found), group):
        mine = found[start : start + group]
        best = known.fastest(mine[0].problem)
        times = [one.judged.outcome.hot_us or math.inf for one in mine]
        if best is None or min(times) <= best.hot_us * FASTER:
            continue
        shown = example(mine[0], best.text)
        if shown is not None:
            worst = min(range(group), key=lambda at: _worth(mine[at]))
            found[start + worst] = shown
    return found


def _worth(sample: Sample) -> float:
    return -math.inf if sample.reward is None else sample.reward.total
