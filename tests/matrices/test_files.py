"""Files of every kind load exactly, and damage is named."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from suite.matrices import files
from suite.matrices.base import MatrixError, canonical

DENSE = np.array([[1.5, 0, 0, 2], [0, 0, -3, 0], [0, 0, 0, 0]])
TEXT = "%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 1.5\n1 4 2\n2 3 -3\n"
SHARED = Path(__file__).parents[2].parent / "shared" / "matrices"


def archive(path: Path, members: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def write(folder: Path, suffix: str) -> Path:
    path = folder / f"small{suffix}"
    matrix = sparse.csr_array(DENSE)
    match suffix:
        case ".mtx":
            path.write_text(TEXT)
        case ".mtx.gz":
            path.write_bytes(gzip.compress(TEXT.encode()))
        case ".tar.gz":
            archive(path, {"small/small_b.mtx": "right-hand side", "small/small.mtx": TEXT})
        case ".npz":
            sparse.save_npz(path, matrix)
        case ".mat":
            scipy.io.savemat(path, {"Problem": {"A": sparse.csc_matrix(DENSE), "title": "small"}})
        case ".smtx":
            path.write_text("3, 4, 3\n0 2 3 3\n0 3 2\n")
    return path


SUFFIXES = (".mtx", ".mtx.gz", ".tar.gz", ".npz", ".mat", ".smtx")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_loads_the_same_matrix(tmp_path, suffix):
    spec = files.spec_for(write(tmp_path, suffix))
    assert spec.name == "small"
    expected = (DENSE != 0).astype(float) if suffix == ".smtx" else DENSE
    np.testing.assert_array_equal(spec.build().csr.toarray(), expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_file_is_refused_by_name(tmp_path, suffix):
    path = write(tmp_path, suffix)
    whole = path.read_bytes()
    end = len(whole) - (60 if suffix == ".tar.gz" else 2)  # an archive ends in padding
    for kept in range(0, end, max(1, end // 40)):
        path.write_bytes(whole[:kept])
        with pytest.raises(MatrixError, match=r"small") as caught:
            files.read(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_flipped_bytes_load_or_raise_matrix_error(tmp_path, suffix):
    path = write(tmp_path, suffix)
    whole = path.read_bytes()
    rng = np.random.default_rng(7)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(damaged)
        with contextlib.suppress(MatrixError):
            files.spec_for(path).build()


@pytest.mark.parametrize(
    "fill", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.bsr_array]
)
def test_npz_of_every_scipy_format_loads(tmp_path, fill):
    sparse.save_npz(tmp_path / "a.npz", fill(DENSE))
    np.testing.assert_array_equal(files.read(tmp_path / "a.npz").toarray(), DENSE)


def test_npz_is_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.savez(tmp_path / "a.npz", format=np.array([Trap()], dtype=object), shape=[1, 1], data=[1.0])
    with pytest.raises(MatrixError):
        files.read(tmp_path / "a.npz")
    assert not (tmp_path / "sprung").exists()


def test_npz_with_indices_outside_its_shape_is_refused(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        format=b"csr",
        shape=[2, 2],
        data=[1.0, 2.0],
        indices=np.array([0, 10**6], np.int32),
        indptr=np.array([0, 1, 2], np.int32),
    )
    with pytest.raises(MatrixError, match=r"a\.npz"):
        files.read(tmp_path / "a.npz")


def test_integer_without_an_exact_float64_is_refused(tmp_path):
    matrix = sparse.csr_array(np.array([[2**53 + 1, 0], [0, 2**53]]))
    sparse.save_npz(tmp_path / "a.npz", matrix)
    with pytest.raises(MatrixError, match="9007199254740993"):
        files.read(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_complex_matrix_is_refused_clearly(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    matrix = sparse.csc_matrix(DENSE * 1j)
    if suffix == ".npz":
        sparse.save_npz(path, matrix)
    else:
        scipy.io.savemat(path, {"A": matrix})
    with pytest.raises(MatrixError, match="complex"):
        files.read(path)


def test_mat_with_one_sparse_variable_loads(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"K": sparse.csc_matrix(DENSE), "b": np.ones(3)})
    np.testing.assert_array_equal(files.read(tmp_path / "a.mat").toarray(), DENSE)


def test_mat_with_several_sparse_variables_names_them(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {k: sparse.csc_matrix(DENSE) for k in ("K", "M")})
    with pytest.raises(MatrixError, match="K, M"):
        files.read(tmp_path / "a.mat")


def test_mat_keeps_the_explicit_zeros_of_the_collection(tmp_path):
    zeros = sparse.csc_matrix(([1.0], ([2], [1])), shape=(3, 4))
    problem = {"A": sparse.csc_matrix(DENSE), "Zeros": zeros}
    scipy.io.savemat(tmp_path / "a.mat", {"Problem": problem})
    matrix = files.spec_for(tmp_path / "a.mat").build().csr
    assert matrix.nnz == 4
    np.testing.assert_array_equal(matrix.toarray(), DENSE)


def test_matlab_73_file_says_how_to_save_it_again(tmp_path):
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "a.mat").write_bytes(header + bytes(400))
    with pytest.raises(MatrixError, match="-v7"):
        files.read(tmp_path / "a.mat")


def test_archive_without_the_matrix_lists_what_it_has(tmp_path):
    path = archive(tmp_path / "a.tar.gz", {"x/y.mtx": TEXT})
    with pytest.raises(MatrixError, match=r"x/y\.mtx"):
        files.read(path)


def test_archive_writes_nothing_to_disk(tmp_path):
    path = archive(tmp_path / "a.tar.gz", {"../escaped.mtx": TEXT, "a/a.mtx": TEXT})
    files.read(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.gz"]
    assert not (tmp_path.parent / "escaped.mtx").exists()


def test_renamed_archive_still_loads(tmp_path):
    path = archive(tmp_path / "renamed.tar.gz", {"a/a.mtx": TEXT})
    np.testing.assert_array_equal(files.read(path).toarray(), DENSE)


@pytest.mark.parametrize(
    "text",
    [
        "3, 4, 3\n0 2 3\n0 3 2\n",
        "3, 4, 3\n0 2 1 3\n0 3 2\n",
        "3, 4, 3\n1 2 3 3\n0 3 2\n",
        "3, 4, 3\n0 2 3 3\n0 4 2\n",
        "3, 4, 3\n0 2 3 3\n0 3\n",
        "3, 4, 3\n0 2 3 3\n0 3 -2\n",
        "3, 4, 3\n0 2 3 3\n0 3 2.5\n",
        "3, 4\n0 2 3 3\n0 3 2\n",
        "3, 4, 3\n0 2 3 3\n0 3 2\n9\n",
        "",
    ],
)
def test_smtx_that_contradicts_itself_is_refused(tmp_path, text):
    (tmp_path / "a.smtx").write_text(text)
    with pytest.raises(MatrixError, match=r"a\.smtx"):
        files.read(tmp_path / "a.smtx")


def test_smtx_without_entries_loads(tmp_path):
    (tmp_path / "a.smtx").write_text("2, 5, 0\n0 0 0\n\n")
    assert files.read(tmp_path / "a.smtx").shape == (2, 5)


def test_shape_that_dwarfs_the_entries_is_refused_before_memory_is_taken(tmp_path):
    (tmp_path / "a.mtx").write_text(TEXT.replace("3 4 3", "2000000000 4 3"))
    with pytest.raises(MatrixError, match="2000000000"):
        files.read(tmp_path / "a.mtx")


def test_unknown_suffix_lists_the_known_ones(tmp_path):
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(MatrixError, match=r"\.mtx, \.mtx\.gz"):
        files.spec_for(tmp_path / "a.csv")


def test_absent_file_is_named(tmp_path):
    with pytest.raises(MatrixError, match="no such file"):
        files.spec_for(tmp_path / "a.mtx")


def test_names_are_safe_for_files_and_test_ids(tmp_path):
    path = tmp_path / "ein (1) größer.mtx"
    path.write_text(TEXT)
    assert files.spec_for(path).name == "ein-1-gr-er"


def test_spec_of_a_file_pickles_and_reads_when_it_is_built(tmp_path):
    path = write(tmp_path, ".mtx")
    spec = pickle.loads(pickle.dumps(files.spec_for(path)))
    path.unlink()
    with pytest.raises(MatrixError, match="no such file"):
        spec.build()


REAL = {  # rows, columns, entries after expansion, explicit zeros
    "1138_bus": (1138, 1138, 4054, 0),
    "bcsstk13": (2003, 2003, 83883, 0),
    "ca-CondMat": (23133, 23133, 186936, 0),
    "karate": (34, 34, 156, 0),
    "lp_e226": (223, 472, 2768, 0),
    "plskz362": (362, 362, 1760, 0),
    "rajat19": (1157, 1157, 5399, 1700),
    "test_FW_2003": (2003, 2003, 23973, 0),
    "zenios": (2873, 2873, 27191, 25877),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/matrices beside the repository")
@pytest.mark.parametrize("name", REAL)
def test_real_matrices_load_with_their_zeros(name):
    matrix = files.spec_for(SHARED / f"{name}.mtx").build().csr
    zeros = int((matrix.data == 0).sum())
    assert (*matrix.shape, matrix.nnz, zeros) == REAL[name]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/matrices beside the repository")
def test_real_complex_matrix_is_refused():
    with pytest.raises(MatrixError, match=r"young1c.*complex"):
        files.read(SHARED / "young1c.mtx")


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_value_that_is_not_finite_is_refused_with_file_and_entry(tmp_path, suffix, value):
    matrix = sparse.csc_array([[1.0, 0.0], [2.0, value]])
    path = tmp_path / f"m{suffix}"
    if suffix == ".npz":
        sparse.save_npz(path, matrix)
    else:
        scipy.io.savemat(path, {"A": matrix})
    message = re.escape(f"{path}: entry (2, 2) is {value}; values must be finite")
    with pytest.raises(MatrixError, match=message):
        files.read(path)


def test_duplicates_and_disorder_in_stored_csr_are_brought_in_order():
    rough = sparse.csr_array(([5.0, 1, 2, 4], [1, 0, 0, 1], [0, 3, 4]), shape=(2, 2))
    csr = canonical(rough, "rough")
    assert (csr.nnz, csr.toarray().tolist()) == (3, [[3, 5], [0, 4]])
    assert (csr @ np.ones(2)).tolist() == [8, 4]
    assert rough.nnz == 4  # the caller's own is not changed
