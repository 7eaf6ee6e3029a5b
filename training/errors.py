"""What goes wrong in a way that a person can put right: one line each, no traceback."""

from __future__ import annotations

from collections.abc import Sequence


class TrainingError(RuntimeError):
    """Something could not be done; the message says what, where, and what to do."""


class ConfigError(TrainingError):
    """Mistakes in a configuration, all of them, found before anything expensive starts."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)
