"""Matrices from files: one reader per suffix, one kind of error whatever is wrong with the file.

Nothing is extracted to disk and nothing is unpickled. A reader either returns what the file says or
raises a ``MatrixError`` that names it.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import re
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import MatReadError, matfile_version

from suite.matrices import matlab, matrix_market
from suite.matrices.base import INT32_MAX, MatrixError, MatrixSpec

FAMILY = "file"
HOLLOW_ROWS = 1 << 24  # beyond this many rows or columns,
HOLLOW_RATIO = 1000  # at most this many of them per entry
_REASON = 300  # characters of a library's message, which may quote the file

# What the libraries raise on damaged input, beside MatrixError, which passes.
_DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    OSError,
    MemoryError,
    RuntimeError,  # an encrypted archive, a compression that is not known
    SyntaxError,  # in a NumPy header, like the next
    tokenize.TokenError,
    struct.error,
    MatReadError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
)


def read(path: Path) -> sparse.csr_array:
    """Reads a sparse matrix: ``.mtx``, ``.mtx.gz``, ``.tar.gz``, ``.npz``, ``.mat`` or ``.smtx``.

    Args:
        path: The file; its suffix decides how it is read.

    Returns:
        M × N with float64 values; explicit zeros stay, duplicates are summed.

    Raises:
        MatrixError: No such file, unknown suffix, damaged, complex, not finite, or not exact in
            float64.
    """
    reader = _READERS[_suffix(path)]
    if not path.is_file():
        raise MatrixError(f"{path}: there is no such file")
    with _naming(path):
        matrix = reader(path)
        _refuse_complex(matrix, path)
        _refuse_hollow(matrix, path)
        csr = sparse.csr_array(_exact(matrix, path))
        _refuse_infinite(csr, path)
        return csr


def spec_for(path: Path) -> MatrixSpec:
    """The recipe that reads ``path``, named after the file without its suffix.

    Raises:
        MatrixError: The suffix is not known, or the file is not there.
    """
    suffix = _suffix(path)
    if not path.is_file():
        raise MatrixError(f"{path}: there is no such file")
    return MatrixSpec(
        name=safe_name(path.name[: -len(suffix)]),
        family=FAMILY,
        make=partial(read, path),
        params={"path": str(path)},
        source=str(path),
    )


def specs_in(folder: Path) -> list[MatrixSpec]:
    """The recipes of the matrix files directly in ``folder``, sorted; other files are passed over.

    Raises:
        MatrixError: There is none.
    """
    paths = sorted(path for path in folder.iterdir() if path.is_file() and is_matrix_file(path))
    if not paths:
        raise MatrixError(f"{folder}: holds no matrix file ({', '.join(_READERS)})")
    return [spec_for(path) for path in paths]


def is_matrix_file(path: Path) -> bool:
    """Whether the name ends in a suffix that ``read`` knows."""
    return path.name.lower().endswith(tuple(_READERS))


def safe_name(text: str) -> str:
    """``text`` with only letters, digits, ``-``, ``_`` and ``.``."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "matrix"


def _suffix(path: Path) -> str:
    lower = path.name.lower()
    for suffix in _READERS:
        if lower.endswith(suffix):
            return suffix
    raise MatrixError(f"{path}: not a known matrix file; known suffixes are {', '.join(_READERS)}")


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except MatrixError:
        raise
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:_REASON] or type(error).__name__
        raise MatrixError(f"{path}: damaged or truncated ({reason}); write it again") from error


def _refuse_complex(matrix: Any, path: Path) -> None:
    if np.issubdtype(matrix.dtype, np.complexfloating):
        raise MatrixError(
            f"{path}: complex values are not supported; give the matrix's real part or its modulus"
        )


def _refuse_hollow(matrix: Any, path: Path) -> None:
    """Refuses shapes whose row pointers would dwarf the entries: their size line is damaged."""
    rows, cols = matrix.shape
    if max(rows, cols) > INT32_MAX or max(rows, cols) > max(HOLLOW_ROWS, HOLLOW_RATIO * matrix.nnz):
        raise MatrixError(
            f"{path}: {rows} × {cols} with {matrix.nnz} entries; over {HOLLOW_ROWS} rows or columns"
            f" need an entry for each {HOLLOW_RATIO} of them: is the shape right?"
        )


def _refuse_infinite(csr: sparse.csr_array, path: Path) -> None:
    if not np.isfinite(csr.data).all():
        entries = csr.tocoo()
        at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        row, col = (int(axis[at]) + 1 for axis in entries.coords)
        raise MatrixError(
            f"{path}: entry ({row}, {col}) is {entries.data[at]}; values must be finite"
        )


