import json
from pathlib import Path

import pytest

from tests.training.archives import kernel, tar, write
from training.corpus import build as module
from training.corpus.build import Built, build
from training.corpus.documents import read_documents
from training.corpus.exclude import baselines
from training.corpus.sources import Source
from training.errors import TrainingError


def source(name: str, split: str = "train") -> Source:
    return Source(name, "1.0", "pypi-sdist", "", "MIT", split, "")


PACKAGES = {
    source("first"): {
        "b.cu": kernel("b"),
        "a.cu": kernel("a"),
        "copy.cu": kernel("a") + "\n\n",
        "gpl.cu": "// GNU General Public License\n" + kernel("gpl"),
        "ours.cu": next(iter(baselines().values())),
    },
    source("second", "validation"): {
        "again.cu": kernel("a").replace("a_offset[3]", "a_offset[33]"),
        "csr.cu": kernel("csr_rows", "  int r = row_ptr[0];"),
    },
}


def get(wanted: Source, folder: Path) -> Path:
    return write(folder / f"{wanted.name}.tar.gz", tar(PACKAGES[wanted]))


def run(folder: Path) -> Built:
    return build(tuple(PACKAGES), folder, lambda line: None, get)


def test_each_text_gets_in_once_and_the_card_counts_the_rest(tmp_path: Path) -> None:
    card = run(tmp_path).card
    train = read_documents(tmp_path / "train.parquet")
    assert [d.path for d in train] == ["a.cu", "b.cu"]
    assert [d.path for d in read_documents(tmp_path / "validation.parquet")] == ["csr.cu"]
    assert train[0].kernel
    assert not train[0].sparse
    assert card["packages"][0]["left_out"] == {
        "copyleft": 1,
        "exact duplicate": 1,
        "holds a baseline": 1,
    }
    assert card["packages"][0]["files"] == 5
    assert card["packages"][1]["left_out"] == {"mostly seen lines": 1}
    assert card["splits"]["validation"]["sparse_files"] == 1
    assert card == json.loads((tmp_path / "card.json").read_text())
    assert (
        "| first | 1.0 | pypi-sdist | MIT | train | 5 | 2 |" in (tmp_path / "card.md").read_text()
    )


def test_a_second_run_cleans_nothing_and_writes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path)
    before = (tmp_path / "train.parquet").read_bytes()
    monkeypatch.setattr("training.corpus.documents.cuda_members", None)
    assert run(tmp_path) == first
    assert (tmp_path / "train.parquet").read_bytes() == before


def test_another_folder_gets_the_same_corpus(tmp_path: Path) -> None:
    assert run(tmp_path / "a").card == run(tmp_path / "b").card


def test_nothing_is_written_while_a_package_is_missing(tmp_path: Path) -> None:
    def broken(wanted: Source, folder: Path) -> Path:
        if wanted.name == "second":
            raise TrainingError("second 1.0: not served")
        return get(wanted, folder)

    built = build(tuple(PACKAGES), tmp_path, lambda line: None, broken)
    assert built.missing == ("second 1.0: not served",)
    assert not (tmp_path / "card.json").exists()
    assert module.fetch is not broken
