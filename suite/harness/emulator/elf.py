"""Reads from an object file which thread-local variables it expects from elsewhere.

Those are a program's ``extern __shared__`` arrays, by the names that the linker knows them by.
"""

from __future__ import annotations

import struct

_SYMBOL_TABLE = 2  # section type
_THREAD_LOCAL = 6  # symbol type
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size


def undefined_thread_locals(obj: bytes) -> list[str]:
    """Names of undefined thread-local symbols.

    Args:
        obj: A relocatable 64-bit little-endian ELF file.

    Raises:
        ValueError: It is something else.
    """
    if obj[:6] != b"\x7fELF\x02\x01":
        raise ValueError("the compiler's output is not a 64-bit little-endian ELF object")
    (table_at,) = struct.unpack_from("<Q", obj, 0x28)
    entry_size, entries = struct.unpack_from("<HH", obj, 0x3A)

    def section(index: int) -> tuple[int, int, int, int]:
        """Type, offset, size and link of a section."""
        at = table_at + index * entry_size
        (kind,) = struct.unpack_from("<I", obj, at + 4)
        offset, size, link = struct.unpack_from("<QQI", obj, at + 0x18)
        return kind, offset, size, link

    names = []
    for kind, offset, size, link in map(section, range(entries)):
        if kind != _SYMBOL_TABLE:
            continue
        strings = section(link)[1]
        for name, info, _, where, _, _ in _SYMBOL.iter_unpack(obj[offset : offset + size]):
            if where == 0 and info & 0xF == _THREAD_LOCAL:
                start = strings + name
                names.append(obj[start : obj.index(b"\0", start)].decode())
    return [n for n in sorted(set(names)) if n not in _RUNTIME]


_RUNTIME = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "emu_polls"})
