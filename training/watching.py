"""What somebody who watches a training run may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from training.curve import Point


class Watch(Protocol):
    """Watches a run of reinforcement learning."""

    def due(self, figures: Mapping[str, float]) -> bool:
        """Told of each step; whether to look at validation matrices now."""
        ...

    def looked(self, points: Sequence[Point]) -> bool:
        """Told of the curve after a look; whether the session is to end."""
        ...
