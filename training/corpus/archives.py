"""Reads CUDA source out of archives; nothing is unpacked to disk and nothing is run."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from training.errors import TrainingError

CUDA = frozenset({".cu", ".cuh"})
HEADERS = frozenset({".h", ".hpp", ".hxx", ".hh", ".inl", ".inc", ".ipp"})
SOURCES = frozenset({".c", ".cc", ".cpp", ".cxx"})
LARGEST = 2_000_000  # bytes; beyond are tables and generated instantiations
_DAMAGED = (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)
_AR_MAGIC = b"!<arch>\n"


@dataclass(frozen=True)
class Member:
    """One file of an archive: its path there and its bytes."""

    path: str
    data: bytes


def cuda_members(archive: Path) -> Iterator[Member]:
    """The CUDA files of an archive, in its order.

    Args:
        archive: A ``.tar.*``, ``.zip``, ``.whl`` or ``.deb``.

    Raises:
        TrainingError: It cannot be read.
    """
    try:
        for member in _members(archive):
            if _bears_cuda(member):
                yield member
    except (*_DAMAGED, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise TrainingError(f"{archive}: cannot be read ({first}); delete it and retry") from error


def _bears_cuda(member: Member) -> bool:
    """Some projects keep kernels in ``.c`` and ``.cpp``, and device functions in headers."""
    suffix = PurePosixPath(member.path).suffix
    if suffix in CUDA or b"__global__" in member.data:
        return True
    return suffix in HEADERS and b"__device__" in member.data


def _members(archive: Path) -> Iterator[Member]:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as whole:
            for entry in whole.infolist():
                if _wanted(entry.filename, entry.file_size):
                    yield Member(entry.filename, whole.read(entry))
    elif archive.suffix == ".deb":
        yield from _tar_members(io.BytesIO(_deb_data(archive.read_bytes())))
    else:
        with archive.open("rb") as stream:
            yield from _tar_members(stream)


def _tar_members(stream: IO[bytes]) -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r:*") as whole:
        for entry in whole:
            if entry.isreg() and _wanted(entry.name, entry.size):
                body = whole.extractfile(entry)
                if body is not None:
                    yield Member(entry.name.removeprefix("./"), body.read())


def _wanted(path: str, size: int) -> bool:
    return PurePosixPath(path).suffix in CUDA | HEADERS | SOURCES and 0 < size <= LARGEST


def _deb_data(data: bytes) -> bytes:
    """The ``data.tar`` of a Debian package, which is an ``ar`` archive."""
    if not data.startswith(_AR_MAGIC):
        raise ValueError("no ar archive")
    at = len(_AR_MAGIC)
    while at + 60 <= len(data):
        name, size = data[at : at + 16].decode("ascii").strip(), int(data[at + 48 : at + 58])
        if name.startswith("data.tar"):
            return data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise ValueError("no data.tar in it")
