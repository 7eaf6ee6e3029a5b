"""From text to declaration: reads a program's header lines and kernel signatures.

The language is described in ``docs/program.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from suite.harness.header import IN_PROGRAMS, Header
from suite.harness.plan import Declaration, Parameter, ParseError
from suite.harness.signature import Token, check_directives, check_names, kernels, macros, tokens
from suite.harness.storage import Storage, choose, known

REMEMBERED = 256  # texts: a program meets many matrices, and reading one takes milliseconds
MAX_TEXT = 200_000  # characters; the longest hand-written program here has about 10,000
_FENCE = re.compile(r"\A\s*```[^\n`]*\n(.*?)(?:\n?```\s*)?\Z", re.DOTALL)


@lru_cache(maxsize=REMEMBERED)
def parse(text: str) -> Declaration:
    """Reads a program.

    A byte-order mark and one Markdown fence around the whole text are taken off, since language
    models write them; everything else is taken as it is.

    Args:
        text: The program as its author wrote it.

    Returns:
        The declaration; its ``code`` compiles to kernels once the suite's prelude and the format's
        ``support`` stand before it.

    Raises:
        ParseError: One line with the number of the line at fault.
    """
    # Carriage returns may halve, and a fence and blanks around it go; more is not looked through.
    code = unwrap(text) if len(text) <= 4 * MAX_TEXT else text
    _check_text(code)
    chosen: list[Storage] = []
    header = Header(IN_PROGRAMS, lambda name, given: chosen.append(choose(name, given)))
    header.read(code)
    found = list(tokens(code))
    check_directives(found)
    check_names(found)
    defined = kernels(found)
    if not header.op:
        raise ParseError("no '//! op' line; write //! op spmv or //! op spmm")
    if not chosen:
        raise ParseError(f"no '//! format' line; known formats are {', '.join(known())}")
    if not header.launches:
        raise ParseError("no '//! launch' line; without one nothing runs")
    (storage,) = chosen
    _check_apart(storage, header, found, defined)
    return Declaration(
        op=header.op,
        format=storage.format,
        spelling=storage.spelling,
        constants={**storage.constants, **header.constants},
        sizes=storage.sizes,
        requires=(*storage.requires, *header.requires),
        prepares=(*storage.prepares, *header.prepares),
        launches=tuple(header.launches),
        derived=(*storage.derived, *header.derived),
        workspaces=(*storage.workspaces, *header.workspaces),
        init_zero=header.init_zero,
        kernels={**storage.kernels, **defined},
        support=storage.support,
        code=code,
    )


def unwrap(text: str) -> str:
    """The text without a byte-order mark and without one Markdown fence around it."""
    text = text.removeprefix("\ufeff")
    fenced = _FENCE.match(text)
    return (fenced.group(1) if fenced else text).replace("\r\n", "\n")


def _check_text(code: str) -> None:
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


def _check_apart(
    storage: Storage,
    header: Header,
    found: Sequence[Token],
    defined: Mapping[str, tuple[Parameter, ...]],
) -> None:
    """Refuses names that a program gives to something of its own although its format has them."""
    if not storage.taken:
        return
    own = {array.name: array.where for array in header.arrays} | header.where
    own |= {token.text: f"line {token.line}" for token in macros(found)}
    own |= {t.text: f"line {t.line}" for t in reversed(found) if t.text in defined}
    for name, where in own.items():
        if name in storage.taken:
            raise ParseError(f"{where}: {name} is a name of the format {storage.name}; rename it")


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
