"""Verdicts on many programs at once: compiled on all cores, judged one by one, or known already."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from suite.evaluation import Evaluation
from suite.harness.compile import CompileError
from suite.harness.compilers import CompilerGaveUp
from suite.harness.device import DeviceFacts
from suite.harness.parse import parse
from suite.harness.plan import ParseError
from suite.matrices.base import Matrix
from suite.problem import DType, Problem
from suite.program import Answer, KernelProgram, LibraryCall
from training.errors import TrainingError
from training.identity import identity
from training.measured import Entry, Measurements
from training.outcome import Outcome, outcome_of

REFERENCE = "cusparse"


class Evaluates(Protocol):
    """What a judge needs of ``suite.harness.evaluate.Evaluator``."""

    facts: DeviceFacts

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        """The verdict on one answer."""
        ...

    def compile_ahead(self, programs: Sequence[KernelProgram], dtype: DType) -> None:
        """Compiles in parallel."""
        ...

    def convert_ahead(self, problem: Problem, programs: Sequence[KernelProgram]) -> None:
        """Begins to convert a matrix to what programs read."""
        ...

    def binary(self, program: KernelProgram, dtype: DType) -> bytes:
        """Machine code."""
        ...

    def release(self, matrix: Matrix) -> None:
        """Forgets a matrix."""
        ...


@dataclass(frozen=True)
class Judged:
    """A verdict, and where it comes from.

    Attributes:
        outcome: The verdict.
        identity: Of the program, "" where it has no machine code.
        known: Whether it was known before.
    """

    outcome: Outcome
    identity: str = ""
    known: bool = False


@dataclass
class Spent:
    """Seconds that went into each kind of work, and what it found.

    Attributes:
        compiling: Seconds.
        measuring: Seconds, verification included.
        contradictions: Repeats that had another status than what was known.
        rechecked: Repeats that were judged again to see that.
        statuses: Of all verdicts.
    """

    compiling: float = 0.0
    measuring: float = 0.0
    contradictions: int = 0
    rechecked: int = 0
    statuses: Counter[str] = field(default_factory=Counter)


class Judge:
    """Judges programs, remembering.

    Args:
        evaluator: Judges what is new.
        known: What was judged before.
        recheck: Share of what is known that is judged again all the same, to see whether programs
            of one identity have one verdict.
        seed: Of which are.
    """

    def __init__(
        self, evaluator: Evaluates, known: Measurements, recheck: float = 0.0, seed: int = 0
    ) -> None:
        self._evaluator, self._known = evaluator, known
        self._recheck, self._random = recheck, random.Random(seed)
        self.spent = Spent()

    @property
    def known(self) -> Measurements:
        """What was judged before."""
        return self._known

    def compile(self, asked: Sequence[tuple[Problem, KernelProgram]]) -> None:
        """Compiles on all cores, so that judging finds binaries; may run beside other work."""
        started = time.perf_counter()
        by_dtype: dict[DType, dict[str, KernelProgram]] = {}
        for problem, program in asked:
            if not program.unfinished:
                by_dtype.setdefault(problem.dtype, {})[program.text] = program
        for dtype, programs in by_dtype.items():
            self._evaluator.compile_ahead(list(programs.values()), dtype)
        self.spent.compiling += time.perf_counter() - started

    def reference(self, problem: Problem) -> Outcome | None:
        """What the library's default takes; None where it cannot be timed."""
        outcome = self._known.get(REFERENCE, problem)
        if outcome is None:
            started = time.perf_counter()
            call = LibraryCall(REFERENCE)
            outcome = outcome_of(self._evaluator.evaluate(problem, call))
            self._known.put([Entry(REFERENCE, problem, "", outcome)])
            self.spent.measuring += time.perf_counter() - started
        return outcome if outcome.hot_us is not None else None

    def judge(self, asked: Sequence[tuple[Problem, KernelProgram]]) -> list[Judged]:
        """Verdicts in their order; each new one is kept at once.

        Raises:
            TrainingError: The machine failed on every one, so that going on makes no sense.
        """
        started = time.perf_counter()
        named = [(*one, self._identity(*one)) for one in asked]
        for _, group in groupby(named, key=lambda one: id(one[0])):
            mine = list(group)
            problem = mine[0][0]
            new = [p for _, p, name in mine if not (name and self._known.get(name, problem))]
            self._evaluator.convert_ahead(problem, new)
        found = [self._judge(*one) for one in named]
        self.spent.measuring += time.perf_counter() - started
        self.spent.statuses.update(one.outcome.status.value for one in found)
        if found and not any(one.outcome.judged for one in found):
            raise TrainingError(
                f"the machine failed on all of {len(found)} programs: {found[0].outcome.error};"
                " the same command goes on"
            )
        return found

    def _judge(self, problem: Problem, program: KernelProgram, name: str) -> Judged:
        known = self._known.get(name, problem) if name else None
        if known is not None and not self._random.random() < self._recheck:
            return Judged(known, name, known=True)
        outcome = outcome_of(self._evaluator.evaluate(problem, program))
        if known is not None and outcome.judged:
            self.spent.rechecked += 1
            self.spent.contradictions += known.status is not outcome.status
            return Judged(known, name, known=True)
        if name:
            self._known.put([Entry(name, problem, program.text, outcome)])
        return Judged(outcome, name)

    def _identity(self, problem: Problem, program: KernelProgram) -> str:
        """Empty where there is no machine code; the verdict says why."""
        if program.unfinished:
            return ""
        with suppress(ParseError, CompileError, CompilerGaveUp, RuntimeError, OSError):
            declaration = parse(program.text)
            if all(line.kernel in declaration.kernels for line in declaration.launches) and all(
                line.kernel in declaration.kernels for line in declaration.prepares
            ):
                return identity(declaration, self._evaluator.binary(program, problem.dtype))
        return ""
