"""Which of the harvested documents make the corpus: each thing once, and nothing of our own."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

from training.corpus.documents import Document
from training.corpus.exclude import Exclusion
from training.corpus.near import NearDuplicates, SeenLines

NOVEL = 0.3  # least share of a file in lines that no earlier file had
ALIKE = 0.7  # Jaccard similarity from which two files are the same


class Selection:
    """Takes packages one after another; earlier ones win over what resembles them.

    Because resemblance is looked for across all packages, whole packages can be put into one split
    and no text of the validation split has a near-duplicate in the other.

    Args:
        excluded: Texts that must not get in, by name.
    """

    def __init__(self, excluded: Mapping[str, str]) -> None:
        self._excluded = Exclusion(excluded)
        self._exact: set[bytes] = set()
        self._lines = SeenLines()
        self._near = NearDuplicates(ALIKE)

    def take(self, documents: tuple[Document, ...]) -> tuple[list[Document], dict[str, int]]:
        """Those that are new, and how many are not, by reason."""
        kept: list[Document] = []
        left_out: Counter[str] = Counter()
        for document in documents:
            reason = self._reason(document.text)
            if reason:
                left_out[reason] += 1
            else:
                kept.append(document)
        return kept, dict(sorted(left_out.items()))

    def _reason(self, text: str) -> str:
        digest = hashlib.sha256("".join(text.split()).encode()).digest()
        if digest in self._exact:
            return "exact duplicate"
        self._exact.add(digest)
        if self._lines.novelty(text) < NOVEL:
            return "mostly seen lines"
        if self._excluded.holds(text):
            return "holds a baseline"
        if self._near.add(text) is not None:
            return "near duplicate"
        self._lines.add(text)
        return ""
