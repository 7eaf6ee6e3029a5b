"""The data card: what is in the corpus, from where, under which licences, and what was left out."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from training.corpus.documents import Document
from training.corpus.sources import SPLITS, Source


@dataclass(frozen=True)
class Entry:
    """One package's line of the card; ``files`` were read, ``kept`` are in the corpus."""

    name: str
    version: str
    kind: str
    licence: str
    split: str
    sha256: str
    files: int
    kept: int
    kept_kernel_files: int
    kept_sparse_files: int
    kept_bytes: int
    left_out: dict[str, int]


def entry(source: Source, kept: Sequence[Document], left_out: dict[str, int]) -> Entry:
    """The line of a package."""
    return Entry(
        name=source.name,
        version=source.version,
        kind=source.kind,
        licence=source.licence,
        split=source.split,
        sha256=source.sha256,
        files=len(kept) + sum(left_out.values()),
        kept=len(kept),
        kept_kernel_files=sum(d.kernel for d in kept),
        kept_sparse_files=sum(d.sparse for d in kept),
        kept_bytes=sum(len(d.text) for d in kept),
        left_out=left_out,
    )


def digest(documents: Sequence[Document]) -> str:
    """SHA-256 over all texts in order: equal for equal corpora."""
    whole = hashlib.sha256()
    for document in documents:
        whole.update(f"{document.package}\0{document.path}\0{document.text}\0".encode())
    return whole.hexdigest()


def as_json(entries: Sequence[Entry], digests: dict[str, str]) -> dict[str, Any]:
    """The card as plain values."""
    return {
        "schema": 1,
        "splits": {
            split: {**_totals([e for e in entries if e.split == split]), "sha256": digests[split]}
            for split in SPLITS
        },
        "left_out": _left_out(entries),
        "packages": [asdict(e) for e in entries],
    }


def as_markdown(card: dict[str, Any]) -> str:
    """The card for a person."""
    lines = ["# CUDA source corpus", ""]
    lines += ["| split | packages | files | with kernels | sparse | MB |", "| --- " * 6 + "|"]
    lines += [
        f"| {split} | {t['packages']} | {t['files']:,} | {t['kernel_files']:,} |"
        f" {t['sparse_files']:,} | {t['bytes'] / 1e6:.1f} |"
        for split, t in card["splits"].items()
    ]
    lines += ["", "| left out | files |", "| --- | --- |"]
    lines += [f"| {reason} | {count:,} |" for reason, count in card["left_out"].items()]
    lines += [
        "",
        "| package | version | from | licence | split | read | kept | with kernels | MB |",
    ]
    lines += ["| --- " * 9 + "|"]
    lines += [
        f"| {p['name']} | {p['version']} | {p['kind']} | {p['licence']} | {p['split']} |"
        f" {p['files']:,} | {p['kept']:,} | {p['kept_kernel_files']:,} |"
        f" {p['kept_bytes'] / 1e6:.2f} |"
        for p in card["packages"]
    ]
    return "\n".join(lines) + "\n"


def _totals(entries: Sequence[Entry]) -> dict[str, int]:
    return {
        "packages": sum(e.kept > 0 for e in entries),
        "files": sum(e.kept for e in entries),
        "kernel_files": sum(e.kept_kernel_files for e in entries),
        "sparse_files": sum(e.kept_sparse_files for e in entries),
        "bytes": sum(e.kept_bytes for e in entries),
    }


def _left_out(entries: Sequence[Entry]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for e in entries:
        total.update(e.left_out)
    return dict(total.most_common())
