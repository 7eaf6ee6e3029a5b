"""Bands around every buffer that no program may write to, and what to say when one did.

A write just past a buffer lands in memory of somebody else, and the GPU sees nothing wrong in it.
So each buffer lies between two bands of known bytes, which are looked at after each run. What lies
between a buffer's end and the next multiple of 16 bytes may be read, and belongs to the band.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

BAND = 512  # bytes on each side: keeps the driver's alignment, and costs little on small buffers
BYTE = 0xFF  # of a band: a NaN, or an index of −1, for whoever reads it by accident


class Band(NamedTuple):
    """A stretch of device memory."""

    start: int
    nbytes: int


@dataclass(frozen=True)
class Layout:
    """Where a buffer lies within its allocation, as offsets in bytes.

    Attributes:
        total: Size of the allocation.
        start: First byte of the buffer.
        before: The band before it.
        after: The band after it, from the buffer's last byte on.
    """

    total: int
    start: int
    before: Band
    after: Band


def layout(nbytes: int) -> Layout:
    """The layout of a buffer of so many bytes, which may be none."""
    room = max(16, -(-nbytes // 16) * 16)
    return Layout(
        BAND + room + BAND, BAND, Band(0, BAND), Band(BAND + nbytes, room - nbytes + BAND)
    )


def table(buffers: Iterable[tuple[int, int]]) -> list[int]:
    """Start and size of every band, one after the other: two bands a buffer.

    Args:
        buffers: Address of each allocation and bytes of its buffer.
    """
    found: list[int] = []
    for address, nbytes in buffers:
        placed = layout(nbytes)
        for band in (placed.before, placed.after):
            found += [address + band.start, band.nbytes]
    return found


def describe(band: int, name: str, nbytes: int) -> str:
    """What a program did that wrote to a band.

    Args:
        band: Its position in the table.
        name: Of its buffer, "" where no program was given it.
        nbytes: Of its buffer.
    """
    side = "past the end of" if band % 2 else "before the start of"
    what = f"buffer {name}" if name else "one of the suite's own arrays"
    return f"the program wrote {side} {what} ({nbytes:,} bytes)"
