"""MATLAB's files as SciPy writes them come back as they were; what does not fit is refused."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat

from suite.matrices import files
from suite.matrices.base import MatrixError
from tests.fuzz import fuzzed

SMALL = sparse.csc_array(np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0], [0, 0, 6]]))


@fuzzed(60)
@given(
    rows=st.integers(0, 6),
    cols=st.integers(0, 6),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([np.float64, np.bool_, np.int64, np.uint8]),
    nested=st.booleans(),
    compressed=st.booleans(),
)
def test_what_scipy_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: int,
    cols: int,
    seed: int,
    dtype: type,
    nested: bool,
    compressed: bool,
) -> None:
    random = np.random.default_rng(seed)
    dense = (random.integers(-3, 3, (rows, cols)) * (random.random((rows, cols)) < 0.5)).astype(
        dtype
    )
    matrix = sparse.csc_array(dense)
    problem = {"title": "x", "A": matrix, "aux": {"b": np.ones(3)}, "kind": "y"}
    path = tmp_path_factory.mktemp("mat") / "a.mat"
    savemat(path, {"Problem": problem} if nested else {"A": matrix}, do_compression=compressed)
    np.testing.assert_array_equal(files.read(path).toarray(), dense.astype(np.float64))


def written(matrix: sparse.csc_array = SMALL, **options: bool) -> bytes:
    file = io.BytesIO()
    savemat(file, {"A": matrix}, **options)
    return file.getvalue()


def refusal(tmp_path: Path, data: bytes) -> str:
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(MatrixError) as caught:
        files.read(tmp_path / "a.mat")
    return str(caught.value)


def test_the_bytes_may_be_in_the_other_order(tmp_path: Path) -> None:
    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data + b"\0" * (-len(data) % 8)

    def numbers(kind: int, values: list[int] | list[float], dtype: str) -> bytes:
        return element(kind, np.array(values, dtype).tobytes())

    body = numbers(6, [5, 3], ">u4") + numbers(5, [2, 2], ">i4") + element(1, b"A")
    body += numbers(5, [0, 1, 7], ">i4") + numbers(5, [0, 1, 2], ">i4")  # room for one more
    body += numbers(9, [1.5, -2.0, 9.0], ">f8")
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(header + element(14, body))
    assert files.read(tmp_path / "a.mat").toarray().tolist() == [[1.5, 0.0], [0.0, -2.0]]


def test_an_unknown_type_is_refused_where_scipy_crashes(tmp_path: Path) -> None:
    data = written()
    at = data.index(struct.pack("<II", 9, 48))  # the six values
    assert "unknown type 99" in refusal(
        tmp_path, data[:at] + struct.pack("<I", 99) + data[at + 4 :]
    )


def test_an_element_that_reaches_beyond_its_variable_is_refused(tmp_path: Path) -> None:
    data = written()
    at = data.index(struct.pack("<II", 9, 48))
    swollen = data[: at + 4] + struct.pack("<I", 2**31) + data[at + 8 :]
    assert "an element of 2147483648 bytes where 48 are left" in refusal(tmp_path, swollen)


@pytest.mark.parametrize("keep", [0, 60, 127, 132, 180, -60, -8])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, keep: int) -> None:
    refusal(tmp_path, written()[:keep])


def test_an_index_outside_the_matrix_is_refused(tmp_path: Path) -> None:
    data = written()
    rows = np.asarray(SMALL.indices, np.int32).tobytes()
    at = data.index(rows)
    assert "damaged" in refusal(tmp_path, data[:at] + struct.pack("<i", 4) + data[at + 4 :])


def test_complex_values_are_refused(tmp_path: Path) -> None:
    assert "complex values are not supported" in refusal(tmp_path, written(SMALL * (1 + 2j)))


def test_what_unpacks_to_far_more_than_the_file_is_refused(tmp_path: Path) -> None:
    packed = zlib.compress(bytes(200 << 20), 9)
    data = written()[:128] + struct.pack("<II", 15, len(packed)) + packed
    assert "over 200 times as many" in refusal(tmp_path, data)


def test_a_struct_in_the_place_of_a_matrix_is_none(tmp_path: Path) -> None:
    file = io.BytesIO()
    savemat(file, {"Problem": {"A": {"A": SMALL}}})
    assert "found none" in refusal(tmp_path, file.getvalue())
