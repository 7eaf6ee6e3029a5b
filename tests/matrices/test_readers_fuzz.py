"""Damaged, hostile and swollen files of every format: read, or refused with a ``MatrixError``.

Each is read in a child with a limit on its memory, so that a crash, a hang or gigabytes are seen.
``make fuzz`` runs this with many more examples; Matrix Market text has its own in
``test_matrix_market_fuzz.py``.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat

from tests.fuzz import fuzzed
from tests.matrices.reading import Outcome, Reader

GROWTH_KB = 300 << 10  # resident memory that no small file may cost
CSR = sparse.csr_array(np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0], [0, 0, 6]]))
TEXT = b"%%MatrixMarket matrix coordinate real general\n4 3 3\n1 1 1.0\n2 3 -2.5\n4 2 1e3\n"


def npz(matrix: sparse.sparray, compressed: bool = True) -> bytes:
    file = io.BytesIO()
    sparse.save_npz(file, matrix, compressed=compressed)
    return file.getvalue()


def mat(compressed: bool, nested: bool) -> bytes:
    file = io.BytesIO()
    csc = sparse.csc_array(CSR)
    content = {"Problem": {"A": csc, "Zeros": csc}} if nested else {"A": csc}
    savemat(file, content, do_compression=compressed)
    return file.getvalue()


def archive(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


VALID = (
    (".mtx", TEXT),
    (".mtx", b"%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n"),
    (".mtx.gz", gzip.compress(TEXT)),
    (".tar.gz", archive("fuzz/fuzz.mtx", TEXT)),
    (".npz", npz(CSR)),
    (".npz", npz(CSR, compressed=False)),
    (".npz", npz(sparse.coo_array(CSR), compressed=False)),
    (".npz", npz(sparse.csc_array(CSR), compressed=False)),
    (".npz", npz(sparse.dia_array(CSR), compressed=False)),
    (".npz", npz(sparse.bsr_array(CSR, blocksize=(2, 3)), compressed=False)),
    (".mat", mat(compressed=True, nested=False)),
    (".mat", mat(compressed=False, nested=False)),
    (".mat", mat(compressed=False, nested=True)),
    (".smtx", b"4, 3, 5\n0 2 2 4 5\n0 2 0 1 2\n"),
)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def outcome(reader: Reader, folder: Path, suffix: str, data: bytes) -> Outcome:
    path = folder / f"fuzz{suffix}"
    path.write_bytes(data)
    found = reader.read(path)
    assert found.kind in ("read", "refused"), found
    if found.kind == "refused":
        assert len(found.text.splitlines()) == 1
        assert "fuzz" in found.text
        assert len(found.text) < 2000
    return found


@pytest.mark.parametrize(
    ("suffix", "data"), VALID, ids=[f"{i}{suffix}" for i, (suffix, _) in enumerate(VALID)]
)
def test_the_files_that_are_damaged_here_are_valid(
    reader: Reader, folder: Path, suffix: str, data: bytes
) -> None:
    assert outcome(reader, folder, suffix, data).kind == "read"


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A valid file with some bytes changed, cut, doubled or added."""
    suffix, data = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["set", "cut", "double", "add", "end", "integer"])):
            case "set":
                byte = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x0A, 0x39]))
                data = data[:at] + bytes([byte]) + data[at + 1 :]
            case "cut":
                data = data[:at] + data[at + draw(st.integers(1, 40)) :]
            case "double":
                data = data[:at] + data[max(0, at - draw(st.integers(1, 40))) :]
            case "add":
                data = data[:at] + draw(st.binary(max_size=8)) + data[at:]
            case "end":
                data = data[:at]
            case "integer":  # where a length or an index might be
                value = draw(st.sampled_from([0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1]))
                data = data[:at] + struct.pack("<I", value) + data[at + 4 :]
    return suffix, data


@fuzzed(400)
@given(file=damaged())
def test_damaged_files(reader: Reader, folder: Path, file: tuple[str, bytes]) -> None:
    assert outcome(reader, folder, *file).grown_kb < GROWTH_KB


@fuzzed(150)
@given(
    suffix=st.sampled_from(sorted({suffix for suffix, _ in VALID})), data=st.binary(max_size=300)
)
def test_files_of_any_bytes(reader: Reader, folder: Path, suffix: str, data: bytes) -> None:
    assert outcome(reader, folder, suffix, data).grown_kb < GROWTH_KB


@fuzzed(200)
@given(
    st.lists(
        st.sampled_from(["0", "1", "4", "3", ",", " ", "\n", "-1", "1" * 18, "9" * 19, "²", "1e3"]),
        max_size=30,
    ).map(" ".join)
)
def test_smtx_of_hostile_numbers(reader: Reader, folder: Path, text: str) -> None:
    found = outcome(reader, folder, ".smtx", text.encode())
    assert found.grown_kb < GROWTH_KB


