"""Ways to search the teacher's space for a fast program of one problem: a row for each.

A search proposes programs that apply and that it has not proposed before, and is told what each is
worth. It knows no device. The same seed and the same answers give the same proposals.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from training.teacher.space import STRATEGIES, Asked, Program, combinations, draw, mutate, of
from training.teacher.strategy import Value

TRIES = 400  # attempts at something that was not proposed before
FAILED = 5.0  # logarithm of a time for what is not right: slower than all that is
START = 32  # random programs before an evolution begins
PARENTS = 8  # best ones that others are made of
FRESH = 0.2  # share of an evolution that is drawn anew


class Search(Protocol):
    """A search for one problem."""

    def ask(self) -> Program | None:
        """The next program; None where nothing new is found."""
        ...

    def tell(self, program: Program, logarithm: float | None) -> None:
        """What became of a program.

        Args:
            program: One that was proposed.
            logarithm: Of its time over some fixed time of the problem; None where it is not right.
        """
        ...


class RandomSearch:
    """A strategy that applies, its parameters and a writing, each uniformly; starts nowhere."""

    def __init__(self, asked: Asked, seed: str, start: Sequence[Program] = ()) -> None:
        self._asked, self._random = asked, random.Random(seed)
        self._seen: set[str] = set()

    def ask(self) -> Program | None:
        """See ``Search``."""
        return _new(lambda: draw(self._random, self._asked), self._seen)

    def tell(self, program: Program, logarithm: float | None) -> None:
        """Nothing is learnt."""


class Evolution:
    """Random programs first; then the best ones with one thing changed, and some random ones.

    Where there are programs to start from, they take the place of the first random ones.
    """

    def __init__(self, asked: Asked, seed: str, start: Sequence[Program] = ()) -> None:
        self._asked, self._random = asked, random.Random(seed)
        self._seen: set[str] = set()
        self._start = [program for program in start if asked.accepts(program.text)]
        self._drawn = len(self._start) or START
        self._best: list[tuple[float, int, Program]] = []
        self._told = 0

    def ask(self) -> Program | None:
        """See ``Search``."""
        return _new(self._propose, self._seen)

    def tell(self, program: Program, logarithm: float | None) -> None:
        """Keeps the best."""
        self._told += 1
        if logarithm is not None:
            self._best = sorted([*self._best, (logarithm, self._told, program)])[:PARENTS]

    def _propose(self) -> Program:
        if self._start:
            return self._start.pop(0)
        first = self._told < self._drawn or not self._best
        if first or self._random.random() < FRESH:
            return draw(self._random, self._asked)
        changed = mutate(self._random.choice(self._best)[2], self._random)
        applies = self._asked.accepts(changed.text)
        return changed if applies else draw(self._random, self._asked)


class Tpe:
    """Optuna's tree-structured Parzen estimator over strategies and their parameters.

    Programs are plainly written. What does not apply costs no measurement and is told to be bad.
    Programs to start from come first.
    """

    def __init__(self, asked: Asked, seed: str, start: Sequence[Program] = ()) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        number = random.Random(seed).getrandbits(32)
        sampler = optuna.samplers.TPESampler(seed=number, constant_liar=True)
        self._study = optuna.create_study(sampler=sampler)
        self._asked = asked
        self._names = [strategy.name for strategy in of(asked.problem.op)]
        self._trials: dict[Program, optuna.trial.Trial] = {}
        self._known: dict[Program, float] = {}
        for program in start:
            self._study.enqueue_trial(_trial(program))

    def ask(self) -> Program | None:
        """See ``Search``."""
        for _ in range(TRIES):
            trial = self._study.ask()
            program = self._suggested(trial)
            if program is None or not self._asked.accepts(program.text):
                self._study.tell(trial, FAILED)
            elif program in self._known:
                self._study.tell(trial, self._known[program])
            elif program in self._trials:
                self._study.tell(trial, FAILED)  # asked, and not told yet
            else:
                self._trials[program] = trial
                return program
        return None

    def tell(self, program: Program, logarithm: float | None) -> None:
        """Tells Optuna."""
        value = FAILED if logarithm is None else logarithm
        self._known[program] = value
        self._study.tell(self._trials.pop(program), value)

    def _suggested(self, trial: object) -> Program | None:
        import optuna

        assert isinstance(trial, optuna.trial.Trial)
        name = trial.suggest_categorical("strategy", self._names)
        chosen: list[tuple[str, Value]] = []
        for parameter, values in STRATEGIES[name].choices.items():
            at = trial.suggest_int(f"{name}.{parameter}", 0, len(values) - 1)
            chosen.append((parameter, values[at]))
        found = tuple(chosen)
        return Program(name, found) if found in combinations(name) else None


def _trial(program: Program) -> dict[str, Value]:
    """A program as the study's parameters have it."""
    choices = STRATEGIES[program.strategy].choices
    places = {f"{program.strategy}.{k}": choices[k].index(v) for k, v in program.parameters}
    return {"strategy": program.strategy, **places}


SEARCHES: Mapping[str, Callable[[Asked, str, Sequence[Program]], Search]] = {
    "random": RandomSearch,
    "tpe": Tpe,
    "evolution": Evolution,
}


def best_after(logarithms: list[float | None], count: int) -> float | None:
    """The lowest of the first ``count``; None where none is right."""
    return min((one for one in logarithms[:count] if one is not None), default=None)


def expected_best(logarithms: list[float | None], count: int, failure: float) -> float:
    """What the lowest of ``count`` is on average, over all orders in which they may come.

    Args:
        logarithms: Of the times; None for what is not right.
        count: At most as many as there are.
        failure: What counts where none of the ``count`` is right.
    """
    right = sorted(one for one in logarithms if one is not None)
    whole, total = len(logarithms), 0.0
    ways = _log_ways(whole, count)
    left = 1.0
    for at, value in enumerate(right):
        # The at-th best is the lowest where the others come of those behind it.
        behind = whole - at - 1
        share = math.exp(_log_ways(behind, count - 1) - ways) if behind >= count - 1 else 0.0
        total += share * value
        left -= share
    return total + max(left, 0.0) * failure


def _log_ways(whole: int, chosen: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(chosen + 1) - math.lgamma(whole - chosen + 1)


def _new(propose: Callable[[], Program], seen: set[str]) -> Program | None:
    for _ in range(TRIES):
        program = propose()
        if program.text not in seen:
            seen.add(program.text)
            return program
    return None
