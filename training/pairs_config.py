"""What ``python -m training pairs`` is asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from training.errors import ConfigError


@dataclass(frozen=True)
class PairsConfig:
    """What to verify, and how."""

    draws: Annotated[Path, "folder of the draws"]
    out: Annotated[Path, "folder of the pairs"]
    device: Annotated[Literal["auto", "cuda", "emulator"], "what verifies"] = "auto"
    workers: Annotated[int, "processes that share the work, and the GPU where there is one"] = 1
    tracking: Annotated[Literal["on", "off"], "log to MLflow"] = "on"

    @property
    def compilers(self) -> int:
        """Compiler processes of each worker."""
        return max(1, (os.cpu_count() or 1) // self.workers)

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        if self.workers < 1:
            raise ConfigError([f"--workers {self.workers}: at least 1"])
