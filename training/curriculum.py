"""Which problems are asked at which step: a pure function of (curriculum, step).

Training matrices come in their own endless order and stay for a while: at each step some that are
new join a window, as many leave it, and the problems of the step are drawn from it. So a run that
was stopped and goes on asks the same, thousands of matrices are met, and few are built at a time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from suite.matrices.base import Matrix, MatrixSpec
from suite.matrices.splits import Split, sampled
from suite.problem import Op, Problem
from training.errors import ConfigError

TURNS = 20  # matrices in which every band has its share
# Half SpMV, and of SpMM the two widths that reports have.
LABELS = ((Op.SPMV, 1), (Op.SPMM, 32), (Op.SPMV, 1), (Op.SPMM, 128))
DENSE_BYTES = 2e9  # of B and C together; above it a matrix is asked for SpMV
OWN_SEED = 1000  # matrices of other stages have lower seeds


@dataclass(frozen=True)
class Band:
    """Matrices of some sizes.

    Attributes:
        share: Of all matrices, in per cent.
        low: Entries of the smallest.
        high: Entries of the largest.
    """

    share: int
    low: float
    high: float


# On a GPU most are larger than the cache of a large one, 60 MB; the rest are as tests have them.
GPU = (Band(65, 5e6, 3e7), Band(35, 1e4, 5e6))
SMALL = (Band(100, 3e2, 3e3),)  # for the emulator


@dataclass(frozen=True)
class Curriculum:
    """What is asked.

    Attributes:
        bands: Sizes of the matrices.
        problems: Asked at a step.
        window: Matrices that are there at a time.
        fresh: Matrices that join at a step.
        seed: Of matrices and draws.
        split: Which matrices.
    """

    bands: tuple[Band, ...]
    problems: int
    window: int
    fresh: int
    seed: int = 0
    split: Split = Split.TRAIN

    def there(self, step: int) -> range:
        """Numbers of the matrices of a step's window."""
        return range(step * self.fresh, step * self.fresh + self.window)

    def at(self, step: int) -> tuple[int, ...]:
        """Numbers of the matrices that are asked at a step, ascending, none twice."""
        draw = random.Random(f"curriculum {self.seed} {step}")
        return tuple(sorted(draw.sample(self.there(step), self.problems)))

    def spec(self, number: int) -> MatrixSpec:
        """The matrix of a number."""
        while len(self._specs) <= number:
            self._specs.append(next(self._stream))
        return self._specs[number]

    def problem(self, number: int, matrix: Matrix) -> Problem:
        """What is asked of a matrix."""
        op, columns = random.Random(f"label {self.seed} {number}").choice(LABELS)
        if sum(matrix.csr.shape) * columns * 4 > DENSE_BYTES:
            op, columns = Op.SPMV, 1
        return Problem(op, matrix, columns)

    @cached_property
    def _specs(self) -> list[MatrixSpec]:
        return []

    @cached_property
    def _stream(self) -> Iterator[MatrixSpec]:
        streams = [
            sampled(self.split, (band.low, band.high), OWN_SEED + 10 * self.seed + at)
            for at, band in enumerate(self.bands)
        ]
        return (next(streams[at]) for at in itertools.cycle(turns(self.bands)))


def turns(bands: Sequence[Band]) -> list[int]:
    """Which band each of ``TURNS`` matrices is of, evenly mixed."""
    whole = sum(band.share for band in bands)
    wanted = [TURNS * band.share / whole for band in bands]
    given = [0.0] * len(bands)
    found = []
    for turn in range(1, TURNS + 1):
        behind = [want * turn / TURNS - have for want, have in zip(wanted, given, strict=True)]
        at = behind.index(max(behind))
        given[at] += 1
        found.append(at)
    return found


def bands_of(text: str) -> tuple[Band, ...]:
    """Bands as a person writes them: ``65:5e6:3e7,35:1e4:5e6``.

    Raises:
        ConfigError: They cannot be read, or ask for what no generator makes.
    """
    found = []
    for part in text.split(","):
        try:
            share, low, high = part.split(":")
            band = Band(int(share), float(low), float(high))
        except ValueError as error:
            raise ConfigError(
                [f"matrices {part!r}: write SHARE:LEAST:MOST entries, 65:5e6:3e7"]
            ) from error
        if not (band.share > 0 and 100 <= band.low <= band.high):
            raise ConfigError([f"matrices {part!r}: a share above 0, and from 100 entries up"])
        found.append(band)
    return tuple(found)
