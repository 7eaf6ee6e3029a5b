"""One pytest run: who is asked what, building each matrix once, and the rows that come of it.

Knows no pytest. An ask that goes wrong in any way still leaves its rows.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from scipy import sparse

from suite.author import Author, Coming, Foresees, Kind
from suite.config import ConfigError, SuiteConfig
from suite.evaluation import Evaluation, Status
from suite.harness.device import DeviceFacts
from suite.journal import Journal
from suite.matrices import collection
from suite.matrices.base import Matrix, MatrixError, MatrixSpec
from suite.problem import DType, Op, Problem
from suite.program import Answer
from suite.record import Ask, Row, expected_answers, judged, missing

KEPT_ENTRIES = 2_000_000  # of a matrix that was read to check it; larger ones are read again


class Evaluates(Protocol):
    """What a campaign needs of ``suite.harness.evaluate.Evaluator``."""

    facts: DeviceFacts

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        """The verdict on one answer."""
        ...

    def release(self, matrix: Matrix) -> None:
        """Drops what is kept of a matrix."""
        ...

    def close(self) -> None:
        """Ends the workers."""
        ...


@runtime_checkable
class EvaluatesAhead(Evaluates, Protocol):
    """An evaluator that gains time by knowing what comes next."""

    def evaluate_ahead(self, asked: Iterable[tuple[Problem, Answer]]) -> None:
        """Begins on answers that will be asked about, in this order."""
        ...


@dataclass(frozen=True)
class Pair:
    """A problem and an author, before anything is built."""

    op: Op
    matrix: MatrixSpec
    columns: int
    author: Author

    @property
    def id(self) -> str:
        """Readable and stable, for pytest ids."""
        columns = "" if self.op is Op.SPMV else f"n{self.columns}-"
        return f"{self.matrix.name}-{columns}{self.author.name}"


def pairs(config: SuiteConfig, op: Op) -> Iterator[Pair]:
    """Everything that is asked of one operation, matrix by matrix."""
    for matrix in config.matrices:
        for columns in (1,) if op is Op.SPMV else config.columns:
            for author in config.authors:
                if author.answers(op.value):
                    yield Pair(op, matrix, columns, author)


def ask(config: SuiteConfig, pair: Pair, test: str) -> Ask:
    """The pair as it goes on record, with the pytest item that measures it."""
    return Ask(
        test=test,
        op=pair.op,
        columns=pair.columns,
        dtype=config.dtype,
        matrix=pair.matrix.name,
        family=pair.matrix.family,
        author=pair.author.name,
        kind=pair.author.kind,
        samples=config.samples,
    )


def check_files(specs: Sequence[MatrixSpec], dtype: DType) -> list[MatrixSpec]:
    """Reads every matrix that comes from outside, so that a bad one is found before measuring.

    Args:
        specs: What will be measured; generated matrices are passed over.
        dtype: The precision that the values have to fit.

    Returns:
        The same specs; those of small files hold what was read.

    Raises:
        ConfigError: With one line for each file, or matrix of the collection, that cannot be used.
    """
    out, mistakes = [], []
    for spec in specs:
        if "path" in spec.params or spec.family == collection.FAMILY:
            try:
                matrix = spec.build()
                _ = Problem(Op.SPMV, matrix, dtype=dtype).values  # raises where one does not fit
            except MatrixError as error:
                mistakes.append(f"--suite-matrices: {error}")
                continue
            csr = matrix.csr
            if csr.nnz <= KEPT_ENTRIES:
                spec = replace(spec, make=partial(_same, csr))
        out.append(spec)
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return out


def _same(csr: sparse.csr_array) -> sparse.csr_array:
    return csr


class Shelf:
    """Holds one built matrix, and builds the next one in the background meanwhile.

    Args:
        specs: What can be built.
        evaluator: Told when a matrix is not needed any more.
    """

    def __init__(self, specs: Sequence[MatrixSpec], evaluator: Evaluates) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._evaluator = evaluator
        self._building: dict[str, Future[Matrix]] = {}
        self._held: str | None = None

    def take(self, name: str, following: str | None = None) -> Matrix:
        """The matrix; the one held before is released, and ``following`` is started on.

        Raises:
            MatrixError: It cannot be built.
        """
        if self._held not in (None, name):
            self.drop()
        self._held = name
        future = self._start(name)
        try:
            return future.result()
        finally:
            if following is not None:
                self._start(following)

    def drop(self) -> None:
        """Releases the matrix that is held."""
        future = self._building.pop(self._held or "", None)
        self._held = None
        if future is not None and future.done() and future.exception() is None:
            self._evaluator.release(future.result())

    def _start(self, name: str) -> Future[Matrix]:
        if name not in self._building:
            self._building[name] = future = Future[Matrix]()
            # Not a pool: its threads are waited for at exit, and a large build outlives an
            # interrupt.
            threading.Thread(target=_build, args=(self._specs[name], future), daemon=True).start()
        return self._building[name]


def _build(spec: MatrixSpec, future: Future[Matrix]) -> None:
    try:
        future.set_result(spec.build())
    except MatrixError as error:
        future.set_exception(error)
    except Exception as error:  # a matrix source may fail in any way, and its asks still get rows
        future.set_exception(MatrixError(f"{spec.name}: {type(error).__name__}: {error}"))


class Campaign:
    """Measures asks one by one and writes their rows down.

    Args:
        name: Identifier, shared by every process of the campaign.
        config: What was decided.
        evaluator: Judges answers; closed with the campaign.
        journal: Where rows go.
        done: Rows of an earlier run of the campaign by their ask: what has one is not measured.
        written: Answers of authors who had written several, by the ask: they are not asked again.
    """

    def __init__(
        self,
        name: str,
        config: SuiteConfig,
        evaluator: Evaluates,
        journal: Journal,
        done: Mapping[str, Sequence[Row]] = MappingProxyType({}),
        written: Mapping[str, Sequence[Answer]] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.config = config
        self.evaluator = evaluator
        self.rows: dict[str, list[Row]] = {}
        self._journal = journal
        self._done, self._written = done, written
        self._authors = {author.name: author for author in config.authors}
        self._specs = {spec.name: spec for spec in config.matrices}
        self._shelf = Shelf(config.matrices, evaluator)
        self._after: Mapping[str, str | None] = {}
        self._planned: dict[str, list[Ask]] = {}  # by their matrix
        self._ahead: dict[str, Sequence[Answer]] = {}  # what authors have answered, by the ask

    def plan(self, asks: Sequence[Ask], alone: bool = True) -> None:
        """Writes down what will be asked; in this order, matrices are built ahead.

        Args:
            asks: What will be asked.
            alone: Whether no other process measures some of it.
        """
        self._journal.asked(asks)
        order = list(dict.fromkeys(ask.matrix for ask in asks if not self._is_done(ask)))
        self._after = dict(zip(order, [*order[1:], None], strict=False))
        self._planned = {m: [a for a in asks if a.matrix == m] for m in order}
        for author in self._authors.values():
            if isinstance(author, Foresees):
                with suppress(Exception):  # told when it is asked
                    author.foresee(self._coming(author.name), alone)

    def _coming(self, author: str) -> list[Coming]:
        return [
            Coming(ask.op, self._specs[ask.matrix], ask.columns, ask.dtype, ask.samples)
            for planned in self._planned.values()
            for ask in planned
            if ask.author == author and not self._is_done(ask) and ask.key not in self._written
        ]

    def measure(self, ask: Ask, last_of_matrix: bool = False) -> list[Row]:
        """Asks the author and judges every answer.

        Args:
            ask: What to ask.
            last_of_matrix: Release the matrix afterwards.

        Returns:
            At least one row, already in the journal.
        """
        rows = self.rows.setdefault(ask.problem_key, [])
        mine = list(self._done.get(ask.key, ()))
        if not self._is_done(ask):
            for row in self._answers(ask, {row.sample for row in mine}):
                self._journal.add(row)
                mine.append(row)
        mine.sort(key=lambda row: row.sample)
        rows += mine
        if last_of_matrix:
            self._shelf.drop()
        return mine

    def close(self) -> None:
        """Ends the evaluator and the journal."""
        self._shelf.drop()
        self.evaluator.close()
        self._journal.close()

    def _is_done(self, ask: Ask) -> bool:
        rows = self._done.get(ask.key, ())
        return bool(rows) and len(rows) >= max(row.answers for row in rows)

    def _answers(self, ask: Ask, done: Set[int]) -> Iterator[Row]:
        """The rows of an ask, but for those of the samples that are done."""
        try:
            matrix = self._shelf.take(ask.matrix, self._after.get(ask.matrix))
            self._refuse_another(matrix)
            self._look_ahead(matrix, ask.kind)
            problem = Problem(ask.op, matrix, ask.columns, ask.dtype)
            answers = self._written.get(ask.key) or self._ask(ask, problem)
        except MatrixError as error:
            yield from self._unanswered(ask, done, str(error))
        except Exception as error:  # an author may fail in any way, and its asks still get rows
            reason = f"{ask.author} could not answer: {type(error).__name__}: {error}"
            yield from self._unanswered(ask, done, reason, traceback.format_exc())
        else:
            for sample, answer in enumerate(answers):
                if sample not in done:
                    yield self._judge(ask, problem, answer, sample, len(answers))

    def _look_ahead(self, matrix: Matrix, kind: Kind) -> None:
        """Has everything begun that will be asked of a matrix; of models, once one is asked.

        A model may take its time to write, and others do not wait for it.
        """
        planned = self._planned.get(matrix.name, [])
        ours = [ask for ask in planned if (ask.kind is Kind.MODEL) == (kind is Kind.MODEL)]
        self._planned[matrix.name] = [ask for ask in planned if ask not in ours]
        if not isinstance(self.evaluator, EvaluatesAhead):
            return
        begun = []
        for ask in ours:
            author = self._authors[ask.author]
            if self._is_done(ask):
                continue
            if ask.kind is Kind.MODEL and not isinstance(author, Foresees):
                continue
            problem = Problem(ask.op, matrix, ask.columns, ask.dtype)
            done = {row.sample for row in self._done.get(ask.key, ())}
            answers = self._written.get(ask.key)
            try:
                answers = answers or author.write(problem, ask.samples)
            except Exception:  # told when its turn comes
                continue
            self._ahead[ask.key] = answers
            begun += [(problem, a) for sample, a in enumerate(answers) if sample not in done]
        self.evaluator.evaluate_ahead(begun)

    def _refuse_another(self, matrix: Matrix) -> None:
        for row in (row for rows in self._done.values() for row in rows):
            if row.matrix == matrix.name and row.matrix_digest not in ("", matrix.digest):
                raise MatrixError(
                    f"{matrix.name}: is not what this campaign measured before it was resumed;"
                    " measure anew"
                )

    def _ask(self, ask: Ask, problem: Problem) -> Sequence[Answer]:
        """Asks the author; of several answers it is on record which they are before the first."""
        answers = self._ahead.pop(ask.key, None)
        if answers is None:
            answers = self._authors[ask.author].write(problem, ask.samples)
        if not answers:
            raise ValueError("it wrote nothing")
        if len(answers) > 1 and all(answer.text for answer in answers):
            for answer in answers:
                self._journal.program(answer.digest, answer.text)
            self._journal.answered(ask, [answer.digest for answer in answers])
        return answers

    def _unanswered(self, ask: Ask, done: Set[int], reason: str, log: str = "") -> Iterator[Row]:
        expected = expected_answers(ask)
        for sample in sorted(set(range(expected)) - done):
            yield missing(self.name, ask, sample, reason, log=log, answers=expected)

    def _judge(self, ask: Ask, problem: Problem, answer: Answer, sample: int, answers: int) -> Row:
        self._journal.program(answer.digest, answer.text)
        try:
            verdict = self.evaluator.evaluate(problem, answer)
        except Exception as error:  # the suite's own fault, never the program's
            reason = f"the evaluator failed: {type(error).__name__}: {error}"
            log = traceback.format_exc()
            return missing(self.name, ask, sample, reason, log=log, answers=answers)
        return judged(
            missing(self.name, ask, sample, "", answers=answers), problem, answer, verdict
        )


@dataclass(frozen=True)
class Outcome:
    """How an ask counts as a test.

    Attributes:
        verdict: ``passed``, ``skipped`` or ``failed``.
        reason: One line; empty when passed.
        log: What the compiler or the suite said about it.
    """

    verdict: str
    reason: str = ""
    log: str = ""


def outcome(kind: Kind, rows: Sequence[Row]) -> Outcome:
    """How rows of one ask count as a test.

    A failure is a defect, except where a model wrote the program: then it is a result. What the
    suite itself could not do is a defect for everyone.
    """
    for row in rows:
        defect = row.status is Status.INFRASTRUCTURE_ERROR or kind is not Kind.MODEL
        if defect and row.status not in (Status.OK, Status.NOT_APPLICABLE):
            return Outcome("failed", f"{row.status}: {row.error}", row.log)
    if rows and all(row.status is Status.NOT_APPLICABLE for row in rows):
        return Outcome("skipped", f"{Status.NOT_APPLICABLE}: {rows[0].error}")
    return Outcome("passed")


def representative(rows: Sequence[Row]) -> Row:
    """The row that stands for an ask in tables: the fastest right one, otherwise the first."""
    right = [row for row in rows if row.ok]
    return min(right, key=lambda row: row.hot_us or row.emulated_us or 0.0) if right else rows[0]
