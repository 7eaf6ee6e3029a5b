"""Going on with a campaign that was killed: which one it is, and whether the ask is the same.

A campaign is resumed only where everything that decides its numbers is as it was: options,
matrices, authors' texts, the suite's sources, packages, device. Anything else is another campaign:
whatever differs is named and nothing is measured. What was measured is never measured again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import suite
from suite.author import Author
from suite.config import ConfigError, Requested, SuiteConfig
from suite.harness.device import DeviceFacts
from suite.journal import JournalError, Record, read
from suite.matrices.base import MatrixSpec
from suite.program import KernelProgram
from suite.provenance import packages
from suite.record import Ask, Row

LATEST = "latest"
OPTION = "--suite-resume"
_IDENTITY, _FINISHED = "identity.json", "finished"
_SOURCES = (".py", ".cu", ".h", ".hpp", ".cpp", ".json")
_COMPUTE = ("numpy", "scipy", "pyamg", "scikit-fem", "networkx", "torch", "transformers", "peft")
_PACKAGES = (*_COMPUTE, "cuda-", "nv", "pycuda")
_DEVICE = ("kind", "name", "arch", "multiprocessors", "memory_bytes", "driver", "compiler")


@dataclass(frozen=True)
class Before:
    """What an earlier run of the campaign has left.

    Attributes:
        record: Everything that it wrote down.
        identity: What it was asked, as ``identity`` had it.
    """

    record: Record
    identity: Mapping[str, Any]

    @property
    def answers(self) -> Mapping[str, Sequence[KernelProgram]]:
        """What authors of several answers wrote, by the ask, where all the texts are there."""
        texts = self.record.programs
        return {
            ask.key: [KernelProgram(ask.author, texts[d], at) for at, d in enumerate(digests)]
            for ask in self.record.asks
            if (digests := self.record.answers.get(ask.key)) and set(digests) <= texts.keys()
        }

    @property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        """The rows that were really measured, by their ask."""
        found: dict[str, list[Row]] = {}
        for row in self.record.rows:
            if not row.unanswered:
                found.setdefault(row.ask_key, []).append(row)
        return found

    def requested(self, now: Requested) -> Requested:
        """The options now, with the campaign's own where they were left out."""
        own = self.identity["requested"]
        given = {n: v for n, v in dataclasses.asdict(now).items() if v is not None}
        names = {field.name for field in dataclasses.fields(Requested)} - {"folder"}
        kept = {name: own.get(name) for name in names}
        return Requested(**{**kept, **given})


def identity(requested: Requested, config: SuiteConfig) -> dict[str, Any]:
    """What decides a campaign's numbers, as far as it is known before a device is opened."""
    return {
        "requested": dataclasses.asdict(dataclasses.replace(requested, folder=None)),
        "options": {
            "ops": list(config.ops),
            "device": config.device,
            "columns": list(config.columns),
            "samples": config.samples,
            "dtype": config.dtype.value,
            "sanitize": "on" if config.sanitizer else "off",
        },
        "matrices": {spec.name: _matrix(spec) for spec in config.matrices},
        "authors": {author.name: _author(author) for author in config.authors},
        "packages": {n: v for n, v in packages().items() if n.startswith(_PACKAGES)},
        "sources": sources(Path(suite.__file__).parent),
    }


def write_identity(folder: Path, known: Mapping[str, Any]) -> None:
    """Writes it down, before ``campaign.json``."""
    draft = folder / f"{_IDENTITY}.draft"
    draft.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    draft.replace(folder / _IDENTITY)


def finish(folder: Path) -> None:
    """Marks a campaign whose every answer is measured and on record."""
    (folder / _FINISHED).touch()


def find(folder: Path, name: str) -> Path:
    """The folder of the campaign to go on with.

    Args:
        folder: Where the campaigns are.
        name: Its name, or ``LATEST`` for the latest one that is unfinished.

    Raises:
        ConfigError: There is none, or it is finished.
    """
    if name == LATEST:
        for path in sorted(folder.glob(f"*/{_IDENTITY}"), reverse=True):
            if _is_campaign(path.parent) and not (path.parent / _FINISHED).exists():
                return path.parent
        raise ConfigError(
            f"{OPTION}: no unfinished campaign in {folder}; leave the option out to start one"
        )
    path = folder / name
    if not _is_campaign(path):
        known = [p.parent.name for p in sorted(folder.glob("*/campaign.json"))[-3:]]
        last = f"; the last ones are {', '.join(known)}" if known else ""
        raise ConfigError(f"{OPTION}: no campaign {name!r} in {folder}{last}")
    if (path / _FINISHED).exists():
        raise ConfigError(f"{OPTION}: campaign {name} is finished; leave the option out")
    if not (path / _IDENTITY).exists():
        raise ConfigError(
            f"{OPTION}: campaign {name} was made by a version that could not resume; measure anew"
        )
    return path


