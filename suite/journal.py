"""Measurements on disk as they are made, so that nothing that was measured is lost.

A campaign is a folder. Every process appends to files of its own, one JSON object a line, so
processes never wait for each other and a process that dies loses at most its last line:

    .suite/<campaign>/campaign.json       who, where, with what
                      asked-<process>.jsonl
                      answers-<process>.jsonl   which programs, where an author wrote several
                      rows-<process>.jsonl
                      programs/<digest>.cu

Lines survive the death of the process at once, and that of the host as soon as it has written its
cache.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from suite.record import Ask, RecordError, Row, complete

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9._-]+")
UNFINISHED = "not measured: the run stopped, or the process that measured it died; run it again"


class JournalError(RuntimeError):
    """The journal cannot be written or read; the message is one line."""


@dataclass(frozen=True)
class Record:
    """A campaign read back.

    Attributes:
        campaign: Its identifier, as ``campaign.json`` has it: the folder may have been renamed.
        facts: What ``campaign.json`` holds.
        asks: What was asked.
        rows: One for each answer asked for, in the order asked.
        unanswered: How many of them had to be made up because no verdict was written.
        programs: Program texts by digest.
        answers: Digests of the programs of an ask with several, by the ask's key, in order.
    """

    campaign: str
    facts: Mapping[str, Any]
    asks: tuple[Ask, ...]
    rows: tuple[Row, ...]
    unanswered: int
    programs: Mapping[str, str]
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Journal:
    """The writing end, for one process.

    Args:
        folder: The campaign's folder; made when it is not there.
        process: Distinguishes the processes of one campaign.

    Raises:
        JournalError: The folder cannot be written.
    """

    def __init__(self, folder: Path, process: str) -> None:
        self.folder = folder
        self._process = process
        self._files: dict[str, FileIO] = {}
        self._written: set[str] = set()
        with _one_line(folder):
            (folder / "programs").mkdir(parents=True, exist_ok=True)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Writes ``campaign.json``, whole or not at all."""
        target = self.folder / "campaign.json"
        self._replace(target, json.dumps(facts, indent=1, allow_nan=False) + "\n")

    def asked(self, asks: Iterable[Ask]) -> None:
        """Writes down what will be asked, before it is; whole or not at all."""
        self._replace(
            self.folder / f"asked-{self._process}.jsonl", _json_lines(a.to_dict() for a in asks)
        )

    def answered(self, ask: Ask, digests: Sequence[str]) -> None:
        """Writes down which programs an author wrote, once their texts are kept."""
        self._append("answers", [{"ask": ask.key, "digests": list(digests)}])

    def add(self, row: Row) -> None:
        """Writes one row."""
        self._append("rows", [row.to_dict()])

    def program(self, digest: str, text: str) -> None:
        """Keeps a program's text, once; a library call has none."""
        if not text or digest in self._written:
            return
        self._written.add(digest)
        self._replace(self.folder / "programs" / f"{digest}.cu", text)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _append(self, what: str, items: Iterable[Mapping[str, Any]]) -> None:
        with _one_line(self.folder):
            if what not in self._files:
                path = self.folder / f"{what}-{self._process}.jsonl"
                _mend(path)
                self._files[what] = path.open("ab", buffering=0)
            rest = memoryview(_json_lines(items).encode())
            while rest:  # a disk that fills up takes a part first
                rest = rest[self._files[what].write(rest) :]

    def _replace(self, target: Path, text: str) -> None:
        with _one_line(self.folder):
            draft = target.with_name(f"{target.name}.{self._process}.draft")
            draft.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            os.replace(draft, target)


def _json_lines(items: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(item, allow_nan=False) + "\n" for item in items)


def _mend(path: Path) -> None:
    """Takes off what a process that died in the middle of a line has left of it."""
    if not path.is_file():
        return
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end == len(data):
        return
    try:
        _object(data[end:].decode("utf-8", "replace"), str(path))
    except JournalError:
        os.truncate(path, end)
    else:  # only the newline is missing, and ``read`` takes the line
        with path.open("ab") as file:
            file.write(b"\n")


def read(folder: Path) -> Record:
    """Reads a campaign, whatever state its processes left it in.

    Raises:
        JournalError: The folder is no campaign, or something in it other than the last line of a
            file is unreadable.
    """
    if not (folder / "campaign.json").is_file():
        raise JournalError(
            f"{folder}: no campaign.json here; give the folder of one campaign, .suite/<id>"
        )
    with _one_line(folder):
        facts = _facts(folder / "campaign.json")
        programs = {path.stem: _text(path) for path in sorted((folder / "programs").glob("*.cu"))}
        asks = [_parsed(Ask.from_dict, *line) for line in _lines(folder, "asked")]
        rows = [_parsed(Row.from_dict, *line) for line in _lines(folder, "rows")]
        answers = dict(_parsed(_answers, *line) for line in _lines(folder, "answers"))
    name = facts.get("campaign", folder.name)
    whole = complete(name, asks, rows, UNFINISHED)
    unanswered = sum(row.unanswered for row in whole)
    unique = {ask.key: ask for ask in asks}  # every worker writes them all down
    return Record(name, facts, tuple(unique.values()), tuple(whole), unanswered, programs, answers)


def _answers(item: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    match item:
        case {"ask": str(ask), "digests": [*digests]} if all(isinstance(d, str) for d in digests):
            return ask, tuple(digests)
    raise RecordError(f"unreadable answers: {str(item)[:40]!r}")


def _facts(path: Path) -> dict[str, Any]:
    facts = _object(_text(path), str(path))
    name = facts.get("campaign", path.parent.name)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise JournalError(
            f"{path}: {name!r} is no campaign's name; letters, digits, '.', '_' and '-' only"
        )
    for part in ("device", "options"):
        if not isinstance(facts.get(part, {}), dict):
            raise JournalError(f"{path}: {part} is {facts[part]!r}, not an object")
    return facts


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        item = json.loads(text)
    except ValueError as error:
        raise JournalError(f"{where}: {error}") from error
    if not isinstance(item, dict):
        raise JournalError(f"{where}: expected a JSON object, not {text.strip()[:40]!r}")
    return item


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise JournalError(f"{path}: byte {error.start} is not UTF-8; restore the file") from error


def _parsed(parse: Callable[[Mapping[str, Any]], T], where: str, item: dict[str, Any]) -> T:
    try:
        return parse(item)
    except RecordError as error:
        raise JournalError(f"{where}: {error}") from error


def _lines(folder: Path, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of the ``what`` files with its place; a torn last line is passed over."""
    for path in sorted(folder.glob(f"{what}-*.jsonl")):
        lines = _text(path).split("\n")
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            where = f"{path}:{number}"
            try:
                item = _object(line, where)
            except JournalError:
                if number == len(lines):  # the only line without its newline
                    continue
                raise
            yield where, item


@contextmanager
def _one_line(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise JournalError(
            f"{where}: {error.strerror or error}; free space or give another folder"
            " with --suite-folder"
        ) from error
