"""What a multiplication must at least move, and when a time is too short for it.

Only bytes that certainly cross to memory count, so that no honest program is refused: formats pad,
leave arrays out and compress indices, but every value takes part in the product.
"""

from __future__ import annotations

PEAK_OVER_COPY = 1.2  # no memory is that much faster than its copies; an H200's peak is 1.14 times
COLD_US = 1.0  # and microseconds on top, for events count in steps


def compulsory_bytes(values: int, output: int, l2: int) -> int:
    """Bytes that a multiplication moves to or from memory when it begins with a flushed L2.

    Args:
        values: Bytes of the matrix's values, each once.
        output: Bytes of y or C; as much as the L2 holds may still lie there at the end.
        l2: Bytes of the L2.
    """
    return values + max(0, output - l2)


def shortest_us(nbytes: int, copy_gbps: float) -> float:
    """Microseconds below which moving the bytes is impossible; negative where they are few."""
    return nbytes / (PEAK_OVER_COPY * copy_gbps * 1e3) - COLD_US