def _exact(matrix: Any, path: Path) -> Any:
    """The matrix with float64 values.

    Raises:
        MatrixError: The values are not numbers, or an integer has no exact float64.
    """
    if matrix.dtype.kind not in "biuf":
        raise MatrixError(f"{path}: values of type {matrix.dtype} are not real numbers")
    converted = matrix.astype(np.float64)
    if matrix.dtype.kind in "iu":
        with np.errstate(invalid="ignore"):
            same = converted.data.astype(matrix.dtype) == matrix.data
        if not same.all():
            raise MatrixError(
                f"{path}: integer {matrix.data[~same][0]} has no exact float64; store it as a float"
            )
    return converted


def _read_mtx(path: Path) -> sparse.coo_array:
    with path.open("rb") as stream:
        return matrix_market.read(stream, str(path))


def _read_mtx_gz(path: Path) -> sparse.coo_array:
    with gzip.open(path, "rb") as stream:
        return matrix_market.read(cast(BinaryIO, stream), str(path))


def _read_tar_gz(path: Path) -> sparse.coo_array:
    """The archive's NAME/NAME.mtx; right-hand sides and coordinates beside it are passed over."""
    seen = []
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            member_path = Path(member.name)
            if not member.isfile() or member_path.suffix != ".mtx":
                continue
            seen.append(member.name)
            if member_path.stem in (member_path.parent.name, path.name[: -len(".tar.gz")]):
                stream = archive.extractfile(member)
                assert stream is not None  # it is a file
                return matrix_market.read(cast(BinaryIO, stream), f"{path}:{member.name}")
    found = f"only {', '.join(seen[:5])}" if seen else "no .mtx file"
    raise MatrixError(f"{path}: holds {found}; the matrix is expected as NAME/NAME.mtx")


def _read_npz(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        held = sum(member.file_size for member in archive.infolist())
    matlab.refuse_swollen(path, held, path.stat().st_size)
    return _checked(sparse.load_npz(path))


def _read_mat(path: Path) -> Any:
    """SuiteSparse's ``Problem.A`` with the zeros of ``Problem.Zeros``, or a sparse variable."""
    found: Mapping[str, Any]
    match matfile_version(path)[0]:
        case 0:  # version 4, which SciPy reads without native code
            found = loadmat(path, spmatrix=False)
        case 1:
            found = matlab.variables(path)
        case _:
            raise MatrixError(f"{path}: MATLAB 7.3 is not read; save it again with save -v7")
    problem = found.get("Problem")
    if isinstance(problem, Mapping) and problem.get("A") is not None:
        return _with_zeros(problem["A"], problem.get("Zeros"))
    names = [name for name, value in found.items() if sparse.issparse(value)]
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise MatrixError(f"{path}: expected Problem.A or one sparse variable, found {listed}")
    return _checked(found[names[0]])


def _with_zeros(matrix: Any, zeros: Any) -> Any:
    if zeros is None or getattr(zeros, "shape", None) != matrix.shape or not sparse.issparse(zeros):
        return matrix
    a, z = sparse.coo_array(matrix), sparse.coo_array(_checked(zeros))
    coords = tuple(np.concatenate(pair) for pair in zip(a.coords, z.coords, strict=True))
    return sparse.coo_array((np.concatenate((a.data, np.zeros(z.nnz))), coords), shape=a.shape)


def _checked(matrix: Any) -> Any:
    """The matrix, its indices held against its shape: SciPy trusts what a file says of them."""
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
    return matrix


def _read_smtx(path: Path) -> sparse.csr_array:
    """The text format of the Deep Learning Matrix Collection: a pattern, so values are 1."""
    lines = path.read_bytes().split(b"\n")
    if len(lines) < 3 or any(line.strip() for line in lines[3:]):
        raise MatrixError(f"{path}: expected the lines 'rows, cols, nnz', row offsets, columns")
    sizes = _integers(lines[0].replace(b",", b" "), path, 1)
    offsets, columns = _integers(lines[1], path, 2), _integers(lines[2], path, 3)
    if sizes.size != 3:
        raise MatrixError(f"{path}, line 1: expected 'rows, cols, nnz'")
    rows, cols, nnz = (int(size) for size in sizes)
    rising = offsets.size == rows + 1 and (np.diff(offsets) >= 0).all()
    if not rising or offsets[0] != 0 or offsets[-1] != nnz:
        raise MatrixError(f"{path}, line 2: expected {rows + 1} offsets that rise from 0 to {nnz}")
    if columns.size != nnz or (nnz and columns.max() >= cols):
        raise MatrixError(f"{path}, line 3: expected {nnz} column indices below {cols}")
    return sparse.csr_array((np.ones(nnz), columns, offsets), shape=(rows, cols))


def _integers(line: bytes, path: Path, number: int) -> np.ndarray:
    words = line.split()
    if not all(word.isdigit() and len(word) <= 18 for word in words):
        raise MatrixError(f"{path}, line {number}: expected integers and nothing else")
    return np.array(words, dtype="S18").astype(np.int64)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".mtx": _read_mtx,
    ".mtx.gz": _read_mtx_gz,
    ".tar.gz": _read_tar_gz,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".smtx": _read_smtx,
}
