"""How a program goes about it, in a word or two, for shares over many programs."""

from __future__ import annotations

from functools import lru_cache

from suite.harness.plan import ParseError
from training.teacher.describe import describe

# What of a program's key names a way of multiplying; the rest are amounts.
_TELLING = ("shared", "sum", "scan", "atomic")


@lru_cache(maxsize=4096)
def strategy_of(text: str) -> str:
    """Format and what threads do together: ``csr sum``, ``hyb scan atomic``; "" for no program."""
    try:
        key = describe(text)
    except (ParseError, ValueError):
        return ""
    head, *_, marks = key.split(" | ")
    used = set(marks.split())
    fmt = head.split()[1]
    return " ".join([fmt, *(mark for mark in _TELLING if mark in used)])
