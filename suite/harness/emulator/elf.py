"""Reads from an object file what the linker and the loader would do with it.

Undefined thread-local variables are a program's ``extern __shared__`` arrays, by the names that the
linker knows them by. Initialisers would run on the host, outside every kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_SYMBOL_TABLE = 2  # section type
_INITIALISERS = frozenset({14, 15, 16})  # section types: at load, at unload, before load
_INDIRECT = 10  # symbol type: its address is computed at load
_THREAD_LOCAL = 6  # symbol type
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size


def undefined_thread_locals(obj: bytes) -> list[str]:
    """Names of undefined thread-local symbols.

    Args:
        obj: A relocatable 64-bit little-endian ELF file.

    Raises:
        ValueError: It is something else.
    """
    found = {s.name for s in _symbols(obj) if s.undefined and s.kind == _THREAD_LOCAL}
    return sorted(found - _RUNTIME)


def initialiser_bytes(obj: bytes) -> int:
    """Size of the tables of functions that the loader would call, 8 bytes a function.

    Args:
        obj: A relocatable 64-bit little-endian ELF file.

    Raises:
        ValueError: It is something else.
    """
    tables = sum(s.size for s in _sections(obj) if s.kind in _INITIALISERS)
    return tables + 8 * sum(s.kind == _INDIRECT for s in _symbols(obj))


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int  # of a symbol table: the section of its strings


class _Symbol(NamedTuple):
    name: str
    kind: int
    undefined: bool


def _sections(obj: bytes) -> list[_Section]:
    if obj[:6] != b"\x7fELF\x02\x01":
        raise ValueError("the compiler's output is not a 64-bit little-endian ELF object")
    (table_at,) = struct.unpack_from("<Q", obj, 0x28)
    entry_size, entries = struct.unpack_from("<HH", obj, 0x3A)
    starts = range(table_at, table_at + entries * entry_size, entry_size)
    kinds = [struct.unpack_from("<I", obj, at + 4)[0] for at in starts]
    places = [struct.unpack_from("<QQI", obj, at + 0x18) for at in starts]
    return [_Section(kind, *place) for kind, place in zip(kinds, places, strict=True)]


def _symbols(obj: bytes) -> Iterator[_Symbol]:
    sections = _sections(obj)
    for kind, offset, size, link in sections:
        if kind != _SYMBOL_TABLE:
            continue
        for name, info, _, where, _, _ in _SYMBOL.iter_unpack(obj[offset : offset + size]):
            start = sections[link].offset + name
            text = obj[start : obj.index(b"\0", start)].decode()
            yield _Symbol(text, info & 0xF, where == 0)


_RUNTIME = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "emu_polls"})
