"""Ways of writing one and the same program: names, loops, index arithmetic, spacing, comments.

A ``Writing`` is a set of choices. Strategies ask its methods for statements and get lines in which
every name is a canonical one (``row``, ``LANES``) and every level of depth a tab; ``finish`` gives
names and tabs their final form. All choices lead to programs that compute the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints

from training.teacher.names import NAMES, RESERVED

Lines = list[str]

MAX_BY_HAND = 4  # lines that somebody would write out
_NUMBERS = re.compile(r"(?<![*/%.\w] )(?<![*/%.\w])(\d+) ?(//|/|\*) ?(\d+)\b(?![.])")
_IN_BRACKETS = re.compile(r"(?<![\w>])\((\d+)\)")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(frozen=True)
class Writing:
    """How a program is written.

    Attributes:
        names: Seed of the names of variables, constants and kernels; 0 keeps the canonical ones.
        indent: Spaces a level.
        loop: Whether loops that are not unrolled are ``for`` or ``while``.
        step: How a variable goes on by one.
        repeat: Whether loops of known length are unrolled by a pragma or by hand.
        braces: Whether a single statement gets braces.
        guard: Whether a thread without work returns early or skips a block.
        pick: Whether one of two values is picked by ``?:`` or by ``if``.
        divide: Whether powers of two divide by ``/`` and ``%`` or by shifts and masks.
        local: Whether locals that never change are ``const``.
        address: ``&a[i]`` or ``a + i``.
        add: How a product is added.
        constants: Constants as ``//! let``, as ``constexpr`` or as plain numbers.
        thread: How a thread's number in the grid is spelled.
        block: A block's size as a constant or as ``blockDim.x``.
        reduce: Which shuffle adds up lanes.
        helper: Whether repeated arithmetic stands in a function of its own.
        order: In which order a kernel takes its parameters.
        signature: Parameters side by side or one a line.
        comments: No comments, one on top, or at statements too.
    """

    names: int = 0
    indent: Literal[2, 4] = 2
    loop: Literal["for", "while"] = "for"
    step: Literal["before", "after", "plus"] = "before"
    repeat: Literal["pragma", "hand"] = "pragma"
    braces: Literal["few", "all"] = "few"
    guard: Literal["return", "nest"] = "return"
    pick: Literal["ternary", "if"] = "ternary"
    divide: Literal["operator", "shift"] = "operator"
    local: Literal["const", "plain"] = "const"
    address: Literal["element", "sum"] = "element"
    add: Literal["plus", "fma"] = "plus"
    constants: Literal["let", "constexpr", "number"] = "let"
    thread: Literal["block first", "thread first"] = "block first"
    block: Literal["constant", "dimension"] = "constant"
    reduce: Literal["down", "xor"] = "down"
    helper: Literal["function", "inline"] = "function"
    order: Literal["sizes first", "matrix first", "output first"] = "sizes first"
    signature: Literal["wrapped", "lines"] = "wrapped"
    comments: Literal["none", "top", "all"] = "none"

    # Statements

    def define(self, kind: str, name: str, value: str) -> Lines:
        """A local that never changes."""
        const = "const " if self.local == "const" else ""
        return [f"{const}{kind} {name} = {_bare(value)};"]

    def choose(self, kind: str, name: str, when: str, then: str, otherwise: str) -> Lines:
        """A local with one of two values."""
        if self.pick == "ternary":
            return self.define(kind, name, f"{when} ? {then} : {otherwise}")
        return [f"{kind} {name} = {otherwise};", *self.when(when, [f"{name} = {then};"])]

    def when(self, condition: str, then: Lines, otherwise: Lines | None = None) -> Lines:
        """An ``if``."""
        both = bool(otherwise)
        lines = self._block(f"if ({condition})", then, always=both)
        if otherwise:
            lines[-1] += " else {"
            lines += [*deeper(otherwise), "}"]
        return lines

    def guarded(self, inside: str, outside: str, body: Lines) -> Lines:
        """``body`` where ``inside`` holds, at the end of a kernel."""
        if self.guard == "return":
            return [f"if ({outside}) return;", *body]
        return self._block(f"if ({inside})", body, always=True)

    def count(self, variable: str, by: str) -> str:
        """A statement, without its semicolon, that adds to a variable."""
        if by != "1":
            return f"{variable} += {by}"
        spelled = {"before": "++{}", "after": "{}++", "plus": "{} += 1"}
        return spelled[self.step].format(variable)

    def each(
        self, kind: str, variable: str, start: str, end: str, by: str, body: Lines, unroll: int = 0
    ) -> Lines:
        """A loop; ``kind`` is empty for a variable that is there, ``start`` where it is set too.

        Args:
            kind: Type of the variable.
            variable: Its name.
            start: Where it starts.
            end: While this holds.
            by: What is added each time.
            body: Statements.
            unroll: How often the compiler is asked to unroll; 0 says nothing.
        """
        declared = f"{kind} {variable} = {start}".strip() if start else ""
        if self.loop == "while" and not unroll:
            first = [f"{declared};"] if declared else []
            again = [*body, f"{self.count(variable, by)};"]
            return [*first, *self._block(f"while ({end})", again, always=True)]
        pragma = [f"#pragma unroll {unroll}"] if unroll else []
        head = f"for ({declared}; {end}; {self.count(variable, by)})"
        return [*pragma, *self._block(head, body)]

    def repeat_each(
        self, variable: str, name: str, times: int, body: Callable[[str], Lines]
    ) -> Lines:
        """A loop of known length: ``times``, for which the text says ``name``."""
        if times == 1:
            return body("0")
        if self.repeat == "hand" and times * len(body("0")) <= MAX_BY_HAND:
            return [line for i in range(times) for line in body(str(i))]
        head = f"for (int {variable} = 0; {variable} < {name}; {self.count(variable, '1')})"
        return ["#pragma unroll", *self._block(head, body(variable))]

    def unrolled(self, variable: str, name: str, times: int, body: Callable[[str], Lines]) -> Lines:
        """As ``repeat_each``, of statements that cannot stand side by side."""
        if times == 1:
            return body("0")
        head = f"for (int {variable} = 0; {variable} < {name}; {self.count(variable, '1')})"
        return ["#pragma unroll", *self._block(head, body(variable), always=True)]

    def halve(self, variable: str, start: str, body: Lines, least: str = "0") -> Lines:
        """A loop over ``start``, half of it and so on, as long as more than ``least``."""
        half = f"{variable} >>= 1" if self.divide == "shift" else f"{variable} /= 2"
        head = f"for (int {variable} = {start}; {variable} > {least}; {half})"
        return ["#pragma unroll", *self._block(head, body)]

    def double(self, variable: str, start: str, end: str, body: Lines) -> Lines:
        """A loop over ``start``, twice of it and so on, as long as less than ``end``."""
        twice = f"{variable} <<= 1" if self.divide == "shift" else f"{variable} *= 2"
        head = f"for (int {variable} = {start}; {variable} < {end}; {twice})"
        return ["#pragma unroll", *self._block(head, body)]

    def note(self, text: str) -> Lines:
        """A comment at a statement."""
        return [f"// {text}"] if self.comments == "all" else []

    # Expressions

    def over(self, number: str, name: str, value: int) -> str:
        """A nonnegative number divided by a constant."""
        if value == 1:
            return number
        if self.divide == "shift" and value & (value - 1) == 0:
            return f"({number} >> {value.bit_length() - 1})"
        return f"{number} / {name}"

    def rest(self, number: str, name: str, value: int) -> str:
        """What is left of a nonnegative number when divided by a constant."""
        if value == 1:
            return "0"
        if self.divide == "shift" and value & (value - 1) == 0:
            return f"({number} & {value - 1})"
        return f"{number} % {name}"

    def at(self, array: str, index: str) -> str:
        """Address of an element."""
        return f"&{array}[{index}]" if self.address == "element" else f"{array} + {index}"

    def fetch(self, array: str, index: str, hint: str) -> str:
        """Reads an element, with a load intrinsic unless ``hint`` is empty."""
        if hint == "load":
            return f"load({self.at(array, index)}, kept)"
        return f"{hint}({self.at(array, index)})" if hint else f"{array}[{index}]"

    def product(self, to: str, left: str, right: str) -> str:
        """A statement that adds a product."""
        if self.add == "fma":
            return f"{to} = fma({left}, {right}, {to});"
        return f"{to} += {left} * {right};"

    def threads(self, size: str) -> str:
        """Threads a block, in the code."""
        return "blockDim.x" if self.block == "dimension" else size

    def global_thread(self, size: str) -> str:
        """Number of a thread in a grid of one dimension."""
        if self.thread == "block first":
            return f"(long long)blockIdx.x * {self.threads(size)} + threadIdx.x"
        return f"threadIdx.x + (long long)blockIdx.x * {self.threads(size)}"

    def by_block(self, body: Lines, size: str) -> Lines:
        """``body``, which reads the matrix by ``load``, once for each of two ways of loading.

        Some blocks leave their part of the matrix's ``size`` bytes in the L2 for the next time.
        Which do is decided once, so that no load waits for a branch.
        """
        return [
            "const auto work = [&](bool kept) {",
            *deeper(body),
            "};",
            *self.note("Some blocks leave their part of the matrix in the L2 for the next time."),
            *self.when(
                f"blockIdx.x % 32 * ((float){size}) < 32.0f * KEEP * (1 << 20)",
                ["work(true);"],
                ["work(false);"],
            ),
        ]

    # The whole

    def parameters(self, groups: Mapping[str, Sequence[str]]) -> list[str]:
        """Parameters of a kernel, whose groups are ``sizes``, ``matrix``, ``dense``, ``output``."""
        order = {
            "sizes first": ("sizes", "matrix", "dense", "output"),
            "matrix first": ("matrix", "dense", "output", "sizes"),
            "output first": ("output", "sizes", "matrix", "dense"),
        }
        return [one for group in order[self.order] for one in groups[group]]

    def head(self, start: str, parameters: Sequence[str]) -> Lines:
        """The first lines of a function, up to its opening brace."""
        if self.signature == "lines":
            return [
                f"{start}(",
                *(f"\t\t{p}," for p in parameters[:-1]),
                f"\t\t{parameters[-1]}) {{",
            ]
        lines, room = [f"{start}("], 92
        for position, parameter in enumerate(parameters):
            piece = parameter + (", " if position + 1 < len(parameters) else ") {")
            if len(lines[-1]) + len(piece) > room:
                lines[-1] = lines[-1].rstrip()
                lines.append("\t\t")
            lines[-1] += piece
        return lines

    def finish(
        self, lines: Iterable[str], constants: Mapping[str, int], fixed: frozenset[str]
    ) -> str:
        """The text: with its own names, its constants where they belong, and spaces for tabs.

        Args:
            lines: What the other methods gave.
            constants: The program's own.
            fixed: Names that belong to its format.
        """
        replaced = {k: str(v) for k, v in constants.items()} if self.constants == "number" else {}
        lines = [_each_word(line, replaced) if _is_code(line) else line for line in lines]
        if self.constants != "let":
            lines = [
                computed(line) if self.constants == "number" or "//!" in line else line
                for line in lines
            ]
        words = {word for line in lines if _is_code(line) for word in _WORD.findall(line)}
        renamed = self._renamed(words, fixed)
        out = [_each_word(line, renamed) if _is_code(line) else line for line in lines]
        return "\n".join(line.replace("\t", " " * self.indent) for line in out) + "\n"

    def _renamed(self, words: set[str], fixed: frozenset[str]) -> dict[str, str]:
        if not self.names:
            return {}
        rng = random.Random(self.names)
        free_to_rename = (words & NAMES.keys()) - fixed
        taken = (words - free_to_rename) | RESERVED | fixed
        renamed: dict[str, str] = {}
        for word in sorted(free_to_rename):
            free = [name for name in NAMES[word] if name not in taken]
            renamed[word] = rng.choice(free or [word])
            taken.add(renamed[word])
        return renamed

    def _block(self, head: str, body: Lines, always: bool = False) -> Lines:
        if len(body) == 1 and self.braces == "few" and not always and not body[0].startswith("#"):
            line = f"{head} {body[0]}"
            return [line] if len(line) < 80 else [head, *deeper(body)]
        return [f"{head} {{", *deeper(body), "}"]


def drawn(seed: int) -> Writing:
    """The writing that belongs to a seed."""
    rng = random.Random(f"writing {seed}")
    choices = {name: rng.choice(values) for name, values in options().items()}
    return Writing(names=rng.randrange(1, 1 << 30), **choices)


@cache
def options() -> Mapping[str, tuple[Any, ...]]:
    """Every choice but the names, with its values."""
    hints = get_type_hints(Writing)
    found = {f.name: get_args(hints[f.name]) for f in fields(Writing) if f.name != "names"}
    return MappingProxyType(found)


def deeper(lines: Iterable[str]) -> Lines:
    """The lines one level further in; directives stay at the margin."""
    return [line if line.startswith("#") else f"\t{line}" for line in lines]


def _is_code(line: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith("//!") or not stripped.startswith("//")


def computed(line: str) -> str:
    """The line with products and quotients of numbers worked out."""
    before = ""
    while line != before:
        before, line = line, _NUMBERS.sub(_value, line)
        line = _IN_BRACKETS.sub(r"\1", line)
    return line


def _value(match: re.Match[str]) -> str:
    left, sign, right = int(match[1]), match[2], int(match[3])
    if sign == "*":
        return str(left * right)
    return str(left // right) if left % right == 0 else match[0]


def _bare(value: str) -> str:
    """An expression without brackets around the whole of it."""
    inner = value[1:-1]
    whole = value.startswith("(") and value.endswith(")") and not set("()") & set(inner)
    return inner if whole else value


def _each_word(line: str, words: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: words.get(match[0], match[0]), line) if words else line
