"""Makes of a file the text that a model may learn from, or says why it is left out.

What goes: licence headers, includes, non-ASCII signs, tables of numbers, trailing blanks. What is
kept is otherwise as its author wrote it, comments included. ``VERSION`` changes with the rules, so
that nothing cleaned by other rules is taken from the cache.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

VERSION = 1
SHORTEST, LONGEST = 200, 300_000  # characters after cleaning
_COMMENT = re.compile(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n?)+", re.DOTALL | re.MULTILINE)
_LICENCE = re.compile(
    r"copyright|licen[sc]e|SPDX|all rights reserved|redistribution and use|warrant(?:y|ies)", re.I
)
_GENERATED = re.compile(r"auto-?generated|do not (?:edit|modify)|generated (?:by|from|file)", re.I)
_DROPPED_LINE = re.compile(r"^[ \t]*#[ \t]*(?:include\b|pragma[ \t]+once\b).*\n?", re.MULTILINE)
_EMPTY_IF = re.compile(
    r"^[ \t]*#[ \t]*if.*\n\s*(?:^[ \t]*#[ \t]*el.*\n\s*)*^[ \t]*#[ \t]*endif.*\n?", re.MULTILINE
)  # what is left of conditional includes
_NUMBERS = re.compile(r"[\s\d.,{}()+\-fFeExXa-dA-DuUlL]*\d[\s\d.,{}()+\-fFeExXa-dA-DuUlL;]*")
_SIGNS = str.maketrans(
    {"×": "x", "µ": "u", "μ": "u", "−": "-", "–": "-", "—": "-", "‘": "'", "’": "'"}
    | {"“": '"', "”": '"', "…": "...", "≤": "<=", "≥": ">=", "→": "->", "\t": "  "}
)


@dataclass(frozen=True)
class Cleaned:
    """A text, or the reason why there is none; exactly one of them is empty."""

    text: str
    reason: str = ""


def clean(data: bytes) -> Cleaned:
    """Cleans one file."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    if _GENERATED.search(text[:2000]):
        return Cleaned("", "generated")
    text = _COMMENT.sub(lambda m: "" if _LICENCE.search(m[0]) else m[0], text)
    text = _DROPPED_LINE.sub("", text)
    while (shorter := _EMPTY_IF.sub("", text)) != text:
        text = shorter
    if not text.isascii() or "\t" in text:
        text = unicodedata.normalize("NFKD", text.translate(_SIGNS))
        if sum(c.isalpha() and not c.isascii() for c in text) > 0.02 * len(text):
            return Cleaned("", "not in English")
        text = "".join(c for c in text if c.isascii() and (c.isprintable() or c == "\n"))
    lines = _without_tables([line.rstrip() for line in text.split("\n")])
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"
    return _judged(text, lines)


def _judged(text: str, lines: list[str]) -> Cleaned:
    if len(text) < SHORTEST:
        return Cleaned("", "too short")
    if len(text) > LONGEST:
        return Cleaned("", "too long")
    filled = [line for line in lines if line]
    if max(map(len, filled)) > 1000 or sum(map(len, filled)) > 120 * len(filled):
        return Cleaned("", "minified")
    letters = sum(c.isalpha() for c in text)
    if letters < 0.25 * len(text.replace(" ", "")):
        return Cleaned("", "mostly numbers")
    return Cleaned(text)


def _without_tables(lines: list[str], longest: int = 6) -> list[str]:
    """The lines without runs of more than ``longest`` that hold nothing but numbers."""
    kept: list[str] = []
    run: list[str] = []
    for line in [*lines, None]:
        if line is not None and _NUMBERS.fullmatch(line):
            run.append(line)
            continue
        kept += run if len(run) <= longest else []
        run = []
        if line is not None:
            kept.append(line)
    return kept
