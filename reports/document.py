"""What a report consists of, before anyone decides whether it becomes HTML, PDF, LaTeX or Markdown.

Text is plain with two marks: ``code`` between backticks and strong words between ``**``. Every
renderer draws the same objects, so no two outputs can disagree on a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Style = Literal["plain", "code", "strong"]
_MARKS = re.compile(r"`([^`\n]+)`|\*\*(.+?)\*\*")


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        name: Of its file; letters, digits and ``-``.
        caption: What it shows, in a sentence.
        headings: Of its columns.
        rows: As many cells each as there are headings; cells that are empty have no value.
        align: ``l`` or ``r`` for each column; columns beyond it hold numbers, on the right.
        runs: For each row the MLflow run that its numbers lie in; empty where that is no one run.
        rules: Rows with a line above them.
        note: What a reader must know to read it.
    """

    name: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str = "l"
    runs: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(
                    f"table {self.name}: a row of {len(row)} cells under {len(self.headings)}"
                )

    @property
    def sides(self) -> str:
        """``l`` or ``r`` for every column."""
        return self.align.ljust(len(self.headings), "r")

    @property
    def named(self) -> int:
        """The column that names a row: the last of those on the left before the first number."""
        return max(self.sides.find("r"), 1) - 1

    def pruned(self) -> Table:
        """The table without columns that have no value at all."""
        kept = [at for at in range(len(self.headings)) if any(row[at] for row in self.rows)]
        return replace(
            self,
            headings=tuple(self.headings[at] for at in kept),
            rows=tuple(tuple(row[at] for at in kept) for row in self.rows),
            align="".join(self.sides[at] for at in kept),
        )


@dataclass(frozen=True)
class Plot:
    """A drawing with its caption; ``name`` is that of its file."""

    name: str
    caption: str
    drawing: Drawing


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Points:
    """Sentences that stand one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Warned:
    """What must be seen before any number: each item is a sentence."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Listing:
    """Text as it is: a program (``cuda``) or commands (``console``)."""

    name: str
    caption: str
    text: str
    language: Literal["cuda", "console"] = "console"


Block = Table | Plot | Paragraph | Points | Warned | Listing


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    sections: Sequence[Section]

    def blocks(self) -> Iterator[Block]:
        """Every block, in order."""
        for section in self.sections:
            yield from section.blocks

    def numbers(self) -> dict[Block, int]:
        """Number of each table and of each plot; both count from 1."""
        found: dict[Block, int] = {}
        for kind in (Table, Plot):
            mine = (block for block in self.blocks() if isinstance(block, kind))
            found |= {block: at for at, block in enumerate(mine, 1)}
        return found


def marked(text: str) -> Iterator[tuple[Style, str]]:
    """Pieces of marked text, in order."""
    at = 0
    for mark in _MARKS.finditer(text):
        if mark.start() > at:
            yield "plain", text[at : mark.start()]
        yield ("code", mark[1]) if mark[1] is not None else ("strong", mark[2])
        at = mark.end()
    if at < len(text):
        yield "plain", text[at:]


def unmarked(text: str) -> str:
    """The text without its marks."""
    return "".join(piece for _, piece in marked(text))
