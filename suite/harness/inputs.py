"""Input values that host and device make alike, so that nothing large has to travel.

Element i of a stream is a hash of (seed, i), splitmix64 (Steele, Lea and Flood, 2014), turned into
an odd integer of so many bits times a power of two. Such a value is exact in float32 and never
zero, so no product vanishes and no unwritten output hides. The CUDA twin is ``stream`` in
``cuda/kernels.cu``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MOST_BITS = 23  # an odd integer of that many bits is exact in float32


@dataclass(frozen=True)
class Stream:
    """An endless sequence of odd integers in (−2^bits, 2^bits), times 2^exponent.

    Attributes:
        seed: Any integer; taken modulo 2⁶⁴.
        bits: From 1 (only −1 and 1) to ``MOST_BITS``.
        exponent: Power of two that every element is multiplied by; the default gives (−1, 1).
    """

    seed: int
    bits: int = MOST_BITS
    exponent: int = -MOST_BITS

    def take(self, count: int, dtype: np.dtype | str, start: int = 0) -> np.ndarray:
        """Elements ``start`` to ``start + count``; float32 and float64 have the same values."""
        return self.at(np.arange(start, start + count, dtype=np.uint64), dtype)

    def at(self, index: np.ndarray, dtype: np.dtype | str) -> np.ndarray:
        """The elements at ``index`` (any shape, nonnegative)."""
        with np.errstate(over="ignore"):
            z = np.uint64(self.seed % 2**64) + (index.astype(np.uint64) + np.uint64(1)) * _GOLDEN
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
        odd = (z >> np.uint64(64 - self.bits)).astype(np.int64) * 2 + 1 - (1 << self.bits)
        return (odd.astype(np.float64) * 2.0**self.exponent).astype(dtype)


def exact_bits(longest: int, dtype: np.dtype | str) -> int:
    """Bits that dense inputs may have for every sum to be exact, when all values are −1 or 1.

    A row of z products below 2^bits has partial sums below z · 2^bits in any order; they are
    integers, so up to 2²⁴ (float32) or 2⁵³ (float64) none is rounded.

    Args:
        longest: Entries of the longest row.
        dtype: Working precision.

    Returns:
        From 1 to ``MOST_BITS``; 0 where even one bit is too many.
    """
    digits = np.finfo(dtype).nmant + 1
    return max(0, min(MOST_BITS, digits - max(longest - 1, 0).bit_length()))
