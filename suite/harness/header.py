"""Reads ``//!`` lines, of programs and of device formats; each keyword has a reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from suite.harness.arithmetic import ExpressionError, names_in
from suite.harness.bind import ARRAY_TYPES
from suite.harness.plan import ArrayLine, LaunchLine, ParseError
from suite.problem import Op

MAX_LAUNCHES = 64
MAX_ARRAYS = 32
_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,18}\Z", re.ASCII)

IN_PROGRAMS = (
    "op",
    "format",
    "let",
    "require",
    "derived",
    "workspace",
    "init",
    "prepare",
    "launch",
)
IN_DEVICE_FORMATS = (
    "base",
    "param",
    "let",
    "size",
    "require",
    "derived",
    "workspace",
    "prepare",
)


class Header:
    """Collects header lines; each reader takes the words after its keyword.

    Args:
        keywords: Those that may occur.
        choose: Takes name and parameters of a ``//! format`` line; raises ``ValueError`` for those
            that are not known.
        source: Of which file the lines are; empty for a program's own text.

    Attributes:
        base: Host format of a device format, and its parameters as they are written.
        parameters: Defaults of a device format's parameters.
        sizes: Of a device format: name, arithmetic and where it stands.
        where: Of each constant, parameter and size: the line that names it.

    The others are as in ``Declaration``.
    """

    def __init__(
        self,
        keywords: tuple[str, ...],
        choose: Callable[[str, Mapping[str, int]], None] | None = None,
        source: str = "",
    ) -> None:
        self.op = ""
        self.base: tuple[str, dict[str, str]] | None = None
        self.parameters: dict[str, int] = {}
        self.constants: dict[str, int] = {}
        self.sizes: list[tuple[str, str, str]] = []
        self.requires: list[tuple[str, str]] = []
        self.prepares: list[LaunchLine] = []
        self.launches: list[LaunchLine] = []
        self.derived: list[ArrayLine] = []
        self.workspaces: list[ArrayLine] = []
        self.init_zero = False
        self.where: dict[str, str] = {}
        self._choose, self._chosen = choose, False
        self._source = source
        readers: dict[str, Callable[[list[str], str], None]] = {
            "op": self._op,
            "format": self._format,
            "base": self._base,
            "param": partial(self._number, "param", self.parameters),
            "let": partial(self._number, "let", self.constants),
            "size": self._size,
            "require": self._require,
            "derived": partial(self._array, "derived", self.derived),
            "workspace": partial(self._array, "workspace", self.workspaces),
            "init": self._init,
            "prepare": partial(self._launch, "prepare", self.prepares),
            "launch": partial(self._launch, "launch", self.launches),
        }
        self._readers = {keyword: readers[keyword] for keyword in keywords}

    def read(self, code: str) -> None:
        """Reads all header lines of a text.

        Raises:
            ParseError: A line that cannot be read, or one that stands after the code's first.
        """
        code_line = 0
        for number, line in enumerate(code.split("\n"), start=1):
            stripped = line.strip()
            if stripped.startswith("//!"):
                where = f"{self._source} line {number}".lstrip()
                if code_line:
                    raise ParseError(
                        f"{where}: header lines come before the code, which begins on line"
                        f" {code_line}"
                    )
                self._statement(stripped[3:].split(), where)
            elif stripped and not stripped.startswith("//"):
                code_line = code_line or number

    @property
    def arrays(self) -> list[ArrayLine]:
        """Everything that a line declares as memory."""
        return [*self.derived, *self.workspaces]

    def _statement(self, words: list[str], where: str) -> None:
        keyword = words[0] if words else ""
        reader = self._readers.get(keyword)
        if reader is None:
            raise ParseError(
                f"{where}: unknown header {keyword!r}; known are {', '.join(self._readers)}"
            )
        reader(words[1:], where)

    def _op(self, words: list[str], where: str) -> None:
        if self.op:
            raise ParseError(f"{where}: a second '//! op' line")
        if len(words) != 1 or words[0] not in set(Op):
            raise ParseError(f"{where}: op is {' or '.join(Op)}, not {' '.join(words)!r}")
        self.op = words[0]

    def _format(self, words: list[str], where: str) -> None:
        if self._chosen:
            raise ParseError(f"{where}: a second '//! format' line")
        assert self._choose is not None
        parameters: dict[str, int] = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or not _INTEGER.match(value):
                raise ParseError(f"{where}: {word!r} is not parameter=INTEGER")
            parameters[key] = int(value)
        try:
            self._choose(words[0] if words else "", parameters)
        except ValueError as error:
            raise ParseError(f"{where}: {error}") from None
        self._chosen = True

    def _base(self, words: list[str], where: str) -> None:
        pairs = [word.partition("=") for word in words[1:]]
        if self.base or not words or not all(key and value for key, _, value in pairs):
            raise ParseError(f"{where}: expected one //! base FORMAT [param=INTEGER|PARAM …]")
        self.base = words[0], {key: value for key, _, value in pairs}

    def _number(self, what: str, numbers: dict[str, int], words: list[str], where: str) -> None:
        if len(words) != 2 or not _NAME.match(words[0]) or not _INTEGER.match(words[1]):
            raise ParseError(f"{where}: expected //! {what} NAME INTEGER")
        if words[0] in self.where:
            raise ParseError(f"{where}: {words[0]} is already a constant")
        self.where[words[0]] = where
        numbers[words[0]] = int(words[1])

    def _size(self, words: list[str], where: str) -> None:
        if len(words) != 2 or not _NAME.match(words[0]) or words[0] in self.where:
            raise ParseError(f"{where}: expected //! size NAME EXPR, each name once")
        self.where[words[0]] = where
        self.sizes.append((words[0], self._arithmetic(words[1], where), where))

    def _require(self, words: list[str], where: str) -> None:
        self.requires.append((self._arithmetic(" ".join(words), where), where))

    def _array(self, what: str, arrays: list[ArrayLine], words: list[str], where: str) -> None:
        zero = words[3:] == ["zero"]
        if len(words) < 3 or (words[3:] and not zero) or not _NAME.match(words[0]):
            raise ParseError(f"{where}: expected //! {what} NAME DTYPE EXPR [zero]")
        if words[1] not in ARRAY_TYPES:
            raise ParseError(f"{where}: {what} type is one of {', '.join(ARRAY_TYPES)}")
        if any(words[0] == other.name for other in self.arrays):
            raise ParseError(f"{where}: {what} {words[0]} is declared twice")
        count = self._arithmetic(words[2], where)
        if len(arrays) == MAX_ARRAYS:
            raise ParseError(f"{where}: more than {MAX_ARRAYS} {what} lines")
        arrays.append(ArrayLine(words[0], words[1], count, zero, where))

    def _init(self, words: list[str], where: str) -> None:
        if words != ["zero"]:
            raise ParseError(f"{where}: expected //! init zero")
        self.init_zero = True

    def _launch(self, what: str, launches: list[LaunchLine], words: list[str], where: str) -> None:
        if not words or not _NAME.match(words[0]):
            raise ParseError(f"{where}: expected //! {what} KERNEL grid=… block=… [shared=…]")
        if len(launches) == MAX_LAUNCHES:
            raise ParseError(f"{where}: more than {MAX_LAUNCHES} {what} lines")
        given: dict[str, str] = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or key not in ("grid", "block", "shared") or key in given:
                raise ParseError(f"{where}: {word!r} is not grid=…, block=… or shared=…, each once")
            given[key] = value
        for key in ("grid", "block"):
            if key not in given:
                raise ParseError(f"{where}: {what} of {words[0]} has no {key}=…")
        grid, block = self._axes(given["grid"], where), self._axes(given["block"], where)
        shared = self._arithmetic(given.get("shared", "0"), where)
        launches.append(LaunchLine(words[0], grid, block, shared, where))

    def _axes(self, text: str, where: str) -> tuple[str, ...]:
        parts = [""]
        depth = 0
        for letter in text:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        if len(parts) > 3:
            raise ParseError(f"{where}: {text!r} has {len(parts)} dimensions; at most 3")
        return tuple(self._arithmetic(part, where) for part in parts)

    def _arithmetic(self, text: str, where: str) -> str:
        try:
            names_in(text)
        except ExpressionError as error:
            raise ParseError(f"{where}: {error}") from None
        return text
