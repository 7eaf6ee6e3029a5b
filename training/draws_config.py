"""What ``python -m training draws`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from training.errors import ConfigError


@dataclass(frozen=True)
class DrawsConfig:
    """What to draw."""

    out: Annotated[Path, "folder of the draws"]
    matrices: Annotated[int, "training matrices"] = 3_200
    per_matrix: Annotated[int, "programs for each"] = 10
    largest: Annotated[float, "entries of the largest matrix"] = 3e6
    smallest: Annotated[float, "entries of the smallest matrix"] = 3e3
    shard: Annotated[int, "matrices a shard"] = 20
    seed: Annotated[int, "of matrices and programs"] = 0

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        mistakes = [
            f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1"
            for name in ("matrices", "per_matrix", "shard")
            if getattr(self, name) < 1
        ]
        if not 100 <= self.smallest <= self.largest:
            mistakes.append(f"--smallest {self.smallest:g} --largest {self.largest:g}: from 100 up")
        if mistakes:
            raise ConfigError(mistakes)
