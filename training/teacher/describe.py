"""What a program does, whoever wrote it and however: for shares of strategies and for novelty.

``describe`` reads the header and the tokens, never a name that the author chose: operation,
format, geometry of the launches (evaluated at two sets of sizes, so that a constant may stand
anywhere), and what the code uses. How deep a loop is written, or in which order, does not show.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from suite.formats import formats
from suite.harness.arithmetic import ExpressionError, evaluate, names_in
from suite.harness.bind import DENSE, OUTPUT, PROBLEM_SIZES
from suite.harness.parse import parse, unwrap
from suite.harness.plan import Declaration, LaunchLine
from suite.harness.signature import Token, tokens
from suite.harness.storage import choose, device_formats

_USES: Mapping[str, str] = {
    "__ldcs": "ldcs",
    "__ldg": "ldg",
    "__ldcg": "ldcg",
    "__ldca": "ldca",
    "__ldlu": "ldlu",
    "__stcs": "stcs",
    "__stcg": "stcg",
    "atomicAdd": "atomic",
    "__shared__": "shared",
    "__syncthreads": "barrier",
    "__syncwarp": "syncwarp",
    "__shfl_sync": "shuffle",
    "__shfl_down_sync": "sum",
    "__shfl_xor_sync": "sum",
    "__shfl_up_sync": "scan",
    "__ballot_sync": "vote",
    "__any_sync": "vote",
    "__reduce_max_sync": "vote",
    "__reduce_add_sync": "sum",
    "sizeof": "bytes",
    "int2": "int2",
    "int4": "int4",
    "real2": "real2",
    "real4": "real4",
    "float2": "real2",
    "float4": "float4",
    "double2": "real2",
    "__launch_bounds__": "bounds",
}
_TYPES = frozenset(
    {"real", "real2", "real4", "int", "unsigned", "float", "double", "float4", "bool"}
)
_KNOWN = (
    "auto bool break case char const constexpr continue do double else extern false float for"
    " if int long return short signed sizeof static struct switch template true typedef"
    " typename unsigned void volatile while unroll pragma define undef ifdef ifndef elif endif"
    " real real2 real4 int2 int4 uint2 uint4 float2 float4 double2 uchar4 ushort2 size_t min"
    " max fma abs threadIdx blockIdx blockDim gridDim warpSize z w C x y B make_int2 make_int4"
    " make_float4 atomicAdd atomicMax atomicExch"
)
_WORDS = frozenset(_KNOWN.split())
_SIZES = (10_007, 4_099)  # probes: two sizes of everything, prime so that factors show


def describe(text: str) -> str:
    """The key of what a program does; programs that differ in their writing alone have the same.

    Raises:
        ParseError: The text is no program.
    """
    declaration = parse(text)
    code = [token for token in tokens(declaration.code) if token.kind != "newline"]
    constants = dict(declaration.constants) | dict(_constexprs(code))
    marks = {_USES[token.text] for token in code if token.text in _USES}
    marks |= {f"unroll{depth}" for depth in _unrolled(code, constants)}
    marks |= {f"{size}held" for size in _held(code, constants)}
    if declaration.init_zero:
        marks.add("zeroed")
    arrays = [f"{a.dtype}:{_at_probes(a.count, declaration)}" for a in declaration.derived]
    launches = [_geometry(line, declaration) for line in declaration.launches]
    return " | ".join(
        [
            f"{declaration.op} {declaration.spelling}",
            " ".join(launches),
            *arrays,
            " ".join(sorted(marks)),
        ]
    )


def normalised(text: str) -> str:
    """The text without comments and spaces, names replaced by the order of their appearance."""
    code = unwrap(text)
    numbers: dict[str, str] = {}

    def shown(word: str) -> str:
        if word in known or word.startswith("__"):
            return word
        return numbers.setdefault(word, f"_{len(numbers)}")

    known = _WORDS | _offered()
    out: list[str] = []
    for line in code.split("\n"):
        stripped = line.strip()
        if stripped.startswith("//!"):
            keyword, _, rest = stripped[3:].strip().partition(" ")
            words = [shown(t.text) if t.kind == "name" else t.text for t in tokens(rest)]
            out.append(f"{keyword} {' '.join(words)}")
    found = [t for t in tokens(code) if t.kind != "newline"]
    for position, token in enumerate(found):
        member = position > 0 and found[position - 1].text in (".", "->")
        named = token.kind == "name" and not member
        out.append(shown(token.text) if named else token.text)
    return " ".join(out)


def digest(key: str) -> str:
    """A short name for a key."""
    return hashlib.blake2b(key.encode(), digest_size=6).hexdigest()


def _offered() -> frozenset[str]:
    names = set(PROBLEM_SIZES) | set(DENSE.values()) | set(OUTPUT.values())
    for fmt in formats().values():
        names |= {fmt.name, *fmt.size_names, *fmt.index_names, *fmt.value_names}
    for name in device_formats():
        storage = choose(name, {})
        names |= {name, *storage.taken}
    return frozenset(
        names
        | {"grid", "block", "shared", "zero", "ceildiv", "ushort", "uchar"}
        | {"c", "sigma", "b", "percent", "spmv", "spmm"}
    )


def _constexprs(code: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """Constants of the form ``constexpr int NAME = NUMBER;``."""
    for at, token in enumerate(code[:-4]):
        if token.text == "constexpr" and code[at + 3].text == "=" and code[at + 4].text.isdigit():
            yield code[at + 2].text, int(code[at + 4].text)


def _number(token: Token, constants: Mapping[str, int]) -> int | None:
    return int(token.text) if token.text.isdigit() else constants.get(token.text)


def _unrolled(code: Sequence[Token], constants: Mapping[str, int]) -> Iterator[int]:
    """Depths that ``#pragma unroll N`` asks for."""
    for at, token in enumerate(code[:-1]):
        if token.text == "unroll":
            depth = _number(code[at + 1], constants)
            if depth is not None:
                yield depth


def _held(code: Sequence[Token], constants: Mapping[str, int]) -> Iterator[int]:
    """Lengths of arrays of a constant length."""
    for at, token in enumerate(code[:-3]):
        if token.text in _TYPES and code[at + 1].kind == "name" and code[at + 2].text == "[":
            inside = itertools.takewhile(lambda t: t.text != "]", code[at + 3 :])
            length = " ".join(t.text for t in inside).replace("/", "//")
            with suppress(ExpressionError):
                yield evaluate(length, constants)


def _geometry(line: LaunchLine, declaration: Declaration) -> str:
    axes = [_at_probes(text, declaration) for text in line.block]
    shape = "x".join(axis.split(",")[0] for axis in axes)
    probes = [_at_probes(text, declaration) for text in (*line.grid, line.shared)]
    return f"{shape}@{digest(' '.join(probes))[:6]}"


def _at_probes(text: str, declaration: Declaration) -> str:
    values = []
    for size in _SIZES:
        known = dict.fromkeys(names_in(text), size) | {"itemsize": 4, "sms": 132}
        known |= {"nnz": 9 * size, "n": 32, "slots": 11 * size, "width": 17, "pitch": size}
        try:
            values.append(str(evaluate(text, {**known, **declaration.constants})))
        except ExpressionError:
            values.append("undefined")
    return ",".join(values)
