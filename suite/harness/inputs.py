"""Input values that host and device make alike, so that nothing large has to travel.

Element i of a stream is a hash of (seed, i): splitmix64 (Steele, Lea and Flood, 2014), mapped to an
odd multiple of 2⁻²³ in (−1, 1). Such a value is exact in float32 and never zero, so no product
vanishes and no unwritten output hides. The CUDA twin is ``uniform`` in ``cuda/kernels.cu``.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniform(seed: int, count: int, dtype: np.dtype | str, start: int = 0) -> np.ndarray:
    """Elements ``start`` to ``start + count`` of the stream ``seed``.

    Args:
        seed: Any integer; taken modulo 2⁶⁴.
        count: Number of elements.
        dtype: float32 or float64; both give the same values.
        start: Index of the first element.

    Returns:
        One-dimensional array.
    """
    return at(seed, np.arange(start, start + count, dtype=np.uint64), dtype)


def at(seed: int, index: np.ndarray, dtype: np.dtype | str) -> np.ndarray:
    """The elements of the stream ``seed`` at ``index`` (any shape, nonnegative)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed % 2**64) + (index.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    odd = (z >> np.uint64(41)).astype(np.int64) * 2 + 1 - (1 << 23)
    return (odd.astype(np.float64) * 2.0**-23).astype(dtype)
