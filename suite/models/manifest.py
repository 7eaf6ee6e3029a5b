"""``manifest.json``: what lies in a folder of weights, so that another or a damaged one is noticed.

Pure reading and checking; nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from suite.models.errors import ModelError
from suite.models.prompt import Encoding
from suite.models.sampler import SHOWN

NAME = "manifest.json"
SCHEMA = 1
KINDS = ("base", "adapter")


@dataclass(frozen=True)
class Manifest:
    """What a folder holds.

    Attributes:
        kind: ``base`` or ``adapter``.
        base: Fingerprint of the base model's weights (``policy.fingerprint``): its own for a base,
            of the one that it was trained on for an adapter.
        vocabulary: V, rows of the embedding table; coordinates begin there.
        encoding: How an adapter was taught to read nonzeros; a base may be used with either.
        shown: How many nonzeros it was shown.
        source: Where the weights come from, in words.
        files: SHA-256 of every file, by name.
    """

    kind: str
    base: str
    vocabulary: int
    encoding: str = Encoding.COORDINATES.value
    shown: int = SHOWN
    source: str = ""
    files: dict[str, str] = field(default_factory=dict)


def write(folder: Path, manifest: Manifest) -> Manifest:
    """Writes the manifest of a folder whose other files are complete.

    Returns:
        The manifest, with the digest of every file.
    """
    files = {path.name: digest(path) for path in sorted(folder.iterdir()) if path.name != NAME}
    complete = Manifest(**(asdict(manifest) | {"files": files}))
    text = json.dumps({"schema": SCHEMA, **asdict(complete)}, indent=1)
    (folder / NAME).write_text(f"{text}\n", encoding="utf-8")
    return complete


def read(folder: Path, kind: str) -> Manifest:
    """Reads a manifest and holds every file to it.

    Raises:
        ModelError: There is none, it is of another kind, or a file is missing or was changed.
    """
    path = folder / NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{folder}: has no {NAME}; it is not a folder of weights that this project wrote"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({error}); get the folder again") from error
    manifest = _parse(data, path)
    if manifest.kind != kind:
        raise ModelError(f"{folder}: holds {_a(manifest.kind)}, and {_a(kind)} is needed")
    _check_files(folder, manifest.files)
    return manifest


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parse(data: Any, path: Path) -> Manifest:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ModelError(f"{path}: is not of schema {SCHEMA}; update the project or the weights")
    known = {field.name for field in fields(Manifest)}
    wrong = sorted(known ^ (data.keys() - {"schema"}))
    if wrong:
        raise ModelError(f"{path}: {', '.join(wrong)}: missing or unknown; get the folder again")
    try:
        manifest = Manifest(**{name: data[name] for name in known})
        Encoding(manifest.encoding)
        sound = manifest.kind in KINDS and manifest.vocabulary > 0 and bool(manifest.files)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ModelError(f"{path}: holds values that make no sense; get the folder again")
    return manifest


def _check_files(folder: Path, files: dict[str, str]) -> None:
    wrong = list(_changed(folder, files))
    if wrong:
        raise ModelError(f"{folder}: {'; '.join(wrong)}; get the folder again, it is damaged")


def _changed(folder: Path, files: dict[str, str]) -> Iterable[str]:
    for name, expected in files.items():
        path = folder / name
        if Path(name).name != name:
            yield f"{name} is not the name of a file"
        elif not path.is_file():
            yield f"{name} is missing"
        elif digest(path) != expected:
            yield f"{name} is not what it was when it was saved ({path.stat().st_size} bytes)"


def _a(kind: str) -> str:
    return f"{'an' if kind == 'adapter' else 'a'} {kind}"
