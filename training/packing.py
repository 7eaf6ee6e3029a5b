"""Turns the corpus into one long row of tokens, chosen and ordered once and for all.

Documents follow each other with an end token after each. What has kernels comes first into the
budget, sparse code before the rest, then device headers; what was chosen is shuffled by a hash, so
that the order depends on nothing but the texts and the seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from suite.harness.files import replacing
from suite.models.manifest import digest as sha256
from training.errors import TrainingError

if TYPE_CHECKING:
    from training.corpus.documents import Document

SCHEMA = 1
META = "meta.json"
SPLITS = ("train", "validation")
Tokens = NDArray[np.uint16 | np.uint32]


@dataclass(frozen=True)
class Meta:
    """What a folder of packed tokens holds.

    Attributes:
        vocabulary: Ids are below this.
        end: Id that ends a document.
        tokenizer: Digest of the tokenizer's file, which lies in ``tokenizer/`` beside the tokens.
        corpus: Digest of the training texts that were chosen from.
        seed: Of the order.
        documents: Of each split.
        tokens: Of each split, end tokens included.
        text_bytes: Of each split's documents.
        sha256: Of each split's file.
        programs: Of the training documents, how many are prompts with programs of the teacher.
    """

    vocabulary: int
    end: int
    tokenizer: str
    corpus: str
    seed: int
    documents: dict[str, int]
    tokens: dict[str, int]
    text_bytes: dict[str, int]
    sha256: dict[str, str]
    programs: int = 0


def ranked(documents: Sequence[Document], seed: int) -> list[Document]:
    """The documents, most useful first; equally useful ones in the order of a hash."""
    return sorted(documents, key=lambda d: (not d.kernel, not d.sparse, _place(d, seed)))


def shuffled(documents: Sequence[Document], seed: int) -> list[Document]:
    """The documents in the order of a hash."""
    return sorted(documents, key=lambda d: _place(d, seed))


def _place(document: Document, seed: int) -> bytes:
    name = f"{seed}\0{document.package}\0{document.path}"
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def row(texts: Iterable[Sequence[int]], end: int, vocabulary: int) -> Tokens:
    """All ids in one array, with ``end`` after each text."""
    kind: type[np.uint16] | type[np.uint32] = np.uint16 if vocabulary <= 1 << 16 else np.uint32
    pieces = [np.array([*ids, end], dtype=kind) for ids in texts]
    tokens: Tokens = np.concatenate(pieces) if pieces else np.zeros(0, dtype=kind)
    return tokens


def write(folder: Path, rows: dict[str, Tokens], meta: Meta) -> Meta:
    """Writes the tokens, then ``meta.json`` with their digests, so that it vouches for them."""
    digests = {}
    for split, tokens in rows.items():
        with replacing(folder / f"{split}.npy") as draft, draft.open("wb") as stream:
            np.save(stream, tokens)
        digests[split] = sha256(folder / f"{split}.npy")
    complete = Meta(**{**asdict(meta), "sha256": digests})
    with replacing(folder / META) as draft:
        draft.write_text(f"{json.dumps({'schema': SCHEMA, **asdict(complete)}, indent=1)}\n")
    return complete


def read_meta(folder: Path) -> Meta:
    """What a folder says that it holds.

    Raises:
        TrainingError: It holds no packed tokens.
    """
    path = folder / META
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        return Meta(**data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"{path}: not packed tokens ({error}); make them with python -m training pack"
        ) from error


def read(folder: Path, split: str, meta: Meta) -> Tokens:
    """The tokens of a split, held to their digest.

    Raises:
        TrainingError: They are missing or not those of ``meta.json``.
    """
    path = folder / f"{split}.npy"
    if not path.is_file() or sha256(path) != meta.sha256[split]:
        raise TrainingError(
            f"{path}: missing or not what {META} says; make it again with python -m training pack"
        )
    tokens: Tokens = np.load(path, allow_pickle=False)
    return tokens
