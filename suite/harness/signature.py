"""Reads CUDA source as far as the suite needs: its tokens, directives and kernel signatures.

A tokeniser, not text search: comments, strings, line splices and digraphs are seen as the compiler
sees them. Macros are not expanded, so a kernel's name and parameters must stand in the text as they
are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from suite.harness.plan import Parameter, ParseError
from suite.harness.ptx import COMPILERS_OWN

_TOKEN = re.compile(
    r"""[ \t\f\v\r]*(?:
      (?P<newline>\n)
    | (?P<comment>//[^\n]*)
    | (?P<open_comment>/\*)
    | (?P<open_raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\()
    | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<open_string>["'])
    | (?P<name>[A-Za-z_]\w*)
    | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
    | (?P<punct>%:|<%|%>|<:|:>|::|->|.)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPLICE = re.compile(r"\\[ \t]*\n")
_DIGRAPHS = {"%:": "#", "<%": "{", "%>": "}", "<:": "[", ":>": "]"}
DIRECTIVES = frozenset(
    ["define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma"]
)
_ASSEMBLY = frozenset({"asm", "__asm", "__asm__"})
_RESERVED = ("emu_", "__tsan_", "__asan_", "__builtin_dynamic", "inline_ptx", COMPILERS_OWN)
_ATTRIBUTE_WORDS = frozenset({"__attribute__", "__attribute", "__declspec"})
# Tokens that ``check_names`` looks at more closely; all others it lets pass.
_LOOKED_AT = _ASSEMBLY | _ATTRIBUTE_WORDS | {"[", "define", "undef", "pragma", "_Pragma"}
_ATTRIBUTES = frozenset(
    {"aligned", "always_inline", "noinline", "unused", "maybe_unused", "nodiscard", "likely"}
    | {"unlikely", "fallthrough", "noreturn"}
)
_MAX_KERNELS = 64
_MAX_ATTRIBUTES = 100  # tokens of one attribute list
_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "restrict"})
_INTEGER_WORDS = frozenset({"int", "unsigned", "signed", "long", "short", "char"})
_INTEGERS = {
    "int": "int",
    "signed": "int",
    "unsigned": "unsigned int",
    "unsigned int": "unsigned int",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "long": "long long",
    "long int": "long long",
    "unsigned long": "unsigned long long",
    "long long": "long long",
    "long long int": "long long",
    "int64_t": "long long",
    "unsigned long long": "unsigned long long",
    "unsigned long long int": "unsigned long long",
    "uint64_t": "unsigned long long",
    "size_t": "unsigned long long",
}


class Token(NamedTuple):
    """One token; ``kind`` is name, number, string, punct or newline."""

    kind: str
    text: str
    line: int


def tokens(code: str) -> Iterator[Token]:
    """The code's tokens, comments and spaces dropped, newlines kept (they end directives)."""
    pieces = _SPLICE.split(code.replace("\r\n", "\n"))  # as the compiler does, before anything else
    ends = list(accumulate(len(piece) for piece in pieces))[:-1]
    joined = "".join(pieces)
    at, line = 0, 1
    while match := _TOKEN.match(joined, at):
        kind, at = match.lastgroup or "", match.end()
        if kind == "delimiter":
            kind = "open_raw"
        start = match.start(kind)
        here = line + bisect_right(ends, start) if ends else line
        if kind == "open_comment":
            at = _end(joined, at, "*/", "comment", here)
        elif kind == "open_string":  # looking for the end of each such quote would take for ever
            raise ParseError(f"line {here}: this {match[kind]} is never closed on its line")
        elif kind == "open_raw":
            kind, at = "string", _end(joined, at, f'){match["delimiter"]}"', "raw string", here)
        elif kind == "end":
            return
        text = joined[start:at]
        if kind not in ("comment", "open_comment"):
            yield Token(kind, _DIGRAPHS.get(text, text), here)
        if "\n" in text:
            line += text.count("\n")


def _end(code: str, start: int, closing: str, what: str, line: int) -> int:
    found = code.find(closing, start)
    if found < 0:
        raise ParseError(f"line {line}: this {what} is never closed")
    return found + len(closing)


def check_directives(found: Sequence[Token]) -> None:
    """Refuses every preprocessor directive that could reach outside the text.

    Raises:
        ParseError: A directive that is not in ``DIRECTIVES``, with its line.
    """
    fresh = True
    for position, token in enumerate(found):
        if fresh and token.text == "#":
            word = found[position + 1] if position + 1 < len(found) else token
            if word.kind != "newline" and word.text not in DIRECTIVES:
                raise ParseError(
                    f"line {token.line}: #{word.text} is refused; allowed are "
                    f"{', '.join(sorted(DIRECTIVES))}"
                )
        fresh = token.kind == "newline"
    for token in found:
        if token.text in ("__has_include", "__has_embed", "__has_include_next"):
            raise ParseError(
                f"line {token.line}: {token.text} is refused; a program has no files to look for"
            )


def check_names(found: Sequence[Token]) -> None:
    """Refuses what belongs to compilers and linkers, and the emulator's own names.

    Inline assembly, attributes that place or instrument code, and pragmas of a host compiler could
    reach past the device; none of them is needed to multiply.

    Raises:
        ParseError: Such a name, with its line.
    """
    for position, (kind, text, line) in enumerate(found):
        if kind == "name" and text.lower().startswith(_RESERVED):
            prefix = next(one for one in _RESERVED if text.lower().startswith(one))
            raise ParseError(f"line {line}: names that begin with {prefix} are reserved")
        if text not in _LOOKED_AT:
            continue
        following = found[position + 1].text if position + 1 < len(found) else ""
        if text in _ASSEMBLY:
            raise ParseError(f"line {line}: inline assembly is refused; use the intrinsics")
        if text in _ATTRIBUTE_WORDS:
            _check_attributes(found, position + 1, ")")
        elif text == "[" and following == "[":
            _check_attributes(found, position, "]")
        elif text in ("define", "undef") and following.startswith("__"):
            raise ParseError(f"line {line}: #{text} {following}: names with __ are the compiler's")
        elif text in ("pragma", "_Pragma") and following not in ("unroll", "nounroll"):
            raise ParseError(f"line {line}: #pragma {following} is refused; unroll is known")


def _check_attributes(found: Sequence[Token], start: int, closing: str) -> None:
    """Refuses an attribute list, from its first bracket on, with a name that is not allowed."""
    opening = {")": "(", "]": "["}[closing]
    depth = 0
    for token in found[start : start + _MAX_ATTRIBUTES]:
        depth += {opening: 1, closing: -1}.get(token.text, 0)
        if depth <= 0:
            return
        if token.kind in ("name", "string") and token.text.strip("_") not in _ATTRIBUTES:
            allowed = ", ".join(sorted(_ATTRIBUTES))
            raise ParseError(
                f"line {token.line}: attribute {token.text} is refused; allowed are {allowed}"
            )
    if start < len(found):
        raise ParseError(
            f"line {found[start].line}: these attributes are never closed, or more than there is"
            " use for"
        )


def macros(found: Sequence[Token]) -> Iterator[Token]:
    """The names that ``#define`` and ``#undef`` stand before."""
    for position, token in enumerate(found[:-2]):
        if token.text == "#" and found[position + 1].text in ("define", "undef"):
            yield found[position + 2]


def kernels(found: Sequence[Token]) -> dict[str, tuple[Parameter, ...]]:
    """Parameters of every ``extern "C" __global__`` kernel, by its name.

    Raises:
        ParseError: A kernel without C linkage, defined twice, or with a parameter that cannot be
        read.
    """
    code = [token for token in found if token.kind != "newline"]
    result: dict[str, tuple[Parameter, ...]] = {}
    defined: set[str] = set()
    for position in _kernel_keywords(code):
        opening = _parameter_list(code, position)
        if opening is None:
            continue
        name = code[opening - 1]
        if len(result) == _MAX_KERNELS:
            raise ParseError(f"line {name.line}: more than {_MAX_KERNELS} kernels")
        parameters, end = _parameters(code, opening, name.text)
        if end < len(code) and code[end].text == "{":
            if name.text in defined:
                raise ParseError(f"line {name.line}: kernel {name.text} is defined twice")
            defined.add(name.text)
        result[name.text] = parameters
    return result


def _kernel_keywords(code: Sequence[Token]) -> Iterator[int]:
    """Positions of ``__global__``, each under C linkage: its own ``extern "C"`` or a block's."""
    depth = 0
    linked = False  # by an extern "C" of this declaration
    blocks: list[int] = []  # depths at which an extern "C" { … } is open
    for position, token in enumerate(code):
        if token.text == "extern" and [t.text for t in code[position + 1 : position + 2]] == [
            '"C"'
        ]:
            linked = True
        elif token.text == "{":
            if linked and code[position - 1].text == '"C"':
                blocks.append(depth)
            depth, linked = depth + 1, False
        elif token.text == "}":
            depth, linked = depth - 1, False
            if blocks and blocks[-1] == depth:
                blocks.pop()
        elif token.text == ";":
            linked = False
        elif token.text == "__global__":
            if not linked and not blocks:
                raise ParseError(f'line {token.line}: a kernel needs extern "C" before __global__')
            yield position


def _parameter_list(code: Sequence[Token], start: int) -> int | None:
    """Index of the parenthesis that opens a kernel's parameters, None where there is none."""
    position = start + 1
    while position < len(code) and code[position].text not in (";", "{", "__global__"):
        if code[position].text == "(":
            if code[position - 1].text in (
                "__launch_bounds__",
                "__attribute__",
                "__cluster_dims__",
            ):
                position = _closing(code, position)
            elif code[position - 1].kind == "name":
                return position
        position += 1
    return None


def _closing(code: Sequence[Token], opening: int) -> int:
    depth = 0
    for position in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position].text, 0)
        if depth == 0:
            return position
    raise ParseError(f"line {code[opening].line}: this parenthesis is never closed")


