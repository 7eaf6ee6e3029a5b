"""Matrices of the SuiteSparse Matrix Collection by name, kept in a cache folder.

``GROUP/NAME`` is fetched directly. A bare ``NAME`` needs the collection's index, for which ssgetpy
is asked; it goes online when imported and waits without limit, so the server is tried first and
ssgetpy is imported last. Files are fetched here rather than by ssgetpy, which would leave half a
file behind when it is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sqlite3
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path

from scipy import sparse

from suite.matrices import files
from suite.matrices.base import MatrixError, MatrixSpec

FAMILY = "suitesparse"
SERVER = "https://sparse.tamu.edu"
CONNECT_SECONDS = 5.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)?")


def cache_folder() -> Path:
    """Where fetched matrices stay: ``suitesparse`` in the user's cache folder for this project."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("sparserl-bench")) / "suitesparse"


def spec_for(name: str, cache: Path | None = None, server: str = SERVER) -> MatrixSpec:
    """The recipe of a matrix of the collection; nothing is fetched before it is built.

    Args:
        name: ``GROUP/NAME`` or ``NAME``.
        cache: Folder of fetched files; ``cache_folder()`` when left out.
        server: Where to fetch from.

    Raises:
        MatrixError: ``name`` is not a name.
    """
    if not _NAME.fullmatch(name):
        raise MatrixError(f"{name!r} names no SuiteSparse matrix; write GROUP/NAME or NAME")
    folder = cache_folder() if cache is None else cache
    return MatrixSpec(
        name=files.safe_name(name.rpartition("/")[2]),
        family=FAMILY,
        make=partial(load, name, folder, server),
        params={"name": name},
        source=f"SuiteSparse Matrix Collection, {name}",
    )


def load(name: str, cache: Path, server: str = SERVER) -> sparse.csr_array:
    """Reads a matrix from the cache, fetching it first where it is not there.

    Raises:
        MatrixError: Not in the cache and not to be had from the server, or damaged.
    """
    path = cached(name, cache)
    if path is None:
        _reach(name, cache, server)
        path = _fetch(name if "/" in name else _full_name(name, cache), cache, server)
    return files.read(path)


def cached(name: str, cache: Path) -> Path | None:
    """The file of ``name`` in the cache, in its group's folder or beside the groups, or None."""
    group, _, short = name.rpartition("/")
    folders = [cache / group, cache] if group else [cache, *sorted(cache.glob("*/"))]
    for folder in folders:
        for suffix in (".tar.gz", ".mtx", ".mtx.gz", ".mat", ".npz"):
            if (path := folder / f"{short}{suffix}").is_file():
                return path
    return None


def _reach(name: str, cache: Path, server: str) -> None:
    """Tries the server for a few seconds, so that being offline is said soon and clearly."""
    address = urllib.parse.urlsplit(server)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise MatrixError(
            f"{name}: not in {cache}, and {address.hostname} cannot be reached ({error}); put"
            f" {_file(name)} there, or pass a path"
        ) from error


def _file(name: str) -> str:
    return f"{name if '/' in name else 'GROUP/' + name}.tar.gz"


def _full_name(name: str, cache: Path) -> str:
    """``GROUP/NAME`` of a bare name, from the collection's index."""
    try:
        import ssgetpy

        like = ssgetpy.search(name, limit=10_000)
        found = {f"{match.group}/{match.name}" for match in like if match.name == name}
    except (ImportError, OSError, LookupError, ValueError, sqlite3.Error) as error:
        # OSError includes what requests raises; LookupError an unset HOME.
        raise MatrixError(
            f"{name}: the collection's index cannot be read ({error}); write GROUP/NAME, or put"
            f" {_file(name)} in {cache}"
        ) from error
    if len(found) != 1:
        what = (
            f"is in several groups ({', '.join(sorted(found))})" if found else "is not in the index"
        )
        raise MatrixError(f"{name}: {what}; write GROUP/NAME")
    return found.pop()


def _fetch(name: str, cache: Path, server: str) -> Path:
    """Fetches an archive into the cache; another process sees all of it or nothing."""
    target = cache / f"{name}.tar.gz"
    target.parent.mkdir(parents=True, exist_ok=True)
    url = f"{server}/MM/{urllib.parse.quote(name)}.tar.gz"
    handle, partial_name = tempfile.mkstemp(dir=target.parent, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url, timeout=60) as response:
            expected = int(response.headers.get("Content-Length") or -1)
            received = 0
            while block := response.read(1 << 20):
                out.write(block)
                received += len(block)
        if expected not in (-1, received):
            raise MatrixError(
                f"{name}: {url} broke off at byte {received} of {expected}; try again"
            )
        os.replace(partial_name, target)
    except urllib.error.HTTPError as error:
        hint = "check the name" if error.code == 404 else "try again later"
        raise MatrixError(f"{name}: {url} answers {error.code} {error.reason}; {hint}") from error
    except OSError as error:
        raise MatrixError(f"{name}: fetching {url} failed ({error}); try again") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial_name)
    return target
