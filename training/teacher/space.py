"""The space of programs: draw from it, go through it, take a step in it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from suite.formats.base import NotApplicableError
from suite.harness.arithmetic import evaluate, names_in
from suite.harness.bind import with_sizes
from suite.harness.parse import parse
from suite.matrices.structure import facts
from suite.problem import Op, Problem
from training.teacher import (
    device_lists,
    spmm_blocks,
    spmm_other,
    spmm_rows,
    spmm_teams,
    spmv_balanced,
    spmv_dense,
    spmv_entries,
    spmv_packed,
    spmv_rows,
    spmv_tiles,
)
from training.teacher.strategy import Strategy, Value
from training.teacher.writing import Writing, drawn, options

_SPMV = (spmv_rows, spmv_entries, spmv_balanced, spmv_dense, spmv_packed, spmv_tiles)
_SPMM = (spmm_rows, spmm_teams, spmm_other, spmm_blocks, device_lists)
STRATEGIES: Mapping[str, Strategy] = {
    strategy.name: strategy for module in (*_SPMV, *_SPMM) for strategy in module.STRATEGIES
}
TRIES = 12  # combinations of a strategy that are tried before it is taken not to apply
STEPS = 60  # attempts at a mutation that changes the text


@dataclass(frozen=True)
class Program:
    """A point of the space.

    Attributes:
        strategy: Its name.
        parameters: Their names and values, in the strategy's order.
        writing: How it is written.
    """

    strategy: str
    parameters: tuple[tuple[str, Value], ...]
    writing: Writing = field(default_factory=Writing)

    @cached_property
    def text(self) -> str:
        """The program."""
        return (
            STRATEGIES[self.strategy].render(dict(self.parameters), self.writing).text(self.writing)
        )


class Asked:
    """A problem, and what has been found out about which programs apply to it.

    Args:
        problem: What is asked.
        known: Another problem with the same matrix, so that nothing is found out twice.
    """

    def __init__(self, problem: Problem, known: Asked | None = None) -> None:
        csr = problem.matrix.csr
        self.problem = problem
        self._facts: Mapping[str, int] = known._facts if known else facts(csr)
        self._known: dict[str, int] = {
            "rows": csr.shape[0],
            "cols": csr.shape[1],
            "nnz": int(csr.nnz),
            "n": problem.columns,
            "itemsize": problem.dtype.numpy.itemsize,
            **self._facts,
        }
        self._formats: dict[str, bool] = known._formats if known else {}

    def accepts(self, text: str) -> bool:
        """Whether format and ``require`` lines of a program accept the problem.

        Requirements on sizes that only a conversion would tell are taken to hold.
        """
        declaration = parse(_head(text))
        known = with_sizes(declaration, self._known)
        for expression, _ in declaration.requires:
            if names_in(expression) <= known.keys() and not evaluate(expression, known):
                return False
        spelling = declaration.format.spelling
        if spelling not in self._formats:
            try:
                declaration.format.footprint(self.problem.matrix.csr)
                self._formats[spelling] = True
            except NotApplicableError:
                self._formats[spelling] = False
        return self._formats[spelling]


def _head(text: str) -> str:
    """The header lines of a program, which are quickly read and say where it applies."""
    return "\n".join(line for line in text.splitlines() if line.startswith("//!"))


def of(op: Op) -> list[Strategy]:
    """The strategies of an operation."""
    return [strategy for strategy in STRATEGIES.values() if strategy.op is op]


def draw(rng: random.Random, asked: Asked) -> Program:
    """A program that applies: a strategy, then its parameters, then the writing, all uniformly.

    Raises:
        ValueError: None applies.
    """
    left = of(asked.problem.op)
    while left:
        strategy = rng.choice(left)
        program = draw_from(rng, asked, strategy)
        if program is not None:
            return program
        left.remove(strategy)
    raise ValueError(f"{asked.problem.key}: no strategy applies; add one that always does")


def draw_from(rng: random.Random, asked: Asked, strategy: Strategy) -> Program | None:
    """A program of one strategy, None where none was found that applies."""
    for _ in range(TRIES):
        chosen = rng.choice(strategy.combinations)
        program = Program(strategy.name, tuple(chosen.items()), drawn(rng.getrandbits(48)))
        if asked.accepts(program.text):
            return program
    return None


def every(asked: Asked | None = None) -> Iterator[Program]:
    """Every strategy with all its parameters, plainly written; only those that apply, if asked."""
    for strategy in STRATEGIES.values():
        if asked is not None and strategy.op is not asked.problem.op:
            continue
        for chosen in strategy.combinations:
            program = Program(strategy.name, tuple(chosen.items()))
            if asked is None or asked.accepts(program.text):
                yield program


def mutate(program: Program, rng: random.Random) -> Program:
    """A program that differs in one parameter, or in one choice of writing."""
    for _ in range(STEPS):
        other = _step(program, rng)
        if other.text != program.text:
            return other
    raise ValueError(f"{program.strategy}: no step changes the text in {STEPS} attempts")


def _step(program: Program, rng: random.Random) -> Program:
    strategy = STRATEGIES[program.strategy]
    free = [name for name, values in strategy.choices.items() if len(values) > 1]
    written = options()
    name = rng.choice([*free, *written, "names"])
    if name in free:
        value = rng.choice(strategy.choices[name])
        changed = tuple((k, value if k == name else v) for k, v in program.parameters)
        return (
            replace(program, parameters=changed)
            if changed in combinations(strategy.name)
            else program
        )
    chosen: Any = rng.randrange(1, 1 << 30) if name == "names" else rng.choice(written[name])
    changes: dict[str, Any] = {name: chosen}
    return replace(program, writing=replace(program.writing, **changes))


@cache
def combinations(name: str) -> frozenset[tuple[tuple[str, Value], ...]]:
    """All parameters of a strategy that make sense, for looking up."""
    return frozenset(tuple(one.items()) for one in STRATEGIES[name].combinations)


def table() -> Iterator[str]:
    """The space as a table in Markdown; parameters with one value are left out."""
    yield "| strategy | parameters and their values | combinations |"
    yield "| --- | --- | --- |"
    total = 0
    for strategy in STRATEGIES.values():
        shown = [
            f"{name} {' '.join(map(str, values))}"
            if all(isinstance(value, int) for value in values)
            else f"{name} {', '.join(map(str, values))}"
            for name, values in strategy.choices.items()
            if len(values) > 1
        ]
        total += len(strategy.combinations)
        yield f"| {strategy.name} | {'; '.join(shown)} | {len(strategy.combinations):,} |"
    yield f"| **{len(STRATEGIES)}** | | **{total:,}** |"
