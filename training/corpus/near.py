"""Finds texts that are nearly the same: shingles of tokens, MinHash and bands.

The sketch is one-permutation MinHash: the hashes of a text's shingles fall into ``BINS`` ranges and
the least of each range is kept. Two texts agree in a range about as often as their sets of shingles
overlap (Jaccard). Texts are compared only where one of ``BANDS`` bands of their sketches is equal,
which finds pairs above the limit almost surely. Everything is a pure function of the texts and
their order; no hash here depends on the process.
"""

from __future__ import annotations

import re
from collections import defaultdict
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

SHINGLE = 5  # tokens
BINS, BANDS = 128, 32  # 32 bands of 4: a pair at 0.7 is missed once in five thousand
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


def shingles(text: str, size: int = SHINGLE) -> Hashes:
    """Sorted, distinct hashes of all runs of ``size`` tokens; blanks play no part."""
    tokens = _TOKEN.findall(text)
    codes = np.fromiter((crc32(t.encode()) for t in tokens), dtype=np.uint64, count=len(tokens))
    count = max(len(codes) - size + 1, min(len(codes), 1))
    mixed = np.zeros(count, dtype=np.uint64)
    for offset in range(min(size, len(codes))):
        mixed = (mixed + codes[offset : offset + count]) * _STEP
        mixed ^= mixed >> np.uint64(29)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    return np.unique(mixed ^ (mixed >> np.uint64(31)))


def sketch(hashes: Hashes) -> Hashes:
    """The MinHash of a sorted set of hashes, ``BINS`` long; an empty set gives zeros.

    An empty range borrows from the next full one, mixed with how far that lies.
    """
    if not len(hashes):
        return np.zeros(BINS, dtype=np.uint64)
    width = 64 - BINS.bit_length() + 1
    edges = np.arange(BINS, dtype=np.uint64) << np.uint64(width)
    first = np.searchsorted(hashes, edges)
    owner = np.full(BINS, -1)
    inside = first < len(hashes)
    owner[inside] = (hashes[first[inside]] >> np.uint64(width)).astype(np.int64)
    # The first hash at or after an edge is the minimum of the range that it lies in; past the last
    # one the search goes on from the front.
    values = hashes[np.where(inside, first, 0)]
    owner = np.where(inside, owner, int(hashes[0] >> np.uint64(width)) + BINS)
    distance = (owner - np.arange(BINS)).astype(np.uint64)
    return values + distance * _STEP


class NearDuplicates:
    """Remembers texts; says of each new one whether it is nearly one of them.

    Args:
        limit: Estimated Jaccard similarity from which two texts count as the same.
    """

    def __init__(self, limit: float = 0.7) -> None:
        self._limit = limit
        self._sketches: list[Hashes] = []
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)

    def add(self, text: str) -> int | None:
        """Number of an earlier text that this one nearly is; None if there is none: it is kept."""
        mine = sketch(shingles(text))
        keys = [(i, band.tobytes()) for i, band in enumerate(mine.reshape(BANDS, -1))]
        seen: set[int] = set()
        for key in keys:
            for number in self._bands.get(key, ()):
                if number in seen:
                    continue
                seen.add(number)
                if float(np.mean(self._sketches[number] == mine)) >= self._limit:
                    return number
        for key in keys:
            self._bands[key].append(len(self._sketches))
        self._sketches.append(mine)
        return None


class SeenLines:
    """Says how much of a text is in lines that no earlier text had; vendored copies have little."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def novelty(self, text: str) -> float:
        """Share of the text's characters that are in new lines; short lines count for nothing."""
        lines = [s for line in text.split("\n") if len(s := "".join(line.split())) > 5]
        whole = sum(map(len, lines))
        return sum(len(s) for s in lines if s not in self._seen) / whole if whole else 0.0

    def add(self, text: str) -> None:
        """Remembers the lines of a text that is kept."""
        self._seen.update(s for line in text.split("\n") if len(s := "".join(line.split())) > 5)
