"""Collection matrices come from the cache, or from the server whole, or not at all and soon."""

from __future__ import annotations

import http.server
import io
import socket
import sys
import tarfile
import threading
import time
from types import SimpleNamespace

import pytest

from suite.matrices import collection
from suite.matrices.base import MatrixError

TEXT = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 7\n"


def archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("tiny/tiny.mtx")
        info.size = len(TEXT)
        tar.addfile(info, io.BytesIO(TEXT))
    return out.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/MM/Good/tiny.tar.gz":
            self.answer(archive(), len(archive()))
        elif self.path == "/MM/Broken/tiny.tar.gz":
            self.answer(archive()[:50], len(archive()))
        else:
            self.send_error(404)

    def answer(self, body, length):
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


@pytest.fixture
def nobody():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_fetched_matrix_is_kept(tmp_path, server, nobody):
    matrix = collection.spec_for("Good/tiny", tmp_path, server).build()
    assert matrix.csr[1, 0] == 7
    assert (tmp_path / "Good" / "tiny.tar.gz").is_file()
    again = collection.spec_for("Good/tiny", tmp_path, nobody).build()
    assert again.digest == matrix.digest
    assert collection.spec_for("tiny", tmp_path, nobody).build().digest == matrix.digest


@pytest.mark.parametrize("name", ["tiny", "Any/tiny"])
def test_file_put_into_the_cache_by_hand_is_used(tmp_path, nobody, name):
    (tmp_path / "tiny.mtx").write_bytes(TEXT)
    assert collection.spec_for(name, tmp_path, nobody).build().csr.nnz == 1


@pytest.mark.parametrize("name", ["Good/tiny", "tiny"])
def test_offline_is_said_soon_with_what_to_do(tmp_path, nobody, name):
    begun = time.perf_counter()
    with pytest.raises(MatrixError) as caught:
        collection.spec_for(name, tmp_path, nobody).build()
    assert time.perf_counter() - begun < 6
    message = str(caught.value)
    assert "cannot be reached" in message
    assert str(tmp_path) in message
    assert "tiny.tar.gz" in message
    assert "\n" not in message


class Index:
    """Stands for ssgetpy, which cannot be imported offline."""

    def __init__(self, *full_names):
        self.matches = [SimpleNamespace(group=g, name=n) for g, n in full_names]

    def search(self, name, limit):
        return self.matches


def test_bare_name_is_completed_from_the_index(tmp_path, server, monkeypatch):
    index = Index(("Good", "tiny"), ("Good", "tiny_2"))
    monkeypatch.setitem(sys.modules, "ssgetpy", index)
    assert collection.spec_for("tiny", tmp_path, server).build().csr.nnz == 1


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (Index(("Good", "tiny"), ("Other", "tiny")), "Good/tiny, Other/tiny"),
        (Index(("Good", "tiny_2")), "not in the index"),
        (None, "index cannot be read"),
    ],
)
def test_bare_name_that_the_index_cannot_tell_is_refused(
    tmp_path, server, monkeypatch, index, says
):
    monkeypatch.setitem(sys.modules, "ssgetpy", index)
    with pytest.raises(MatrixError, match=rf"{says}.*GROUP/NAME"):
        collection.spec_for("tiny", tmp_path, server).build()


def test_unknown_matrix_is_named(tmp_path, server):
    with pytest.raises(MatrixError, match=r"404.*check the name"):
        collection.spec_for("Good/absent", tmp_path, server).build()


def test_broken_download_leaves_nothing_behind(tmp_path, server):
    with pytest.raises(MatrixError, match="Broken/tiny"):
        collection.spec_for("Broken/tiny", tmp_path, server).build()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_spec_names_its_matrix_and_fetches_nothing(tmp_path, nobody):
    spec = collection.spec_for("HB/bcsstk13", tmp_path, nobody)
    assert (spec.name, spec.params) == ("bcsstk13", {"name": "HB/bcsstk13"})
    assert list(tmp_path.iterdir()) == []
