"""A strategy of multiplying, and a program: a strategy, its parameters and a way of writing it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from suite.harness.bind import ARRAY_TYPES, DENSE, OUTPUT, PROBLEM_SIZES
from suite.harness.storage import Storage, choose
from suite.problem import Op
from training.teacher.writing import Lines, Writing, deeper

Value = int | str
Parameters = Mapping[str, Value]
Choices = Mapping[str, tuple[Value, ...]]
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLAIN = frozenset({"row", "k", "lane", "i", "begin", "col", "end", "first", "step", "low", "high"})
_C_TYPE = {"int32": "int"}


@dataclass
class Draft:
    """A program before it is written down; lines have canonical names.

    Attributes:
        op: Operation.
        fmt: The ``//! format`` line.
        idea: One or two sentences for the comment on top; empty where the program is long.
        constants: ``//! let`` by name.
        requires: Conditions.
        arrays: ``derived`` and ``workspace`` lines: kind, name, type, size.
        init_zero: Whether the output is cleared first.
        functions: Code before the kernels.
        prepares: Lines after ``//! prepare``.
        launches: Lines after ``//! launch``.
        kernels: Name, launch bounds and body of each kernel.
        bounds: Launch bounds of ``multiply`` where it has none of its own.
        kept: Bytes of the matrix, in the code, where ``multiply`` reads it by ``load`` and about
            ``KEEP`` megabytes of it are to stay in the L2; empty where it reads it otherwise.
    """

    op: Op
    fmt: str
    idea: str
    constants: dict[str, int] = field(default_factory=dict)
    requires: list[str] = field(default_factory=list)
    arrays: list[tuple[str, str, str, str]] = field(default_factory=list)
    init_zero: bool = False
    functions: Lines = field(default_factory=list)
    prepares: list[str] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)
    kernels: list[tuple[str, str, Lines]] = field(default_factory=list)
    bounds: str = ""
    kept: str = ""

    @property
    def storage(self) -> Storage:
        """What the format line brings along."""
        name, *given = self.fmt.split()
        return choose(name, {k: int(v) for k, _, v in (word.partition("=") for word in given)})

    def text(self, w: Writing) -> str:
        """The program as ``w`` writes it."""
        self.kernels = [
            (name, self.bounds or bounds, w.by_block(body, self.kept) if self.kept else body)
            if name == "multiply"
            else (name, bounds, body)
            for name, bounds, body in self.kernels
        ]
        used = {word for line in self._all_lines() for word in _WORD.findall(line)}
        constants = {name: value for name, value in self.constants.items() if name in used}
        head = [f"op {self.op}", f"format {self.fmt}"]
        if w.constants == "let":
            head += [f"let {name} {value}" for name, value in constants.items()]
        head += [f"require {condition}" for condition in self.requires]
        head += [" ".join(array) for array in self.arrays]
        head += ["init zero"] if self.init_zero else []
        head += [f"prepare {line}" for line in self.prepares]
        head += [f"launch {line}" for line in self.launches]
        if w.constants == "constexpr":  # the header's arithmetic does not see them
            head = [_numbers(line, constants) for line in head]
        lines = [f"//! {line}" for line in head] + [""]
        if w.comments != "none" and self.idea:
            lines += _wrapped(self.idea)
        if w.constants == "constexpr":
            code = {word for line in self._code_lines() for word in _WORD.findall(line)}
            own = [f"constexpr int {k} = {v};" for k, v in constants.items() if k in code]
            lines += [*own, ""] if own else []
        lines += [*self.functions, ""] if self.functions else []
        for name, bounds, body in self.kernels:
            lines += [*self._kernel(w, name, bounds, body), ""]
        while not lines[-1]:
            lines.pop()
        return w.finish(lines, constants, _taken(self.storage.support))

    def _code_lines(self) -> Iterator[str]:
        yield from self.functions
        for _, bounds, body in self.kernels:
            yield bounds
            yield from body

    def _all_lines(self) -> Iterator[str]:
        yield from self._code_lines()
        yield from (*self.prepares, *self.launches, *self.requires)
        yield from (size for *_, size in self.arrays)

    def _kernel(self, w: Writing, name: str, bounds: str, body: Lines) -> Lines:
        """A kernel whose parameters are what its body names."""
        used = {word for line in body for word in re.findall(r"(?<![.\w])[A-Za-z_]\w*", line)}
        prepares = {line.split()[0] for line in self.prepares}
        start = f'extern "C" __global__ void {f"{bounds} " if bounds else ""}{name}'
        parameters = w.parameters(self._parameters(used, name in prepares))
        return [
            *w.head(start, parameters),
            *deeper(body),
            "}",
        ]

    def _parameters(self, used: set[str], preparing: bool) -> dict[str, list[str]]:
        storage = self.storage
        fmt = storage.format
        read = {k: f"const {_C_TYPE[v]}*" for k, v in fmt.index_names.items()}
        read |= dict.fromkeys(fmt.value_names, "const real*")
        read |= {a.name: f"const {ARRAY_TYPES[a.dtype][0]}*" for a in storage.derived}
        for kind, array, dtype, _ in self.arrays:
            const = "const " if kind == "derived" and not preparing else ""
            read[array] = f"{const}{ARRAY_TYPES[dtype][0]}*"
        sizes = (*PROBLEM_SIZES, *fmt.size_names, *(size[0] for size in storage.sizes))
        dense, output = DENSE[self.op], OUTPUT[self.op]
        return {
            "sizes": [f"int {s}" for s in sizes if s in used],
            "matrix": [f"{kind} __restrict__ {k}" for k, kind in read.items() if k in used],
            "dense": [f"const real* __restrict__ {dense}"] if dense in used else [],
            "output": [f"real* __restrict__ {output}"] if output in used else [],
        }


Render = Callable[[Parameters, Writing], Draft]


@dataclass(frozen=True)
class Strategy:
    """A way of multiplying, with the parameters that it leaves open.

    Attributes:
        name: Unique; begins with operation and format.
        op: Operation.
        choices: Values of each parameter.
        render: Makes the program of chosen values.
        fits: Which combinations make sense.
    """

    name: str
    op: Op
    choices: Choices
    render: Render
    fits: Callable[[Parameters], bool] = lambda _: True

    @cached_property
    def combinations(self) -> tuple[dict[str, Value], ...]:
        """Every combination of values that makes sense."""
        all_values = itertools.product(*self.choices.values())
        combined = (dict(zip(self.choices, values, strict=True)) for values in all_values)
        return tuple(one for one in combined if self.fits(one))


@cache
def _taken(support: str) -> frozenset[str]:
    """Names in a device format's code that a program would hide."""
    return frozenset(_WORD.findall(support)) - _PLAIN


def _numbers(line: str, constants: Mapping[str, int]) -> str:
    return _WORD.sub(lambda match: str(constants.get(match[0], match[0])), line)


def _wrapped(text: str, width: int = 96) -> Lines:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] += f" {word}"
    return [f"//{line}" for line in lines]
