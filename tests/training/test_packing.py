import random
from pathlib import Path

import numpy as np
import pytest

from training import packing
from training.corpus.documents import Document
from training.errors import TrainingError

META = packing.Meta(
    vocabulary=300,
    end=1,
    tokenizer="t",
    corpus="c",
    seed=0,
    documents={"train": 2, "validation": 1},
    tokens={"train": 5, "validation": 2},
    text_bytes={"train": 9, "validation": 3},
    sha256={},
)


def documents() -> list[Document]:
    return [Document("p 1", f"{i}.cu", i % 2 == 0, i % 3 == 0, f"text {i}") for i in range(30)]


def test_kernels_come_first_and_sparse_ones_before_the_rest() -> None:
    found = [(d.kernel, d.sparse) for d in packing.ranked(documents(), 0)]
    assert found == sorted(found, reverse=True)


def test_the_order_depends_on_seed_and_documents_alone() -> None:
    mixed = documents()
    random.Random(1).shuffle(mixed)
    assert packing.shuffled(mixed, 0) == packing.shuffled(documents(), 0)
    assert packing.ranked(mixed, 0) == packing.ranked(documents(), 0)
    assert packing.shuffled(mixed, 1) != packing.shuffled(documents(), 0)


def test_an_end_follows_every_text() -> None:
    row = packing.row([[5, 6], [], [7]], 1, 300)
    assert row.tolist() == [5, 6, 1, 1, 7, 1]
    assert row.dtype == np.uint16
    assert packing.row([[70_000]], 1, 100_000).tolist() == [70_000, 1]


def test_what_was_written_is_read_and_a_changed_file_is_noticed(tmp_path: Path) -> None:
    rows = {"train": packing.row([[5, 6], [7]], 1, 300), "validation": packing.row([[8]], 1, 300)}
    written = packing.write(tmp_path, rows, META)
    assert packing.read_meta(tmp_path) == written
    assert packing.read(tmp_path, "train", written).tolist() == [5, 6, 1, 7, 1]
    data = (tmp_path / "train.npy").read_bytes()
    (tmp_path / "train.npy").write_bytes(data[:-1] + b"\x09")
    with pytest.raises(TrainingError, match=r"train\.npy: missing or not what meta\.json says"):
        packing.read(tmp_path, "train", written)
    (tmp_path / "train.npy").unlink()
    with pytest.raises(TrainingError, match="missing"):
        packing.read(tmp_path, "train", written)


@pytest.mark.parametrize("text", [None, "", "{}", '{"schema": 9}', '{"schema": 1}', "[]"])
def test_a_folder_that_holds_no_tokens_is_named(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "meta.json").write_text(text)
    with pytest.raises(TrainingError, match=r"meta\.json: not packed tokens"):
        packing.read_meta(tmp_path)
