"""Matrix Market text, read strictly: what the file says is what the matrix holds, or it is refused.

SciPy's parser is fast and forgiving: it ignores what follows a value, believes the declared counts
and allocates for them. So the text goes through it in blocks of whole lines, each held against a
grammar first. Memory grows with what the file holds, never with what it claims to hold.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse
from scipy.io import mmread

from suite.matrices.base import INT32_MAX
from suite.matrices.lines import EMPTY, Lines

COMMENT_BYTES = 1 << 26  # comments, blank lines and padding that a file may have beside its entries
ENTRY_BYTES = 4096  # and per entry

_BOM = b"\xef\xbb\xbf"
_FIELDS = ("real", "integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")

_INDEX = rb"\d++"
_VALUE = {
    "real": rb"[+-]?+(?:\d++\.?+\d*+|\.\d++)(?:[eEdD][+-]?+\d++)?+",
    "integer": rb"[+-]?+\d++",
    "pattern": rb"",
}
_EXPONENT_D = bytes.maketrans(b"dD", b"eE")


@dataclass(frozen=True)
class Header:
    """What the banner and the size line declare.

    Attributes:
        layout: ``coordinate`` or ``array``.
        field: ``real``, ``integer`` or ``pattern``.
        symmetry: ``general``, ``symmetric`` or ``skew-symmetric``.
        rows: M.
        cols: N.
        entries: Lines of data to follow.
    """

    layout: str
    field: str
    symmetry: str
    rows: int
    cols: int
    entries: int


def read(stream: BinaryIO, name: str) -> sparse.coo_array:
    """Reads a matrix in Matrix Market format, ``coordinate`` or ``array``.

    Symmetric storage is expanded. In the coordinate layout explicit zeros stay, and duplicates too
    (summing them is ``canonical``'s part); in the array layout zeros are not structure and go.

    Args:
        stream: Yields the file's bytes, decompressed.
        name: Named in errors, usually the path.

    Returns:
        M × N, float64 values.

    Raises:
        MatrixError: The text says something that the matrix could not hold exactly; names the line.
    """
    text = Lines(stream, name)
    header = _header(text)
    rows, cols, values = _body(text, header)
    if header.layout == "array":
        rows, cols = _array_positions(header)
        stored = values != 0
        rows, cols, values = rows[stored], cols[stored], values[stored]
    if header.symmetry != "general":
        mirrored = rows != cols
        sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
        rows, cols, values = (
            np.concatenate((rows, cols[mirrored])),
            np.concatenate((cols, rows[mirrored])),
            np.concatenate((values, sign * values[mirrored])),
        )
    return sparse.coo_array((values, (rows, cols)), shape=(header.rows, header.cols))


def _header(text: Lines) -> Header:
    words = text.readline().removeprefix(_BOM).decode("utf-8", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        text.refuse(
            1,
            "expected '%%MatrixMarket matrix LAYOUT FIELD SYMMETRY'; is this a Matrix Market file?",
        )
    layout, field, symmetry = words[2:]
    if layout not in ("coordinate", "array"):
        text.refuse(1, f"layout {layout!r} is not known; use coordinate or array")
    if field == "complex":
        text.refuse(
            1, "complex values are not supported; give the matrix's real part or its modulus"
        )
    if field not in _FIELDS or (layout == "array" and field == "pattern"):
        text.refuse(1, f"field {field!r} is not known in layout {layout}; use real or integer")
    if symmetry not in _SYMMETRIES or (field == "pattern" and symmetry in _SYMMETRIES[2:]):
        text.refuse(
            1, f"symmetry {symmetry!r} is not known for field {field}; use general or symmetric"
        )
    line = text.readline()
    while line and (not line.strip() or line.lstrip().startswith(b"%")):
        if text.taken > COMMENT_BYTES:
            text.refuse(text.line, f"no size line within {COMMENT_BYTES} bytes of comments")
        text.skip_empty()
        line = text.readline()
    sizes = line.split()
    wanted = 3 if layout == "coordinate" else 2
    if len(sizes) != wanted or not all(re.fullmatch(rb"\d{1,20}", size) for size in sizes):
        what = "rows, columns and entries" if wanted == 3 else "rows and columns"
        text.refuse(text.line - 1, f"expected {wanted} integers ({what}), found {_shown(line)}")
    rows, cols = int(sizes[0]), int(sizes[1])
    if symmetry != "general" and rows != cols:
        text.refuse(text.line - 1, f"a {symmetry} matrix is square, not {rows} × {cols}")
    symmetry = (
        "symmetric" if symmetry == "hermitian" else symmetry
    )  # the same without complex values
    if layout == "coordinate":
        entries = int(sizes[2])
    else:
        triangle = {"general": rows * cols, "symmetric": rows * (rows + 1) // 2}
        entries = triangle.get(symmetry, rows * (rows - 1) // 2)
    if max(rows, cols, entries) > INT32_MAX:
        text.refuse(
            text.line - 1,
            f"{rows} × {cols} with {entries} entries is beyond int32; check the size line",
        )
    return Header(layout, field, symmetry, rows, cols, entries)


def _body(text: Lines, header: Header) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns (int32, from 0; none in the array layout) and float64 values, in order."""
    rows, cols = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    values = [np.zeros(0)]
    held = 0
    limit = text.taken + COMMENT_BYTES + ENTRY_BYTES * header.entries
    lower = upper = False
    while block := text.block():
        data = _entries(text, block, header)
        count = data.count(b"\n")
        if held + count > header.entries:
            text.refuse(
                _line(block, text.line, header.entries - held),
                f"one entry more than the {header.entries} declared; correct the size line",
            )
        if text.taken > limit:
            text.refuse(
                text.line, f"far longer than {header.entries} entries can be; is it damaged?"
            )
        if count:
            i, j, v = _parse(text, block, data, count, header)
            rows.append(i)
            cols.append(j)
            values.append(v)
            if header.layout == "coordinate" and header.symmetry != "general":
                lower, upper = _one_triangle(text, block, header, (i, j, v), (lower, upper))
        held += count
        text.line += block.count(b"\n")
    if held < header.entries:
        text.refuse(
            text.line,
            f"ends after {held} entries, {header.entries} are declared; is it truncated?",
        )
    return np.concatenate(rows), np.concatenate(cols), np.concatenate(values)


def _entries(text: Lines, block: bytes, header: Header) -> bytes:
    """The block without blank lines and comments, every remaining line held against the grammar."""
    grammar = _grammar(header.layout, header.field)
    kept, start = [], 0
    while True:
        match = grammar.match(block, start)
        assert match is not None  # it may be empty
        kept.append(match.group())
        if match.end() == len(block):
            return b"".join(kept)
        empty = EMPTY.match(block, match.end())
        assert empty is not None  # likewise
        start = empty.end()
        if start == match.end():
            line = block[start : block.index(b"\n", start) + 1]
            wanted = {"real": "a number", "integer": "an integer", "pattern": "nothing more"}[
                header.field
            ]
            if header.layout == "coordinate":
                wanted = f"row, column and {wanted}"
            text.refuse(
                text.line + block.count(b"\n", 0, match.end()),
                f"expected {wanted}, found {_shown(line)}",
            )


def _grammar(layout: str, field: str) -> re.Pattern[bytes]:
    parts = [] if layout == "array" else [_INDEX, _INDEX]
    if field != "pattern":
        parts.append(_VALUE[field])
    return re.compile(rb"(?:[ \t]*+" + rb"[ \t]++".join(parts) + rb"[ \t]*+\n)*+")


def _parse(
    text: Lines, block: bytes, data: bytes, count: int, header: Header
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries of lines that the grammar has accepted."""
    if header.field == "real" and (b"d" in data or b"D" in data):
        data = data.translate(_EXPONENT_D)
    for before in (b" ", b"\t", b"\n"):  # the parser refuses a leading plus
        data = data.replace(before + b"+", before)
    data = data.removeprefix(b"+")
    size = f"{header.rows} {header.cols} {count}" if header.layout == "coordinate" else f"{count} 1"
    banner = f"%%MatrixMarket matrix {header.layout} {header.field} general\n{size}\n".encode()
    try:
        parsed: Any = mmread(io.BytesIO(banner + data), spmatrix=False)
    except (ValueError, OverflowError) as error:
        for k, line in enumerate(data.splitlines()):
            if what := _misfit(line, header):
                text.refuse(_line(block, text.line, k), what)
        text.refuse(text.line, f"cannot be read: {error}")  # in this line or one of the next
    if header.layout == "coordinate":
        i, j = parsed.coords
        v = parsed.data
    else:
        i = j = np.zeros(0, np.int32)
        v = parsed[:, 0]
    if v.dtype != np.float64:
        v, given = v.astype(np.float64), v
        inexact = _changed(given, v)
        if inexact.size:
            text.refuse(
                _line(block, text.line, int(inexact[0])),
                f"integer {given[inexact[0]]} has no exact float64; write it as real",
            )
    if not np.isfinite(v).all():
        k = int(np.flatnonzero(~np.isfinite(v))[0])
        text.refuse(
            _line(block, text.line, k), "the value is beyond float64; values must be finite"
        )
    return i, j, v


def _changed(integers: np.ndarray, floats: np.ndarray) -> np.ndarray:
    """Where converting to float64 has changed an integer."""
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(floats.astype(integers.dtype) != integers)


def _misfit(line: bytes, header: Header) -> str:
    """What is too large or too small in a line that the grammar accepts; empty where nothing is."""
    words = line.split()
    if header.layout == "coordinate":
        for what, word, most in (("row", words[0], header.rows), ("column", words[1], header.cols)):
            if len(word) > 20 or not 1 <= int(word) <= most:
                return f"{what} {_shown(word)} is not between 1 and {most}"
    if header.field == "integer" and (
        len(words[-1]) > 20 or not -(2**63) <= int(words[-1]) < 2**63
    ):
        return f"integer {_shown(words[-1])} is beyond int64; write the matrix as real to round it"
    return ""


def _one_triangle(
    text: Lines,
    block: bytes,
    header: Header,
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    seen: tuple[bool, bool],
) -> tuple[bool, bool]:
    """Whether entries below and above the diagonal have been seen; refuses when both have.

    A file that lists both triangles would have every value counted twice.
    """
    i, j, v = entries
    below, above = i > j, i < j
    lower, upper = seen[0] or bool(below.any()), seen[1] or bool(above.any())
    if lower and upper:
        first_lower = seen[0] or (not seen[1] and int(below.argmax()) < int(above.argmax()))
        k = int((above if first_lower else below).argmax())
        text.refuse(
            _line(block, text.line, k),
            f"a {header.symmetry} file lists one triangle, not both; or declare it general",
        )
    if header.symmetry == "skew-symmetric":
        wrong = np.flatnonzero((i == j) & (v != 0))
        if wrong.size:
            text.refuse(
                _line(block, text.line, int(wrong[0])),
                "a skew-symmetric matrix has a zero diagonal",
            )
    return lower, upper


def _array_positions(header: Header) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each value of the array layout: by columns, or by those of a triangle."""
    if header.symmetry == "general":
        k = np.arange(header.entries)
        rows = max(header.rows, 1)
        return (k % rows).astype(np.int32), (k // rows).astype(np.int32)
    cols, rows_ = np.triu_indices(header.rows, 1 if header.symmetry == "skew-symmetric" else 0)
    return rows_.astype(np.int32), cols.astype(np.int32)


def _line(block: bytes, first: int, k: int) -> int:
    """Number of the line that holds entry ``k`` of a block whose first line is number ``first``."""
    for number, line in enumerate(block.split(b"\n"), first):
        if line.strip() and not line.lstrip().startswith(b"%"):
            if k == 0:
                return number
            k -= 1
    raise AssertionError("a block holds every entry that was read from it")


def _shown(text: bytes) -> str:
    """The text for a message: short, on one line."""
    shown = text.strip().decode("utf-8", "replace")
    return repr(shown if len(shown) <= 40 else shown[:37] + "...") if shown else "nothing"
