"""The learning rate of each step."""

from __future__ import annotations

import math


def cosine(step: int, steps: int, warmup: int, highest: float, end: float) -> float:
    """Rises linearly over ``warmup`` steps, then falls along half a cosine.

    Args:
        step: From 0.
        steps: All of them.
        warmup: Of them, rising; step 0 has a first small rate, not none.
        highest: The rate that is reached.
        end: Share of it that the last step has.
    """
    if step < warmup:
        return highest * (step + 1) / warmup
    progress = (step - warmup) / max(steps - 1 - warmup, 1)
    return highest * (end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0))))
