"""Texts that models wrote, on disk: the likeliest program for a prompt follows from what is known.

A text is kept under a digest of all that it follows from, so that another prompt, other weights,
other code or other libraries are another text. Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from suite.harness.files import replacing
from suite.models.variants import NEEDED


@dataclass(frozen=True)
class Text:
    """What a model wrote.

    Attributes:
        text: Decoded.
        ended: Whether it came to an end within the limit.
    """

    text: str
    ended: bool


class Texts:
    """Texts by their key; a file for each.

    Args:
        folder: Made when the first one is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Text | None:
        """The text, None where there is none or its file is damaged."""
        try:
            found = json.loads(self._path(key).read_text("utf-8", "surrogatepass"))
            text = Text(found["text"], found["ended"])
            return text if found["digest"] == _digest(key, text) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, text: Text) -> None:
        """Keeps a text; where that is not possible, it will be written anew."""
        data = json.dumps({**asdict(text), "digest": _digest(key, text)})
        with suppress(OSError), replacing(self._path(key)) as draft:
            draft.write_text(data, "utf-8")

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def key(*follows_from: object) -> str:
    """Digest of what a text follows from, beside this project's code and the libraries used."""
    return _hash([_surroundings(), *map(repr, follows_from)])


def _digest(key: str, text: Text) -> str:
    return _hash([key, text.text, repr(text.ended)])


@cache
def _surroundings() -> str:
    code = [path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return _hash([*code, *map(_version, NEEDED)])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _hash(parts: Sequence[str]) -> str:
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        h.update(f"{len(encoded)}:".encode() + encoded)
    return h.hexdigest()
