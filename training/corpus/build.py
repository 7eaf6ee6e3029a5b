"""Builds the corpus: fetch, clean, keep each thing once, write with a data card.

Every step that takes long leaves its result in the folder, so the same command goes on where a
stopped one was, and a second run changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.harness.files import replacing
from training.corpus.card import Entry, as_json, as_markdown, digest, entry
from training.corpus.documents import Document, harvest, write_documents
from training.corpus.exclude import baselines
from training.corpus.fetch import fetch
from training.corpus.select import Selection
from training.corpus.sources import SPLITS, Source
from training.errors import TrainingError


@dataclass(frozen=True)
class Built:
    """The card of a corpus and the packages that could not be had, each with its reason."""

    card: dict[str, Any]
    missing: tuple[str, ...]


def build(
    sources: Sequence[Source],
    folder: Path,
    say: Callable[[str], None],
    get: Callable[[Source, Path], Path] = fetch,
) -> Built:
    """Builds ``train.parquet``, ``validation.parquet``, ``card.json`` and ``card.md``.

    Nothing is written while a package is missing: another corpus would look like this one.

    Args:
        sources: The packages; where two hold the same text the earlier one has it.
        folder: Where everything goes: archives, caches, corpus.
        say: Gets a line for each package.
        get: Fetches one package's archive to a folder.
    """
    archives: dict[Source, Path] = {}
    missing: list[str] = []
    for number, source in enumerate(sources, 1):
        try:
            archives[source] = get(source, folder / "archives")
        except TrainingError as error:
            missing.append(str(error))
        outcome = "fetched" if source in archives else missing[-1]
        say(f"[{number}/{len(sources)}] {source}: {outcome}")
    if missing:
        return Built({}, tuple(missing))
    selection = Selection(baselines())
    splits: dict[str, list[Document]] = {split: [] for split in SPLITS}
    entries: list[Entry] = []
    for number, (source, archive) in enumerate(archives.items(), 1):
        found = harvest(source, archive, folder / "packages")
        kept, left_out = selection.take(found.documents)
        entries.append(entry(source, kept, dict(Counter(found.left_out) + Counter(left_out))))
        splits[source.split] += kept
        say(f"[{number}/{len(sources)}] {_line(entries[-1])}")
    card = as_json(entries, {split: digest(documents) for split, documents in splits.items()})
    for split, documents in splits.items():
        write_documents(folder / f"{split}.parquet", documents, {})
    for name, text in (("card.json", json.dumps(card, indent=1)), ("card.md", as_markdown(card))):
        with replacing(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")
    return Built(card, ())


def _line(e: Entry) -> str:
    return (
        f"{e.name} {e.version}: {e.kept:,} of {e.files:,} files, {e.kept_bytes / 1e6:.2f} MB,"
        f" {e.kept_kernel_files:,} with kernels"
    )
