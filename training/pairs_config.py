"""What ``python -m training pairs`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from training.errors import ConfigError


@dataclass(frozen=True)
class PairsConfig:
    """What to make."""

    out: Annotated[Path, "folder of the pairs"]
    programs: Annotated[int, "right and distinct programs"] = 30_000
    per_matrix: Annotated[int, "programs drawn for each matrix"] = 10
    largest: Annotated[float, "entries of the largest matrix"] = 3e6
    smallest: Annotated[float, "entries of the smallest matrix"] = 3e3
    shard: Annotated[int, "matrices a shard"] = 50
    seed: Annotated[int, "of matrices and programs"] = 0
    device: Annotated[Literal["auto", "cuda", "emulator"], "what verifies"] = "auto"
    tracking: Annotated[Literal["on", "off"], "log to MLflow"] = "on"

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        mistakes = [
            f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1"
            for name in ("programs", "per_matrix", "shard")
            if getattr(self, name) < 1
        ]
        if not 100 <= self.smallest <= self.largest:
            mistakes.append(f"--smallest {self.smallest:g} --largest {self.largest:g}: from 100 up")
        if mistakes:
            raise ConfigError(mistakes)
