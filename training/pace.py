"""When a session has to stop, how fast it is, and how long the rest will take."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class TimeBox:
    """Says when to stop: when the minutes are nearly over, or somebody asked.

    Args:
        minutes: From now; None for no limit.
        clock: Seconds, growing.
    """

    def __init__(self, minutes: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()
        self._limit = None if minutes is None else minutes * 60
        self._reserve = 2.0  # seconds to save in; grows to twice the longest save
        self.asked = False

    def saved(self, seconds: float) -> None:
        """Tells how long saving took, so that the last save fits in."""
        self._reserve = max(self._reserve, 2 * seconds)

    @property
    def left(self) -> float:
        """Seconds until the minutes are over."""
        return math.inf if self._limit is None else self._limit - (self._clock() - self._began)

    @property
    def over(self) -> bool:
        """Whether to save and stop now."""
        late = (
            self._limit is not None and self._clock() - self._began + self._reserve >= self._limit
        )
        return self.asked or late

    @contextmanager
    def signals(self) -> Iterator[None]:
        """While inside, SIGTERM and the first Ctrl-C ask for a stop at the next step."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.asked = True

        before = {n: signal.signal(n, ask) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Pace:
    """Tokens per second between two lines of the curve, and the time that is left.

    Args:
        tokens: Of one step.
        clock: Seconds, growing.
    """

    def __init__(self, tokens: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens, self._clock = tokens, clock
        self._at, self._step = clock(), 0

    def start(self, step: int) -> None:
        """Counts from here: what came before was no training."""
        self._at, self._step = self._clock(), step

    def lap(self, step: int, steps: int) -> tuple[float, float]:
        """Tokens per second since the last call, and seconds for the rest at that pace."""
        now = self._clock()
        seconds, done = max(now - self._at, 1e-9), step - self._step
        self._at, self._step = now, step
        return done * self._tokens / seconds, (steps - step) * seconds / max(done, 1)


def clock_text(seconds: float) -> str:
    """``4:05`` or ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
