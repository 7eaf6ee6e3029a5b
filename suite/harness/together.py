"""Several evaluators as one, on a device that programs may share: what comes next is begun ahead.

Verdicts are asked for one by one, in any order, and are the same as those of one evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future

from suite.evaluation import Evaluation
from suite.harness.crew import Crew
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix
from suite.problem import DType, Problem
from suite.program import Answer

_Key = tuple[str, str, DType, Answer]


def _key(problem: Problem, answer: Answer) -> _Key:
    return problem.matrix.digest, problem.label, problem.dtype, answer


class _Member:
    """One of them; but for the first, it is made when there is something for it to do."""

    def __init__(self, make: Callable[[], Evaluator], made: Evaluator | None = None) -> None:
        self._make, self._made = make, made
        self.to_release: list[Matrix] = []
        self._closed = False

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        self._made = evaluator = self._made or self._make()
        if self._closed:  # while it was being made
            evaluator.close()
        while self.to_release:
            evaluator.release(self.to_release.pop())
        return evaluator.evaluate(problem, answer)

    def close(self) -> None:
        self._closed = True
        if self._made is not None:
            self._made.close()


class Together:
    """Evaluates answers, and ahead of that those that will be asked about.

    Args:
        first: An evaluator; closed with the rest.
        make: Makes another one like it.
        count: How many of them, at most.

    Attributes:
        facts: What the device is.
    """

    def __init__(self, first: Evaluator, make: Callable[[], Evaluator], count: int) -> None:
        self.facts = first.facts
        self._members = [_Member(make, first if at == 0 else None) for at in range(count)]
        self._crew = Crew(self._members)
        self._begun: dict[_Key, Future[Evaluation]] = {}

    def evaluate_ahead(self, asked: Iterable[tuple[Problem, Answer]]) -> None:
        """Begins on answers in this order, without waiting for any."""
        for problem, answer in asked:
            key = _key(problem, answer)
            if key not in self._begun:
                self._begun[key] = self._begin(problem, answer)

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        """See ``Evaluator.evaluate``; an answer that was begun ahead is waited for."""
        begun = self._begun.pop(_key(problem, answer), None) or self._begin(problem, answer)
        return begun.result()

    def release(self, matrix: Matrix) -> None:
        """Forgets a matrix, and what was begun on it and nobody has asked about."""
        for key in [key for key in self._begun if key[0] == matrix.digest]:
            self._begun.pop(key).cancel()
        for member in self._members:
            member.to_release.append(matrix)

    def close(self) -> None:
        """Ends every process, and whatever is under way."""
        self._crew.close()

    def _begin(self, problem: Problem, answer: Answer) -> Future[Evaluation]:
        return self._crew.submit(lambda member: member.evaluate(problem, answer), urgent=False)
