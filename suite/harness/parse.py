"""From text to declaration: reads a program's header lines and kernel signatures.

The language is described in ``docs/program.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from suite import formats
from suite.formats.base import Format
from suite.harness.arithmetic import ExpressionError, names_in
from suite.harness.bind import ARRAY_TYPES
from suite.harness.plan import ArrayLine, Declaration, LaunchLine, Parameter, ParseError
from suite.harness.signature import check_directives, check_names, kernels, tokens
from suite.problem import Op

MAX_TEXT = 200_000  # characters; the longest hand-written program here has about 10,000
MAX_LAUNCHES = 64
MAX_ARRAYS = 32
_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,18}\Z", re.ASCII)
_FENCE = re.compile(r"\A\s*```[^\n`]*\n(.*?)(?:\n?```\s*)?\Z", re.DOTALL)


def parse(text: str) -> Declaration:
    """Reads a program.

    A byte-order mark and one Markdown fence around the whole text are taken off, since language
    models write them; everything else is taken as it is.

    Args:
        text: The program as its author wrote it.

    Returns:
        The declaration; its ``code`` compiles to kernels once the suite's prelude stands before it.

    Raises:
        ParseError: One line with the number of the line at fault.
    """
    # Carriage returns may halve, and a fence and blanks around it go; more is not looked through.
    code = unwrap(text) if len(text) <= 4 * MAX_TEXT else text
    if not code.strip():
        raise ParseError("the text is empty; a program needs //! header lines and a kernel")
    if len(code) > MAX_TEXT:
        raise ParseError(f"the text has {len(code):,} characters; at most {MAX_TEXT:,}")
    if "\r" in code:
        at = _line_of(code, code.index("\r"))
        raise ParseError(
            f"line {at}: a carriage return without a line feed; compilers disagree on it"
        )
    if "\0" in code:
        raise ParseError(
            f"line {_line_of(code, code.index(chr(0)))}: the text holds a NUL character"
        )
    try:
        code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ParseError(
            f"line {_line_of(code, error.start)}: the text is not valid Unicode"
        ) from None
    header = _Header()
    code_line = 0
    for number, line in enumerate(code.split("\n"), start=1):
        stripped = line.strip()
        if stripped.startswith("//!"):
            if code_line:
                raise ParseError(
                    f"line {number}: header lines come before the code, which begins on line"
                    f" {code_line}"
                )
            header.read(stripped[3:].split(), number)
        elif stripped and not stripped.startswith("//"):
            code_line = code_line or number
    found = list(tokens(code))
    check_directives(found)
    check_names(found)
    return header.declaration(code, kernels(found))


def unwrap(text: str) -> str:
    """The text without a byte-order mark and without one Markdown fence around it."""
    text = text.removeprefix("\ufeff")
    fenced = _FENCE.match(text)
    return (fenced.group(1) if fenced else text).replace("\r\n", "\n")


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


class _Header:
    """Collects header lines; each reader takes the words after its keyword."""

    def __init__(self) -> None:
        self.op = ""
        self.format: Format | None = None
        self.constants: dict[str, int] = {}
        self.requires: list[tuple[str, int]] = []
        self.prepares: list[LaunchLine] = []
        self.launches: list[LaunchLine] = []
        self.derived: list[ArrayLine] = []
        self.workspaces: list[ArrayLine] = []
        self.init_zero = False
        self._readers: dict[str, Callable[[list[str], int], None]] = {
            "op": self._op,
            "format": self._format,
            "let": self._let,
            "require": self._require,
            "derived": partial(self._array, "derived", self.derived),
            "workspace": partial(self._array, "workspace", self.workspaces),
            "init": self._init,
            "prepare": partial(self._launch, "prepare", self.prepares),
            "launch": partial(self._launch, "launch", self.launches),
        }

    def read(self, words: list[str], line: int) -> None:
        keyword = words[0] if words else ""
        reader = self._readers.get(keyword)
        if reader is None:
            raise ParseError(
                f"line {line}: unknown header {keyword!r}; known are {', '.join(self._readers)}"
            )
        reader(words[1:], line)

    def declaration(self, code: str, found: dict[str, tuple[Parameter, ...]]) -> Declaration:
        if not self.op:
            raise ParseError("no '//! op' line; write //! op spmv or //! op spmm")
        if self.format is None:
            raise ParseError(
                f"no '//! format' line; known formats are {', '.join(formats.formats())}"
            )
        if not self.launches:
            raise ParseError("no '//! launch' line; without one nothing runs")
        return Declaration(
            op=self.op,
            format=self.format,
            constants=self.constants,
            requires=tuple(self.requires),
            prepares=tuple(self.prepares),
            launches=tuple(self.launches),
            derived=tuple(self.derived),
            workspaces=tuple(self.workspaces),
            init_zero=self.init_zero,
            kernels=found,
            code=code,
        )

    def _op(self, words: list[str], line: int) -> None:
        if self.op:
            raise ParseError(f"line {line}: a second '//! op' line")
        if len(words) != 1 or words[0] not in set(Op):
            raise ParseError(f"line {line}: op is {' or '.join(Op)}, not {' '.join(words)!r}")
        self.op = words[0]

    def _format(self, words: list[str], line: int) -> None:
        if self.format is not None:
            raise ParseError(f"line {line}: a second '//! format' line")
        if not words:
            raise ParseError(f"line {line}: which format? known are {', '.join(formats.formats())}")
        parameters: dict[str, int] = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or not _INTEGER.match(value):
                raise ParseError(f"line {line}: {word!r} is not parameter=INTEGER")
            parameters[key] = int(value)
        try:
            self.format = formats.make(words[0], parameters)
        except ValueError as error:
            raise ParseError(f"line {line}: {error}") from None

    def _let(self, words: list[str], line: int) -> None:
        if len(words) != 2 or not _NAME.match(words[0]) or not _INTEGER.match(words[1]):
            raise ParseError(f"line {line}: expected //! let NAME INTEGER")
        if words[0] in self.constants:
            raise ParseError(f"line {line}: {words[0]} is already a constant")
        self.constants[words[0]] = int(words[1])

    def _require(self, words: list[str], line: int) -> None:
        self.requires.append((self._arithmetic(" ".join(words), line), line))

    def _array(self, what: str, arrays: list[ArrayLine], words: list[str], line: int) -> None:
        zero = words[3:] == ["zero"]
        if len(words) < 3 or (words[3:] and not zero) or not _NAME.match(words[0]):
            raise ParseError(f"line {line}: expected //! {what} NAME DTYPE EXPR [zero]")
        if words[1] not in ARRAY_TYPES:
            raise ParseError(f"line {line}: {what} type is one of {', '.join(ARRAY_TYPES)}")
        if any(words[0] == other.name for other in (*self.derived, *self.workspaces)):
            raise ParseError(f"line {line}: {what} {words[0]} is declared twice")
        count = self._arithmetic(words[2], line)
        if len(arrays) == MAX_ARRAYS:
            raise ParseError(f"line {line}: more than {MAX_ARRAYS} {what} lines")
        arrays.append(ArrayLine(words[0], words[1], count, zero, line))

    def _init(self, words: list[str], line: int) -> None:
        if words != ["zero"]:
            raise ParseError(f"line {line}: expected //! init zero")
        self.init_zero = True

    def _launch(self, what: str, launches: list[LaunchLine], words: list[str], line: int) -> None:
        if not words or not _NAME.match(words[0]):
            raise ParseError(f"line {line}: expected //! {what} KERNEL grid=… block=… [shared=…]")
        if len(launches) == MAX_LAUNCHES:
            raise ParseError(f"line {line}: more than {MAX_LAUNCHES} {what} lines")
        given: dict[str, str] = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or key not in ("grid", "block", "shared") or key in given:
                raise ParseError(
                    f"line {line}: {word!r} is not grid=…, block=… or shared=…, each once"
                )
            given[key] = value
        for key in ("grid", "block"):
            if key not in given:
                raise ParseError(f"line {line}: {what} of {words[0]} has no {key}=…")
        launches.append(
            LaunchLine(
                words[0],
                self._axes(given["grid"], line),
                self._axes(given["block"], line),
                self._arithmetic(given.get("shared", "0"), line),
                line,
            )
        )

    def _axes(self, text: str, line: int) -> tuple[str, ...]:
        parts = [""]
        depth = 0
        for letter in text:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        if len(parts) > 3:
            raise ParseError(f"line {line}: {text!r} has {len(parts)} dimensions; at most 3")
        return tuple(self._arithmetic(part, line) for part in parts)

    def _arithmetic(self, text: str, line: int) -> str:
        try:
            names_in(text)
        except ExpressionError as error:
            raise ParseError(f"line {line}: {error}") from None
        return text
