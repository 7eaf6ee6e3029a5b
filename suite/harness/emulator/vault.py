"""What every program on a problem needs again, computed once: inputs, and what a right answer is.

A child that judges a program is a copy of its parent, and finds what the parent has. While nobody
asks for it the pages can be neither read nor written, so that a program cannot find its answer.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import numpy as np

_NOTHING, _READING = 0, 1  # PROT_NONE, PROT_READ
_APART = 64  # bytes, a multiple of which every array starts at

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_Arrays = tuple[np.ndarray, ...]


class Vault:
    """Arrays by what they were computed of; the oldest go when there is no room.

    Args:
        nbytes: Room; arrays that would take more than a quarter of it are not kept.
    """

    def __init__(self, nbytes: int) -> None:
        self._most, self._room = nbytes // 4, nbytes // 4 * 4
        self._kept: dict[Hashable, _Arrays] = {}

    @contextmanager
    def open(self, key: Hashable, make: Callable[[], _Arrays]) -> Iterator[_Arrays]:
        """Arrays to read inside; made where they are not known.

        Args:
            key: Says all that the arrays depend on.
            make: Computes them.
        """
        arrays = self._kept.get(key)
        if arrays is None:
            arrays = make()
            if sum(map(_padded, arrays)) <= self._most:
                arrays = self._keep(key, arrays)
        if key not in self._kept:
            yield arrays
            return
        _protect(arrays, _READING)
        try:
            yield arrays
        finally:
            _protect(arrays, _NOTHING)

    def clear(self) -> None:
        """Forgets everything."""
        self._kept.clear()
        self._room = 4 * self._most

    def _keep(self, key: Hashable, arrays: _Arrays) -> _Arrays:
        wanted = sum(map(_padded, arrays))
        while wanted > self._room:
            self._room += sum(map(_padded, self._kept.pop(next(iter(self._kept)))))
        self._room -= wanted
        memory = mmap.mmap(-1, max(1, wanted), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        at, kept = 0, []
        for array in arrays:
            kept.append(np.frombuffer(memory, array.dtype, array.size, at).reshape(array.shape))
            kept[-1][...] = array
            at += _padded(array)
        self._kept[key] = tuple(kept)
        return self._kept[key]


def _padded(array: np.ndarray) -> int:
    return -(-array.nbytes // _APART) * _APART


def _protect(arrays: _Arrays, access: int) -> None:
    """Of all the pages that the arrays lie in, which begin with the first one.

    Raises:
        OSError: The kernel refuses; the pages are as they were.
    """
    length = sum(map(_padded, arrays))
    start = ctypes.c_void_p(arrays[0].ctypes.data)
    if length and _LIBRARY.mprotect(start, ctypes.c_size_t(length), access) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"the vault cannot be locked or opened: {os.strerror(code)}")
