"""Train, validation and test, split once: what is measured in the end is never seen before.

Which split a generated matrix belongs to follows from a hash of its family and parameters without
the seed, so it cannot change when more are drawn; ``smoke`` and ``paper`` are test matrices in any
case. ``assert_disjoint`` checks the outcome, down to the structure of the matrices.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache

import numpy as np

from suite.matrices import named
from suite.matrices.base import Matrix, MatrixError, MatrixSpec
from suite.matrices.draws import DRAWS, draw
from suite.matrices.recipes import structure_key

TRAIN_COUNT = 4096
TUNING_COUNT = 75
TUNING_ENTRIES = (1e4, 3e7)  # from launch-bound to several times the cache of a large GPU
VALIDATION_COUNT = 60
HELD_OUT_COUNT = 60
ENTRIES = (3e3, 1e7)  # range of sizes, uniform in the logarithm


class Split(StrEnum):
    """What a matrix may be used for."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@cache
def train() -> tuple[MatrixSpec, ...]:
    """4,096 matrices to learn from, 3 thousand to 10 million entries, families taking turns."""
    return tuple(itertools.islice(sampled(Split.TRAIN), TRAIN_COUNT))


@cache
def tuning() -> tuple[MatrixSpec, ...]:
    """Training matrices on which the choice among baselines is fitted, large ones among them."""
    return tuple(itertools.islice(sampled(Split.TRAIN, TUNING_ENTRIES, seed=1), TUNING_COUNT))


@cache
def validation() -> tuple[MatrixSpec, ...]:
    """Sixty matrices to choose checkpoints and settings by."""
    return tuple(itertools.islice(sampled(Split.VALIDATION), VALIDATION_COUNT))


@cache
def test() -> tuple[MatrixSpec, ...]:
    """``smoke``, ``paper`` and sixty more, drawn as for training but never among those."""
    return (*named.smoke(), *named.paper(), *itertools.islice(sampled(Split.TEST), HELD_OUT_COUNT))


def sampled(
    split: Split, entries: tuple[float, float] = ENTRIES, seed: int = 0
) -> Iterator[MatrixSpec]:
    """Endless specs of one split, families taking turns, none twice; deterministic.

    Args:
        split: Which split they belong to.
        entries: Least and most entries wanted, at least 100.
        seed: Another one gives other matrices of the same split.
    """
    split = Split(split)
    taken = set()
    for turn in itertools.count():
        own_seed = (seed << 32) + turn
        low, high = np.log(entries)
        size = float(np.exp(np.random.default_rng((own_seed, 1)).uniform(low, high)))
        spec = draw(list(DRAWS)[turn % len(DRAWS)], size, own_seed)
        key = structure_key(spec)
        if split_of(spec) is split and key not in taken:
            taken.add(key)
            yield spec


def split_of(spec: MatrixSpec) -> Split:
    """The split that a generated matrix belongs to, by family and parameters without the seed."""
    key = structure_key(spec)
    if key in _reserved():
        return Split.TEST
    part = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest()) % 100
    return Split.VALIDATION if part < 4 else Split.TEST if part < 8 else Split.TRAIN


@cache
def _reserved() -> frozenset[str]:
    return frozenset(structure_key(spec) for spec in (*named.smoke(), *named.paper()))


def structure_digest(matrix: Matrix) -> str:
    """Hex digest of shape and structure: where the nonzeros are is what a model sees."""
    h = hashlib.blake2b(repr(matrix.csr.shape).encode(), digest_size=16)
    for part in (matrix.csr.indptr, matrix.csr.indices):
        h.update(np.ascontiguousarray(part).data)
    return h.hexdigest()


def assert_disjoint(
    splits: Mapping[str, Sequence[MatrixSpec]], built: Mapping[str, Sequence[Matrix]] | None = None
) -> None:
    """Checks that no matrix is in two splits.

    Args:
        splits: Specs by split; compared by name and by family and parameters without the seed.
        built: Matrices by split, as many as one cares to build; compared by structure.

    Raises:
        MatrixError: Something is in two splits; names it and both of them.
    """
    for what, marks in (
        ("name", {split: [(s.name, s.name) for s in specs] for split, specs in splits.items()}),
        (
            "parameters",
            {split: [(structure_key(s), s.name) for s in specs] for split, specs in splits.items()},
        ),
        (
            "structure",
            {
                split: [(structure_digest(m), m.name) for m in ms]
                for split, ms in (built or {}).items()
            },
        ),
    ):
        owner: dict[str, tuple[str, str]] = {}
        for split, pairs in marks.items():
            for mark, name in pairs:
                first, other = owner.setdefault(mark, (split, name))
                if first != split:
                    raise MatrixError(
                        f"{name} in {split} has the {what} of {other} in {first}; draw another"
                    )
