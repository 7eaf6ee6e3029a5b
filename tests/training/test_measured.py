"""What is known of programs: one key for one program, whatever is killed, never the machine's."""

import multiprocessing
import os
import random
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.evaluation import Evaluation, Status, Timing
from suite.harness.compile import Target, compile_source, program_source
from suite.harness.device import DeviceFacts
from suite.harness.evaluate import Evaluator, Settings
from suite.harness.parse import parse
from suite.matrices.base import Matrix
from suite.matrices.named import smoke
from suite.problem import DType, Op, Problem
from suite.program import Answer, KernelProgram
from training.errors import TrainingError
from training.identity import identity
from training.judging import Judge
from training.measured import Entry, Measurements, device_key
from training.outcome import Outcome
from training.teacher.space import STRATEGIES, Program
from training.teacher.writing import Writing

PLAIN = """//! op spmv
//! format csr
//! let BLOCK 128
//! launch multiply grid=ceildiv(rows,BLOCK) block=BLOCK
extern "C" __global__ void multiply(int rows, const int* row_ptr, const int* col_idx,
                                    const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int k = row_ptr[row]; k < row_ptr[row + 1]; k++) sum += vals[k] * x[col_idx[k]];
  y[row] = sum;
}
"""
RENAMED = PLAIN.replace("multiply", "spmv_rows").replace("sum", "total").replace("BLOCK", "THREADS")
OTHERS = {
    "a larger block": PLAIN.replace("BLOCK 128", "BLOCK 256"),
    "another sum": PLAIN.replace("real sum = 0", "real sum = (real)1"),
    "a requirement": PLAIN.replace("//! launch", "//! require rows > 1\n//! launch"),
    "operands exchanged": PLAIN.replace(
        "const real* vals, const real* x", "const real* x, const real* vals"
    ),
    "a clear": PLAIN.replace("//! launch", "//! init zero\n//! launch"),
    "another format": PLAIN.replace("format csr", "format bsr b=1"),
}
RIGHT = Outcome(Status.OK, hot_us=2.0, cold_us=3.0, format="csr")


def identify(text: str) -> str:
    declaration = parse(text)
    target = Target()
    return identity(
        declaration, compile_source(program_source(declaration, target.dtype), target).cubin
    )


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(Op.SPMV, smoke()[0].build())


def test_names_and_comments_make_no_other_program() -> None:
    commented = PLAIN.replace("  real sum", "  // the row's sum\n  real sum")
    assert identify(RENAMED) == identify(commented) == identify(PLAIN)


@pytest.mark.parametrize("what", OTHERS)
def test_what_runs_otherwise_is_another_program(what: str) -> None:
    assert identify(OTHERS[what]) != identify(PLAIN)


@pytest.mark.parametrize("strategy", ["spmv csr team", "spmv hyb", "spmv csr bins", "spmm dia"])
def test_the_teachers_names_make_no_other_program(strategy: str) -> None:
    chosen = tuple(random.Random(0).choice(STRATEGIES[strategy].combinations).items())
    texts = [Program(strategy, chosen, Writing(names=seed)).text for seed in (0, 7, 8)]
    assert len(set(texts)) == 3
    assert len({identify(text) for text in texts}) == 1


def test_what_is_no_object_file_is_compared_whole() -> None:
    declaration = parse(PLAIN)
    assert identity(declaration, b".version 8.0") != identity(declaration, b".version 8.1")


def test_a_file_keeps_what_was_put(tmp_path: Path, problem: Problem) -> None:
    path = tmp_path / "known.sqlite"
    first = Measurements(path, "here")
    assert first.get("p", problem) is None
    first.put([Entry("p", problem, PLAIN, RIGHT)])
    again = Measurements(path, "here")
    assert (again.get("p", problem), again.hits, again.misses) == (RIGHT, 1, 0)
    assert Measurements(path, "elsewhere").get("p", problem) is None
    other = Problem(Op.SPMV, problem.matrix, dtype=DType.FLOAT64)
    assert again.get("p", other) is None
    assert again.get("q", problem) is None


@pytest.mark.parametrize(
    "outcome",
    [Outcome(Status.INFRASTRUCTURE_ERROR, "disk full"), replace(RIGHT, disturbed="power cap")],
)
def test_what_the_machine_is_to_blame_for_is_not_kept(outcome: Outcome, problem: Problem) -> None:
    known = Measurements(None, "here")
    known.put([Entry("p", problem, PLAIN, outcome)])
    assert known.get("p", problem) is None


def test_the_first_verdict_stays(tmp_path: Path, problem: Problem) -> None:
    known = Measurements(tmp_path / "known.sqlite", "here")
    known.put([Entry("p", problem, PLAIN, RIGHT)])
    Measurements(tmp_path / "known.sqlite", "here").put(
        [Entry("p", problem, PLAIN, replace(RIGHT, hot_us=9.0))]
    )
    assert Measurements(tmp_path / "known.sqlite", "here").get("p", problem) == RIGHT


def _write_for_ever(path: Path, name: str, started: Any) -> None:
    known = Measurements(path, "here")
    problem = Problem(Op.SPMV, smoke()[0].build())
    at = 0
    while True:
        known.put([Entry(f"{name}{at}", problem, PLAIN, RIGHT)])
        at += 1
        if at == 20:
            started.set()


