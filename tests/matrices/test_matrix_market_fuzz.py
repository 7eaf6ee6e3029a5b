"""The reader against an obvious one, on valid and on damaged text: both agree, or both refuse."""

from __future__ import annotations

import contextlib
import io
import math
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suite.matrices import lines, matrix_market
from suite.matrices.base import MatrixError, canonical
from tests.fuzz import fuzzed

NUMBER = {
    "real": re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", re.ASCII),
    "integer": re.compile(r"[+-]?\d+", re.ASCII),
}


class RefusedError(Exception):
    """What the obvious reader raises."""


def obvious(text: str) -> dict[tuple[int, int], list[float]]:
    """Values by position, read line by line from the description of the coordinate layout."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    banner = rows[0].lower().split()
    if len(banner) != 5 or banner[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
        raise RefusedError
    field, symmetry = banner[3:]
    if field not in ("real", "integer", "pattern"):
        raise RefusedError
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise RefusedError
    if field == "pattern" and symmetry == "skew-symmetric":
        raise RefusedError
    kept = [row for row in rows[1:] if row.strip(" \t") and not row.strip(" \t").startswith("%")]
    words = re.split(r"[ \t]+", kept[0].strip(" \t")) if kept else [""]
    if not all(re.fullmatch(r"\d{1,9}", word, re.ASCII) for word in words):
        raise RefusedError
    sizes = [int(word) for word in words]
    if len(sizes) != 3 or len(kept) - 1 != sizes[2]:
        raise RefusedError
    if symmetry != "general" and sizes[0] != sizes[1]:
        raise RefusedError
    entries: dict[tuple[int, int], list[float]] = {}
    triangles = set()
    for row in kept[1:]:
        words = re.split(r"[ \t]+", row.strip(" \t"))
        if len(words) != (2 if field == "pattern" else 3):
            raise RefusedError
        if not all(re.fullmatch(r"\d+", word, re.ASCII) for word in words[:2]):
            raise RefusedError
        i, j = int(words[0]), int(words[1])
        if not (1 <= i <= sizes[0] and 1 <= j <= sizes[1]):
            raise RefusedError
        if field != "pattern" and not NUMBER[field].fullmatch(words[2]):
            raise RefusedError
        value = 1.0 if field == "pattern" else float(words[2].lower().replace("d", "e"))
        if not np.isfinite(value) or (field == "integer" and int(words[2]) != value):
            raise RefusedError
        if symmetry != "general":
            triangles.add(np.sign(i - j))
            if {-1, 1} <= triangles or (symmetry == "skew-symmetric" and i == j and value):
                raise RefusedError
        entries.setdefault((i, j), []).append(value)
        if symmetry != "general" and i != j:
            mirrored = -value if symmetry == "skew-symmetric" else value
            entries.setdefault((j, i), []).append(mirrored)
    return entries


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Text of a small matrix, now and then with a few characters changed, added or removed."""
    field = draw(st.sampled_from(["real", "integer", "pattern"]))
    symmetry = draw(st.sampled_from(["general", "general", "symmetric", "skew-symmetric"]))
    rows = draw(st.integers(1, 5))
    cols = rows if symmetry != "general" else draw(st.integers(1, 5))
    value = {
        "real": st.floats(allow_nan=False, allow_infinity=False).map(repr),
        "integer": st.integers(-(2**55), 2**55).map(str),
        "pattern": st.just(""),
    }[field]
    entry = st.tuples(st.integers(1, rows), st.integers(1, cols), value)
    entries = draw(st.lists(entry, max_size=6))
    if symmetry != "general":
        entries = [(max(i, j), min(i, j), v) for i, j, v in entries]
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n", " \n", "\n% words\n"]))
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}{end}"
    text += f"{rows} {cols} {len(entries)}{end}" + "".join(
        f"{i} {j} {v}{end}" for i, j, v in entries
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 2))
        inserted = draw(st.text("0123456789+-.eEdD %\t\n\rx\x00,\u00bd", max_size=2))
        text = text[:at] + inserted + text[at + width :]
    return text


@pytest.mark.parametrize("block", [100, 1 << 22])
@fuzzed(300)
@given(text=texts())
@example(text="%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e-400\n")
def test_reader_agrees_with_the_obvious_one(block: int, text: str) -> None:
    try:
        expected = obvious(text)
    except RefusedError:
        expected = None
    usual, lines.BLOCK_BYTES = lines.BLOCK_BYTES, block
    try:
        matrix = matrix_market.read(io.BytesIO(text.encode()), "fuzz.mtx")
    except MatrixError:
        assert expected is None
        return
    finally:
        lines.BLOCK_BYTES = usual
    assert expected is not None
    if any(sum(map(abs, values)) > 1.7e308 and len(values) > 1 for values in expected.values()):
        return  # duplicates that sum to infinity are for ``canonical`` to refuse
    csr = canonical(matrix, "fuzz.mtx")
    stored = csr.tocoo()
    found = {
        (int(i) + 1, int(j) + 1): float(v)
        for i, j, v in zip(*stored.coords, stored.data, strict=True)
    }
    assert found.keys() == expected.keys()
    for at, values in expected.items():
        rounding = 1e-15 * sum(map(abs, values)) if len(values) > 1 else 0
        assert abs(found[at] - math.fsum(values)) <= rounding


@fuzzed(200)
@given(st.binary(max_size=200))
def test_bytes_of_any_kind_load_or_raise_matrix_error(data: bytes) -> None:
    for start in (b"", b"%%MatrixMarket matrix coordinate real general\n"):
        with contextlib.suppress(MatrixError):
            matrix_market.read(io.BytesIO(start + data), "bytes.mtx")
