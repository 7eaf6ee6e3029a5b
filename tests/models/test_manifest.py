"""A folder of weights that is damaged, incomplete or of another kind is noticed, and named."""

import json
from pathlib import Path

import pytest

from suite.models.errors import ModelError
from suite.models.manifest import NAME, Manifest, read, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "config.json").write_text("{}")
    write(tmp_path, Manifest("base", "abcd", 2048, source="test"))
    return tmp_path


def test_what_was_written_reads_back(folder: Path) -> None:
    found = read(folder, "base")
    assert (found.kind, found.base, found.vocabulary, found.source) == (
        "base",
        "abcd",
        2048,
        "test",
    )
    assert found.files.keys() == {"weights.bin", "config.json"}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:100]), r"not what it was .*100 bytes"),
    "tampered": (flip, r"weights.bin is not what it was"),
    "missing": (Path.unlink, r"weights.bin is missing"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_noticed(folder: Path, kind: str) -> None:
    harm, says = DAMAGE[kind]
    harm(folder / "weights.bin")
    with pytest.raises(ModelError, match=says):
        read(folder, "base")


def test_another_kind_and_no_manifest_are_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds a base, and an adapter is needed"):
        read(folder, "adapter")
    (folder / NAME).unlink()
    with pytest.raises(ModelError, match=f"has no {NAME}"):
        read(folder, "base")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": 2}, "is not of schema 1"),
        ({"shown": "many", "encoding": "smoke signals"}, "make no sense"),
        ({"vocabulary": -1}, "make no sense"),
        ({"files": {}}, "make no sense"),
        ({"colour": "red"}, "colour: missing or unknown"),
        ({"files": {"../weights.bin": "00"}}, "is not the name of a file"),
    ],
)
def test_a_manifest_that_makes_no_sense(folder: Path, change: dict, says: str) -> None:
    path = folder / NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=says):
        read(folder, "base")


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff"])
def test_a_manifest_that_is_no_json(folder: Path, text: str) -> None:
    (folder / NAME).write_bytes(text.encode("latin1"))
    with pytest.raises(ModelError, match=r"get the folder again|update the project"):
        read(folder, "base")
