"""Sparse matrices from MATLAB's files of version 5 to 7, read strictly.

SciPy's reader trusts what such a file says of itself: an unknown type in it is a crash of the
process, and a length in it is memory. Here every element has to lie within the one around it.
Only sparse variables, and those in a struct's fields ``A`` and ``Zeros``, are looked at.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from suite.matrices.base import MatrixError

HEADER_BYTES = 128
SWOLLEN_BYTES = 1 << 27  # beyond this much when unpacked,
SWOLLEN_RATIO = 200  # at most this many times the file

_ORDERS = {b"IM": "<", b"MI": ">"}
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"} | {
    12: "i8",
    13: "u8",
}
_MATRIX, _COMPRESSED = 14, 15
_STRUCT, _SPARSE = 2, 5
_COMPLEX = 0x0800
_PIECE = 1 << 22  # bytes unpacked at a time
_FIELDS = ("A", "Zeros")

Fields = Mapping[str, "sparse.csc_array | None"]


@dataclass(frozen=True)
class _Variable:
    """A variable: a sparse matrix, the fields of a struct, or (both None) something else."""

    name: str
    matrix: sparse.csc_array | None = None
    fields: Fields | None = None


def variables(path: Path) -> dict[str, sparse.csc_array | Fields]:
    """The sparse variables by name, and the structs with their sparse fields ``A`` and ``Zeros``.

    Raises:
        MatrixError: A complex matrix, or far more content than the file has bytes.
        ValueError: Something in the file is not as it should be.
    """
    data = memoryview(path.read_bytes())
    order = _ORDERS.get(bytes(data[126:HEADER_BYTES]))
    if order is None:
        raise ValueError("no byte order in its header")
    found: dict[str, sparse.csc_array | Fields] = {}
    for kind, content in _elements(data[HEADER_BYTES:], order, top=True):
        if kind == _COMPRESSED:
            unpacked = _unpacked(content, path, len(data))
            kind, content = next(_elements(unpacked, order), (0, content))
        if kind == _MATRIX:
            variable = _variable(content, order, path)
            if variable.matrix is not None:
                found[variable.name] = variable.matrix
            elif variable.fields is not None:
                found[variable.name] = variable.fields
    return found


def refuse_swollen(path: Path, nbytes: int, size: int) -> None:
    """Refuses a small file that would become a large one: no matrix compresses that well.

    Raises:
        MatrixError: Naming both sizes.
    """
    if nbytes > max(SWOLLEN_BYTES, SWOLLEN_RATIO * size):
        raise MatrixError(
            f"{path}: {size:,} bytes hold {nbytes:,} or more, over {SWOLLEN_RATIO} times as many;"
            " save it uncompressed if that is right"
        )


def _unpacked(content: memoryview, path: Path, size: int) -> memoryview:
    """A variable's own bytes, which are counted before they are kept."""
    packed, rest, total = zlib.decompressobj(), bytes(content), 0
    while rest and not packed.eof:
        total += len(packed.decompress(rest, _PIECE))
        refuse_swollen(path, total, size)
        rest = packed.unconsumed_tail
    return memoryview(zlib.decompress(content, bufsize=max(1, total)))


def _elements(data: memoryview, order: str, top: bool = False) -> Iterator[tuple[int, memoryview]]:
    """Type and content of each element, one after the other; at the top they are not padded.

    Raises:
        ValueError: One reaches beyond the end.
    """
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small element: type and length in one word, the content in the other
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start = at + 8
            end = start + size + (0 if top else -size % 8)
        if start + size > min(len(data), max(end, start)):
            raise ValueError(f"an element of {size} bytes where {len(data) - start} are left")
        yield kind, data[start : start + size]
        at = end


def _variable(content: memoryview, order: str, path: Path, inside: bool = False) -> _Variable:
    if not content:
        return _Variable("")  # how an empty array is written
    parts = _elements(content, order)
    flags = _numbers(parts, order)
    shape = tuple(int(size) for size in _numbers(parts, order))
    name = _bytes(parts).decode("utf-8", "replace")
    kind = int(flags[0]) & 0xFF if flags.size else 0
    if kind == _SPARSE and len(shape) == 2:
        if int(flags[0]) & _COMPLEX:
            raise MatrixError(
                f"{path}: complex values are not supported; give the matrix's real part or its"
                " modulus"
            )
        rows, starts, values = (_numbers(parts, order) for _ in range(3))
        return _Variable(name, _sparse(rows, starts, values, shape))
    if kind == _STRUCT and shape == (1, 1) and not inside:
        (length,) = _numbers(parts, order)
        names = _field_names(_bytes(parts), int(length))
        fields = {
            field: _variable(content, order, path, inside=True).matrix
            for field, (_, content) in zip(names, parts, strict=False)
            if field in _FIELDS
        }
        return _Variable(name, fields=fields)
    return _Variable(name)


def _sparse(
    rows: np.ndarray, starts: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> sparse.csc_array:
    """The matrix; a file may have room for more entries than there are.

    Raises:
        ValueError: The arrays do not fit each other, or the shape.
    """
    if min(shape) < 0 or starts.size != shape[1] + 1:
        raise ValueError(f"{starts.size} column starts in a matrix of {shape[0]} × {shape[1]}")
    if rows.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        raise ValueError("indices that are not integers")
    nnz = int(starts[-1])
    if not 0 <= nnz <= min(rows.size, values.size):
        raise ValueError(f"{nnz} entries, of which {min(rows.size, values.size)} are there")
    matrix = sparse.csc_array((values[:nnz], rows[:nnz], starts), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def _field_names(text: bytes, length: int) -> list[str]:
    if length < 1:
        raise ValueError(f"field names of {length} bytes")
    pieces = (text[at : at + length] for at in range(0, len(text), length))
    return [piece.split(b"\0")[0].decode("utf-8", "replace") for piece in pieces]


def _bytes(parts: Iterator[tuple[int, memoryview]]) -> bytes:
    return bytes(_next(parts)[1])


def _numbers(parts: Iterator[tuple[int, memoryview]], order: str) -> np.ndarray:
    kind, content = _next(parts)
    if kind not in _NUMBERS:
        raise ValueError(f"numbers of the unknown type {kind}")
    array = np.frombuffer(content, np.dtype(order + _NUMBERS[kind]))
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _next(parts: Iterator[tuple[int, memoryview]]) -> tuple[int, memoryview]:
    found = next(parts, None)
    if found is None:
        raise ValueError("a variable ends early")
    return found