def _parameters(
    code: Sequence[Token], opening: int, kernel: str
) -> tuple[tuple[Parameter, ...], int]:
    end = _closing(code, opening)
    groups: list[list[Token]] = [[]]
    depth = 0
    for token in code[opening + 1 : end]:
        depth += {"(": 1, "[": 1, "<": 1, "{": 1, ")": -1, "]": -1, ">": -1, "}": -1}.get(
            token.text, 0
        )
        if token.text == "," and depth == 0:
            groups.append([])
        else:
            groups[-1].append(token)
    if groups == [[]] or [t.text for t in groups[0]] == ["void"]:
        return (), end + 1
    return tuple(_parameter(group, kernel, code[opening].line) for group in groups), end + 1


def _parameter(group: Sequence[Token], kernel: str, line: int) -> Parameter:
    words = [token.text for token in group]
    shown = " ".join(words)
    line = group[0].line if group else line
    if len(group) < 2 or group[-1].kind != "name" or group[-1].text in _QUALIFIERS | _INTEGER_WORDS:
        raise ParseError(
            f"line {line}: kernel {kernel}: parameter {shown!r} needs a type and a name"
        )
    stars = words.count("*")
    if stars > 1 or any(t.kind not in ("name", "punct") or t.text in "&[]()<>=:{}" for t in group):
        raise ParseError(
            f"line {line}: kernel {kernel}: parameter {shown!r} is neither a number nor a plain"
            " pointer"
        )
    before_star = words[: words.index("*")] if stars else words[:-1]
    base = " ".join(word for word in before_star if word not in _QUALIFIERS)
    return Parameter(
        name=words[-1],
        base=_INTEGERS.get(base, base),
        pointer=bool(stars),
        const="const" in before_star,
        line=line,
    )