def test_processes_share_a_file_and_survive_a_kill(tmp_path: Path, problem: Problem) -> None:
    path, spawn = tmp_path / "known.sqlite", multiprocessing.get_context("spawn")
    events = [spawn.Event() for _ in range(2)]
    writers = [
        spawn.Process(target=_write_for_ever, args=(path, f"w{at}-", event), daemon=True)
        for at, event in enumerate(events)
    ]
    for writer in writers:
        writer.start()
    assert all(event.wait(30) for event in events)
    for writer in writers:
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    known = Measurements(path, "here")
    assert len(known) >= 40
    assert known.get("w0-19", problem) == known.get("w1-19", problem) == RIGHT
    known.put([Entry("after", problem, PLAIN, RIGHT)])


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 40)
    with pytest.raises(TrainingError, match=r"no.sqlite: .* delete this one"):
        Measurements(tmp_path / "no.sqlite", "here")
    with sqlite3.connect(tmp_path / "old.sqlite") as old:
        old.execute("pragma user_version=99")
    with pytest.raises(TrainingError, match="another version"):
        Measurements(tmp_path / "old.sqlite", "here")


def test_the_best_of_a_problem_come_fastest_first(problem: Problem) -> None:
    known = Measurements(None, "here")
    times = {"a": 4.0, "b": 2.0, "c": 2.1, "d": None}
    known.put([Entry(p, problem, p, replace(RIGHT, hot_us=t)) for p, t in times.items()])
    known.put([Entry("wrong", problem, "w", Outcome(Status.WRONG_RESULT, "wrong"))])
    assert [found.text for found in known.best(within=1.1)] == ["b", "c"]
    assert [found.text for found in known.best(within=9.0, most=1)] == ["b"]
    (first, *_) = known.best()
    assert (first.matrix, first.op, first.hot_us) == (problem.matrix.name, "spmv", 2.0)
    assert first.recipe == problem.matrix.source


class Counting:
    """Judges by length of the text, and counts."""

    facts = DeviceFacts("emulator", "none", "sm_90", 1, 1, 1, 1)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.verdict = Evaluation(Status.OK, hot=Timing(2.0, 1.9, 2.1, (2.0,), 1, True))

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        self.asked.append(answer.text)
        return self.verdict

    def compile_ahead(self, programs: Sequence[KernelProgram], dtype: DType) -> None: ...

    def convert_ahead(self, problem: Problem, programs: Sequence[KernelProgram]) -> None: ...

    def binary(self, program: KernelProgram, dtype: DType) -> bytes:
        return b"code"

    def release(self, matrix: Matrix) -> None: ...


@pytest.fixture
def counting() -> Counting:
    return Counting()


def test_a_repeat_is_not_judged_again(counting: Counting, problem: Problem) -> None:
    judge = Judge(counting, Measurements(None, "here"))
    programs = [KernelProgram("model", text) for text in (PLAIN, RENAMED, OTHERS["a larger block"])]
    found = judge.judge([(problem, program) for program in programs])
    assert [one.known for one in found] == [False, True, False]
    assert len(counting.asked) == 2
    assert judge.reference(problem) == judge.reference(problem)
    assert len(counting.asked) == 3


def test_what_has_no_machine_code_is_judged_each_time(counting: Counting, problem: Problem) -> None:
    judge = Judge(counting, Measurements(None, "here"))
    counting.verdict = Evaluation(Status.PARSE_ERROR, "no program")
    bad = [KernelProgram("model", "no program"), KernelProgram("model", PLAIN, unfinished="cut")]
    found = judge.judge([(problem, program) for program in (*bad, *bad)])
    assert {(one.identity, one.known) for one in found} == {("", False)}
    assert judge.spent.statuses == {"parse_error": 4}


def test_a_machine_that_fails_on_everything_ends_the_run(
    counting: Counting, problem: Problem
) -> None:
    judge = Judge(counting, Measurements(None, "here"))
    counting.verdict = Evaluation(Status.INFRASTRUCTURE_ERROR, "disk full")
    with pytest.raises(TrainingError, match="disk full; the same command goes on"):
        judge.judge([(problem, KernelProgram("model", PLAIN))] * 2)


def test_contradictions_of_what_is_known_are_seen(counting: Counting, problem: Problem) -> None:
    judge = Judge(counting, Measurements(None, "here"), recheck=1.0)
    judge.judge([(problem, KernelProgram("model", PLAIN))])
    judge.judge([(problem, KernelProgram("model", RENAMED))])
    assert (judge.spent.rechecked, judge.spent.contradictions) == (1, 0)
    counting.verdict = Evaluation(Status.WRONG_RESULT, "wrong")
    (found,) = judge.judge([(problem, KernelProgram("model", PLAIN))])
    assert judge.spent.contradictions == 1
    assert found.outcome.ok  # the first verdict stays


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator("emulator", Settings(precision=None)) as made:
        yield made


def test_on_a_device_one_identity_has_one_verdict(evaluator: Evaluator, problem: Problem) -> None:
    known = Measurements(None, device_key(evaluator.facts, evaluator.settings))
    judge = Judge(evaluator, known, recheck=1.0)
    short = PLAIN.replace("row_ptr[row + 1]", "row_ptr[row + 1] - 1")
    texts = [PLAIN, RENAMED, short, OTHERS["a requirement"], "//! op spmv", "{"]
    asked = [(problem, KernelProgram("model", text)) for text in texts]
    judge.compile(asked)
    found = judge.judge(asked)
    statuses = [one.outcome.status for one in found]
    assert statuses == [
        Status.OK,
        Status.OK,
        Status.WRONG_RESULT,
        Status.OK,
        *[Status.PARSE_ERROR] * 2,
    ]
    assert [one.known for one in found] == [False, True, False, False, False, False]
    assert (judge.spent.rechecked, judge.spent.contradictions) == (1, 0)
    assert judge.reference(problem) is None
