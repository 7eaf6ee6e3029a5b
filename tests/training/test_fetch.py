import hashlib
import subprocess
from pathlib import Path

import pytest

from training.corpus import fetch as module
from training.corpus.fetch import fetch
from training.corpus.sources import Source
from training.errors import TrainingError

DATA = b"an archive"
RIGHT = hashlib.sha256(DATA).hexdigest()


def source(kind: str = "pypi-sdist", sha256: str = RIGHT) -> Source:
    return Source("pack", "1.0", kind, "trixie" if "deb" in kind else "", "MIT", "train", sha256)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the clients are asked; each puts its archive into the folder that it is run in."""
    asked: list[list[str]] = []

    def run(wanted: Source, command: list[str], folder: Path) -> None:
        asked.append([str(part) for part in command])
        if "update" not in command:
            (folder / "pack-1.0.tar.gz").write_bytes(DATA)

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    monkeypatch.setattr(module.shutil, "which", lambda name: name)
    monkeypatch.setattr(module, "_mirror", lambda wanted: "mirror")
    return asked


@pytest.mark.parametrize(
    ("kind", "client", "words"),
    [
        ("pypi-sdist", "unearth", ["--no-binary", "pack==1.0"]),
        ("pypi-wheel", "unearth", ["--only-binary", "pack==1.0"]),
        ("debian-source", "apt-get", ["source", "--tar-only", "pack=1.0"]),
        ("debian-binary", "apt-get", ["download", "pack=1.0"]),
    ],
)
def test_an_archive_is_fetched_once_by_the_ordinary_client(
    kind: str, client: str, words: list[str], tmp_path: Path, commands: list[list[str]]
) -> None:
    path = fetch(source(kind), tmp_path)
    assert path.read_bytes() == DATA
    assert client in commands[-1]
    assert not set(words) - set(commands[-1])
    before = len(commands)
    assert fetch(source(kind), tmp_path) == path
    assert len(commands) == before


def test_another_file_than_the_pinned_one_is_refused(
    tmp_path: Path, commands: list[list[str]]
) -> None:
    with pytest.raises(
        TrainingError, match=rf"pack 1\.0: .* has SHA-256 {RIGHT}, sources.csv says 00"
    ):
        fetch(source(sha256="0" * 64), tmp_path)
    assert not (tmp_path / "pack-1.0").exists()


def test_a_damaged_archive_and_a_stopped_download_are_fetched_anew(
    tmp_path: Path, commands: list[list[str]]
) -> None:
    fetch(source(), tmp_path).write_bytes(DATA[:3])
    (tmp_path / ".pack-1.0").mkdir()
    (tmp_path / ".pack-1.0" / "half.tar.gz").write_bytes(b"half")
    assert fetch(source(), tmp_path).read_bytes() == DATA
    assert len(commands) == 2


def test_a_client_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    done = subprocess.CompletedProcess([], 3, "", "chatter\nNo matches are found.\n")
    monkeypatch.setattr(module.subprocess, "run", lambda *a, **k: done)
    with pytest.raises(
        TrainingError, match=r"pack 1\.0: unearth ended with 3: No matches are found\."
    ):
        fetch(source(), tmp_path)


def test_a_missing_client_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(TrainingError, match="unearth is not installed: pip install"):
        fetch(source(), tmp_path)
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    with pytest.raises(TrainingError, match="--registries pypi"):
        fetch(source("debian-source"), tmp_path)