def load(folder: Path) -> Before:
    """What is there of a campaign.

    Raises:
        ConfigError: It cannot be read.
    """
    path = folder / _IDENTITY
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{OPTION}: {path}: {error}; measure anew") from error
    try:
        record = read(folder)
    except (OSError, ValueError, JournalError) as error:
        raise ConfigError(f"{OPTION}: {error}") from error
    if record.campaign != folder.name:
        raise ConfigError(
            f"{OPTION}: {folder} holds campaign {record.campaign}; rename the folder to that"
        )
    return Before(record, known)


def check_same(before: Before, now: Mapping[str, Any]) -> None:
    """Makes sure that the same is asked.

    Raises:
        ConfigError: One line for each thing that has changed.
    """
    name = before.record.campaign
    found = list(_differences(before.identity, now))
    if before.identity.get("sources") != now["sources"]:
        commit = before.record.facts.get("commit", "unknown")
        found.append(f"the suite's sources (then at commit {commit}): go back to them")
    if found:
        lines = [f"{OPTION}: campaign {name} was asked something else: {text}" for text in found]
        raise ConfigError("\n".join([*lines, f"{OPTION}: or leave it out, and start anew"]))


def check_device(before: Before, device: DeviceFacts) -> None:
    """Makes sure that the device is the same kind of device.

    Raises:
        ConfigError: With what differs.
    """
    then, now = before.record.facts.get("device", {}), dataclasses.asdict(device)
    flat = [{**facts, **facts.get("details", {})} for facts in (then, now)]
    changed = [
        f"{what} {flat[0].get(what)} then, {flat[1].get(what)} now"
        for what in _DEVICE
        if flat[0].get(what) != flat[1].get(what)
    ]
    if changed:
        raise ConfigError(
            f"{OPTION}: campaign {before.record.campaign} was measured on another device"
            f" ({'; '.join(changed)}); go back to it, or start anew without {OPTION}"
        )


def check_asks(before: Before, asks: Iterable[Ask]) -> None:
    """Makes sure that the same items were collected; where none is on record, any will do.

    Raises:
        ConfigError: With examples of what is missing or new.
    """
    then, now = {ask.key for ask in before.record.asks}, {ask.key for ask in asks}
    if not then or then == now:
        return
    parts = [
        f"{len(keys)} {what}, {min(keys)} for one"
        for keys, what in ((then - now, "are not collected now"), (now - then, "are new"))
        if keys
    ]
    raise ConfigError(
        f"{OPTION}: campaign {before.record.campaign} asked {len(then)} things, of which"
        f" {' and '.join(parts)}; give the same paths and the same -k"
    )


def resumed(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a campaign that goes on: its first run's, and when and how it went on."""
    again = {name: now[name] for name in ("started", "command", "commit", "dirty")}
    return {**then, "resumed": [*then.get("resumed", []), again]}


def sources(folder: Path) -> str:
    """Digest of every source file below a folder."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in folder.rglob("*") if p.suffix in _SOURCES):
        for part in (str(path.relative_to(folder)).encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def _is_campaign(folder: Path) -> bool:
    return (folder / "campaign.json").is_file()


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    titles = {"options": "--suite-", "matrices": "matrix ", "authors": "author ", "packages": ""}
    for part, title in titles.items():
        mine, theirs = then.get(part, {}), now[part]
        for name in dict.fromkeys([*mine, *theirs]):
            if name not in theirs:
                yield f"{title}{name} is gone"
            elif name not in mine:
                yield f"{title}{name} is new"
            elif mine[name] != theirs[name]:
                values = f" from {mine[name]} to {theirs[name]}"
                shown = values if part in ("options", "packages") else ""
                yield f"{title}{name} has changed{shown}"


def _matrix(spec: MatrixSpec) -> str:
    """Digest of a recipe; of a file, with its contents."""
    known = (spec.name, spec.family, sorted(spec.params.items()), spec.source)
    digest = hashlib.blake2b(repr(known).encode("utf-8", "surrogatepass"), digest_size=16)
    if "path" in spec.params:
        try:
            with Path(str(spec.params["path"])).open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError:
            return "unreadable"  # which is said, with more words, when it is read
    return digest.hexdigest()


def _author(author: Author) -> str:
    """Kind and, of authors that say it, what else distinguishes them."""
    return f"{author.kind} {getattr(author, 'fingerprint', '')}".strip()
