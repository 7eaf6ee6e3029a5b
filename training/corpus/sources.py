"""Which packages the corpus is made of: the table ``sources.csv`` beside this file."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from training.errors import ConfigError

TABLE = Path(__file__).with_name("sources.csv")
KINDS = ("pypi-sdist", "pypi-wheel", "debian-binary", "debian-source")
SPLITS = ("train", "validation")
LICENCES = frozenset(
    {
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "MIT",
        "Apache-2.0 WITH LLVM-exception",
    }
)
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True)
class Source:
    """One package, pinned.

    Attributes:
        name: Its name in the registry.
        version: The version; another one is never taken instead.
        kind: Which registry and which form, one of ``KINDS``.
        suite: Debian's release that has the version; empty for the others.
        licence: SPDX expression of permissive licences.
        split: Where all of its files go, ``train`` or ``validation``.
        sha256: Digest of the archive; empty in a table that is being made.
    """

    name: str
    version: str
    kind: str
    suite: str
    licence: str
    split: str
    sha256: str

    @property
    def debian(self) -> bool:
        """Whether it comes from Debian rather than PyPI."""
        return self.kind.startswith("debian")

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def read_sources(table: Path = TABLE) -> tuple[Source, ...]:
    """The packages of a table, in its order: earlier ones win over their near-duplicates.

    Raises:
        ConfigError: Lists every mistake in the table.
    """
    names = [f.name for f in fields(Source)]
    try:
        with table.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            if reader.fieldnames != names:
                raise ConfigError([f"{table}: columns must be {','.join(names)}"])
            rows = list(reader)
    except OSError as error:
        raise ConfigError([f"{table}: {error.strerror or error}"]) from error
    sources: list[Source] = []
    mistakes: list[str] = []
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            mistakes.append(f"{table}:{line}: {len(names)} columns are needed")
            continue
        source = Source(**row)
        mistakes += [f"{table}:{line}: {m}" for m in _mistakes(source, sources)]
        sources.append(source)
    if mistakes:
        raise ConfigError(mistakes)
    return tuple(sources)


def _mistakes(source: Source, before: Sequence[Source]) -> list[str]:
    checks = {
        f"bad package name {source.name!r}": _NAME.fullmatch(source.name),
        "no version": source.version,
        f"kind {source.kind!r}: one of {', '.join(KINDS)}": source.kind in KINDS,
        "a Debian package needs its release, no other has one": source.debian == bool(source.suite),
        f"licence {source.licence!r}: only {', '.join(sorted(LICENCES))}": permissive(
            source.licence
        ),
        f"split {source.split!r}: one of {', '.join(SPLITS)}": source.split in SPLITS,
        "sha256 must be 64 hex digits": re.fullmatch(r"([0-9a-f]{64})?", source.sha256),
        f"{source} is listed twice": not any(
            (s.name, s.version, s.kind) == (source.name, source.version, source.kind)
            for s in before
        ),
    }
    return [text for text, right in checks.items() if not right]


def permissive(expression: str) -> bool:
    """Whether every licence that an SPDX expression names is one of ``LICENCES``."""
    parts = re.split(r"\s+(?:AND|OR)\s+", expression.strip())
    return all(part in LICENCES for part in parts)
