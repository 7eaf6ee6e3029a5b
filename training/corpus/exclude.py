"""Keeps this project's own kernels out: a model that has read them would recite, not write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import suite.baselines
from training.corpus.near import Hashes, shingles

SHINGLE = 8  # tokens
LIMIT = 0.25  # share of a baseline's shingles from which a text counts as holding it
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def baselines() -> dict[str, str]:
    """The texts of the suite's baselines by name."""
    folder = Path(suite.baselines.__file__).parent
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.cu"))}


class Exclusion:
    """Finds given texts in larger ones, whatever their layout and comments.

    Args:
        texts: What must not be there, by name.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._known = {name: _code(text) for name, text in texts.items()}

    def holds(self, text: str) -> str:
        """Name of the first known text of which this one holds a good part; empty if of none."""
        mine = _code(text)
        for name, theirs in self._known.items():
            common = len(np.intersect1d(mine, theirs, assume_unique=True))
            if len(theirs) and common >= LIMIT * len(theirs):
                return name
        return ""


def _code(text: str) -> Hashes:
    return shingles(_COMMENT.sub(" ", text), SHINGLE)