def npy(shape: tuple[int, ...], dtype: str, data: bytes) -> bytes:
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def members(**arrays: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in arrays.items():
            out.writestr(f"{name}.npy", data)
    return file.getvalue()


INT, REAL = "<i4", "<f8"


@fuzzed(200)
@given(
    fmt=st.sampled_from([b"csr", b"csc", b"coo", b"dia", b"bsr", b"lil", b"\xff"]),
    shapes=st.lists(
        st.lists(st.sampled_from([0, 1, 3, 2**31 - 1, 2**40, 2**62, -1]), max_size=3).map(tuple),
        min_size=4,
        max_size=4,
    ),
    dtypes=st.lists(
        st.sampled_from([INT, REAL, "<f4", "<i8", "<c16", "|O", "<U4", "|b1", "<f2", "<M8[s]"]),
        min_size=4,
        max_size=4,
    ),
    size=st.lists(st.sampled_from([0, 1, 3, 2**31, 2**62, -1]), min_size=1, max_size=3),
    data=st.binary(max_size=64),
)
def test_npz_that_claims_anything(
    reader: Reader,
    folder: Path,
    fmt: bytes,
    shapes: list[tuple[int, ...]],
    dtypes: list[str],
    size: list[int],
    data: bytes,
) -> None:
    names = ("data", "indices", "indptr", "offsets")
    arrays = {
        name: npy(shape, dtype, data)
        for name, shape, dtype in zip(names, shapes, dtypes, strict=True)
    }
    known = {
        "format": npy((), f"|S{len(fmt)}", fmt),
        "shape": npy((len(size),), "<i8", struct.pack(f"<{len(size)}q", *size)),
    }
    file = members(**arrays, row=arrays["indices"], col=arrays["indptr"], **known)
    assert outcome(reader, folder, ".npz", file).grown_kb < GROWTH_KB


def header(text: bytes) -> bytes:
    """A NumPy array whose header is not one."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize("text", [b"{'descr': (", b'"""', b"{\n  1\n 2}", b"(" * 500, b"\\", b"0_"])
def test_a_numpy_header_that_is_none(reader: Reader, folder: Path, text: bytes) -> None:
    assert outcome(reader, folder, ".npz", members(format=header(text))).kind == "refused"


@pytest.mark.parametrize(("at", "value"), [(6, 1), (8, 14), (8, 12), (8, 93), (8, 99)])
def test_an_archive_that_is_encrypted_or_packed_in_another_way(
    reader: Reader, folder: Path, at: int, value: int
) -> None:
    data = npz(CSR, compressed=False)
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    for place in (local + at, central + at + 2):
        data = data[:place] + struct.pack("<H", value) + data[place + 2 :]
    assert outcome(reader, folder, ".npz", data).kind == "refused"


# Files that are small and hold or claim gigabytes


def element(kind: int, data: bytes, claimed: int | None = None) -> bytes:
    """An element of a MATLAB file."""
    size = len(data) if claimed is None else claimed
    return struct.pack("<II", kind, size) + data + b"\0" * (-len(data) % 8)


def matlab(body: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49) + body


def swollen_matlab(claimed: int) -> bytes:
    """A sparse variable whose values claim to be so many bytes."""
    flags = element(6, struct.pack("<II", 5, claimed // 8))
    dimensions, name = element(5, struct.pack("<ii", 3, 3)), element(1, b"A")
    values = element(9, b"\0" * 64, claimed)
    return element(14, flags + dimensions + name + element(5, b"\0" * 16) + values)


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "comments without end": (".mtx.gz", lambda: gzip.compress(TEXT[:46] + b"%\n" * (200 << 20), 1)),
    "a line without end": (".mtx.gz", lambda: gzip.compress(b"%%" + b" " * (400 << 20), 1)),
    "blanks between entries": (
        ".mtx.gz",
        lambda: gzip.compress(TEXT[:52] + b" " * 10 + b"\n" * (400 << 20), 1),
    ),
    "an archive of comments": (
        ".tar.gz",
        lambda: archive("fuzz/fuzz.mtx", TEXT[:46] + b"%\n" * (200 << 20)),
    ),
    "values that are not there": (
        ".npz",
        lambda: members(
            format=npy((), "|S3", b"csr"),
            shape=npy((2,), "<i8", struct.pack("<2q", 3, 3)),
            indices=npy((2**28,), INT, b"\0" * 64),
            indptr=npy((4,), INT, b"\0" * 16),
            data=npy((2**28,), REAL, b"\0" * 64),
        ),
    ),
    "zeros by the gigabyte": (
        ".npz",
        lambda: members(
            format=npy((), "|S3", b"csr"),
            shape=npy((2,), "<i8", struct.pack("<2q", 3, 3)),
            indices=npy((2**27,), INT, bytes(2**29)),
            indptr=npy((4,), INT, struct.pack("<4i", 0, 2**27, 2**27, 2**27)),
            data=npy((2**27,), "|b1", bytes(2**27)),
        ),
    ),
    "claimed values in MATLAB's": (".mat", lambda: matlab(swollen_matlab(2**31))),
    "claimed values, compressed": (
        ".mat",
        lambda: matlab(element(15, zlib.compress(swollen_matlab(2**31)))),
    ),
    "a name without end": (
        ".mat",
        lambda: matlab(element(15, zlib.compress(bytes(400 << 20), 1))),
    ),
    "rows without entries": (".smtx", lambda: b"1000000000000, 1, 0\n0\n\n"),
}


# Seconds each, and of the same kinds as others.
LONG = (
    "a line without end",
    "blanks between entries",
    "zeros by the gigabyte",
    "an archive of comments",
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in BOMBS]
)
def test_a_small_file_that_holds_or_claims_gigabytes_is_refused(
    reader: Reader, folder: Path, name: str
) -> None:
    suffix, make = BOMBS[name]
    found = outcome(reader, folder, suffix, make())
    assert found.kind == "refused", found
    assert found.grown_kb < GROWTH_KB, json.dumps(found.text)
