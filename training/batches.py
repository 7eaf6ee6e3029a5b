"""Which tokens are learnt from at which step: a pure function of (tokens, seed, step).

Nothing is remembered between steps, so a run that was stopped and goes on sees exactly the batches
that it would have seen. Letters: ``B`` rows of a batch, ``T`` tokens of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from training.packing import Tokens

IGNORED = -100  # what cross entropy leaves out
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows to learn from, each B × T.

    Attributes:
        inputs: Token ids.
        targets: The token after each; ``IGNORED`` after an end token, for what follows it is
            another document.
        documents: Number of the document within the row; attention stays inside one.
        positions: Place within the document's piece in this row, from 0.
    """

    inputs: Ints
    targets: Ints
    documents: Ints
    positions: Ints


@dataclass(frozen=True, eq=False)
class Batches:
    """Cuts a long row of tokens into windows, anew in every epoch.

    An epoch goes through all windows once in an order of its own, and its windows begin at an
    offset of its own, so that the same texts are cut at other places.

    Attributes:
        tokens: The packed tokens.
        end: Id that ends a document.
        size: B.
        length: T.
        seed: Of order and offsets.
    """

    tokens: Tokens
    end: int
    size: int
    length: int
    seed: int

    @property
    def windows(self) -> int:
        """Windows in an epoch; none when the tokens are too few for one."""
        return max(len(self.tokens) // self.length - 1, 0)

    @property
    def steps_per_epoch(self) -> float:
        """How many batches go once through the tokens."""
        return self.windows / self.size

    def at(self, step: int) -> Batch:
        """The batch of a step, from 0."""
        numbers = range(step * self.size, (step + 1) * self.size)
        return self._cut([self._start(number) for number in numbers])

    def fixed(self, step: int) -> Batch:
        """A batch of consecutive windows from the front, for validation; wraps around."""
        first = step * self.size
        return self._cut([(first + i) % self.windows * self.length for i in range(self.size)])

    def _start(self, number: int) -> int:
        epoch, place = divmod(number, self.windows)
        offset, order = _epoch(self.seed, epoch, self.windows, self.length)
        return offset + int(order[place]) * self.length

    def _cut(self, starts: list[int]) -> Batch:
        rows = np.stack([self.tokens[s : s + self.length + 1] for s in starts]).astype(np.int64)
        inputs, after = rows[:, :-1], rows[:, 1:]
        ends = inputs == self.end
        begins = np.zeros_like(ends)
        begins[:, 1:] = ends[:, :-1]
        place = np.arange(self.length, dtype=np.int64)
        latest = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
        return Batch(
            inputs=np.ascontiguousarray(inputs),
            targets=np.where(ends, IGNORED, after),
            documents=np.cumsum(begins, axis=1, dtype=np.int64),
            positions=place - latest,
        )


@lru_cache(maxsize=2)
def _epoch(seed: int, epoch: int, windows: int, length: int) -> tuple[int, Ints]:
    draw = np.random.default_rng([seed, epoch])
    return int(draw.integers(length)), draw.permutation(windows)
