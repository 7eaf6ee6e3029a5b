"""The files of one package as cleaned documents, and how documents lie on disk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from suite.harness.files import replacing
from training.corpus.archives import cuda_members
from training.corpus.clean import VERSION, clean
from training.corpus.licences import refused
from training.corpus.sources import Source

_KERNEL = re.compile(r"\b__global__\b")
_SPARSE = re.compile(
    r"\b(?:csr|coo|bsr|ell|sell|spmv|spmm|row_?(?:ptr|offsets?)|col_?ind\w*)\b", re.I
)
COLUMNS = ("package", "path", "kernel", "sparse", "text")


@dataclass(frozen=True)
class Document:
    """One file of the corpus.

    Attributes:
        package: Name and version of the package that it is from.
        path: Where it lies in the archive.
        kernel: Whether it has a ``__global__`` function.
        sparse: Whether it speaks of sparse storage.
        text: What the model reads.
    """

    package: str
    path: str
    kernel: bool
    sparse: bool
    text: str


@dataclass(frozen=True)
class Harvest:
    """What one archive gave: documents, and how many files were left out for which reason."""

    documents: tuple[Document, ...]
    left_out: dict[str, int]


def harvest(source: Source, archive: Path, cache: Path) -> Harvest:
    """Reads and cleans an archive, or takes that from the cache of an earlier run."""
    kept = (
        cache
        / f"{source.name}-{source.version}-{source.sha256[:12] or 'unpinned'}-{VERSION}.parquet"
    )
    if kept.exists():
        return _read_harvest(kept)
    documents: list[Document] = []
    left_out: Counter[str] = Counter()
    for member in sorted(cuda_members(archive), key=lambda m: m.path):
        reason = refused(member.data.decode("utf-8", errors="replace"))
        cleaned = clean(member.data)
        if reason or cleaned.reason:
            left_out[reason or cleaned.reason] += 1
            continue
        text = cleaned.text
        facts = bool(_KERNEL.search(text)), bool(_SPARSE.search(text))
        documents.append(Document(str(source), member.path, *facts, text))
    result = Harvest(tuple(documents), dict(sorted(left_out.items())))
    write_documents(kept, result.documents, {f"left out: {k}": v for k, v in left_out.items()})
    return result


def write_documents(path: Path, documents: Sequence[Document], facts: dict[str, int]) -> None:
    """Writes documents as Parquet, whole or not at all."""
    columns = {name: [getattr(d, name) for d in documents] for name in COLUMNS}
    types = [pa.string(), pa.string(), pa.bool_(), pa.bool_(), pa.string()]
    schema = pa.schema(
        list(zip(COLUMNS, types, strict=True)),
        metadata={k: str(v) for k, v in sorted(facts.items())},
    )
    with replacing(path) as draft:
        pq.write_table(pa.table(columns, schema=schema), draft, compression="zstd")


def read_documents(path: Path) -> tuple[Document, ...]:
    """Reads documents that were written here."""
    rows = pq.read_table(path, columns=list(COLUMNS)).to_pylist()
    return tuple(Document(**row) for row in rows)


def _read_harvest(path: Path) -> Harvest:
    facts = pq.read_schema(path).metadata or {}
    left_out = {
        key.decode().removeprefix("left out: "): int(value)
        for key, value in facts.items()
        if key.startswith(b"left out: ")
    }
    return Harvest(read_documents(path), dict(sorted(left_out.items())))
