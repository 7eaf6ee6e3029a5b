"""Each known cheat is caught, and by the defence that its head names; honest programs are not.

A cheat is a file whose head says what it tries, which defence must catch it, and its status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.base import Matrix, canonical
from suite.matrices.sets import select
from suite.problem import Op, Problem
from suite.soak import collection, long_and_empty_rows
from tests.harness.samples import GOOD, verdict

HERE = Path(__file__).parent
CHEATS = {subject.name: subject for subject in collection(HERE / "cheats")}
HONEST = sorted((HERE / "honest").glob("*.cu"))
# What a refusal says when that defence has made it. Set 2 is the exact one and comes first.
DEFENCES = {
    "parser": "^line [0-9]+: .*(refused|reserved)",
    "names": "^line [0-9]+: .*is unknown; known arrays are",
    "compiler": r"error|fatal|did not finish within|died of this program|machine code",
    "nothing that lasts": "would outlive a run",
    "loader": "shared memory|bytes of workspaces",
    "time limit": "did not finish within|deadlock",
    # Guard pages on the emulator; on a GPU guard bands, and what its own memory management says.
    "guard": "buffer|address|trap|local memory|illegal|launch|instruction|stack|exception",
    "memory of its own": "past the end of buffer y|on input set 2",
    "poisoned output": "on input set 2.*not a number, as where nothing was written",
    "exact input set": "on input set [12]|repeated runs",
    "bound of the error": "on input set 1.*× its bound",
    "order of threads": "on input set [12]|repeated runs|after the timed runs",
    "repeats": "on input set [12]|repeated runs|after the timed runs",
    "digest of x": r"overwrote its input x\Z",
    "digest of vals": r"overwrote its input vals\Z",
    "digest of col_idx": r"overwrote its input col_idx\Z",
    "digest of row_ptr": r"overwrote its input row_ptr\Z",
    "digest of copy": r"overwrote its input copy\Z",
}
SPOILT = "runs into a spoilt output"
PROBLEM = Problem(Op.SPMV, long_and_empty_rows())


@pytest.fixture(scope="module", params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def evaluator(request: pytest.FixtureRequest, cache: Path) -> Iterator[Evaluator]:
    settings = Settings(cache=cache, run_s=2.0, compile_s=4.0)
    with Evaluator(request.param, settings) as evaluator:
        yield evaluator


def defence(name: str) -> str:
    """The defence that a cheat's head names."""
    head = re.match(r"// tries: .+\n(?://   .+\n)*// caught by: (.+)\n", CHEATS[name].text)
    assert head, f"{name}: the head says first what it tries, then '// caught by: DEFENCE'"
    return head[1]


def caught_by(*defences: str) -> list[str]:
    return [name for name in CHEATS if defence(name) in defences]


def test_every_cheat_names_a_defence_and_every_defence_has_a_cheat() -> None:
    assert {defence(name) for name in CHEATS} == {*DEFENCES, SPOILT}
    assert len(CHEATS) >= 30


def test_the_problem_has_what_cheats_hide_behind(evaluator: Evaluator) -> None:
    lengths = np.diff(PROBLEM.matrix.csr.indptr)
    assert (lengths.min(), lengths.max()) == (0, 60_000)
    assert verdict(evaluator, GOOD, PROBLEM).status is Status.OK


@pytest.mark.parametrize("name", caught_by(*DEFENCES))
def test_a_cheat_is_caught_for_the_reason_it_names(evaluator: Evaluator, name: str) -> None:
    found = verdict(evaluator, CHEATS[name].text, PROBLEM)
    assert found.status is CHEATS[name].expected[evaluator.facts.kind], found.error
    assert found.status is not Status.OK
    assert re.search(DEFENCES[defence(name)], found.error), found.error
    assert (found.emulated_us, found.hot, found.cold) == (None, None, None)
    assert verdict(evaluator, GOOD, PROBLEM).status is Status.OK  # it left nothing behind


def test_rows_so_long_that_rounded_values_keep_the_bound_do_not_hide_them(
    evaluator: Evaluator,
) -> None:
    entries = np.random.default_rng(7).standard_normal((64, 2048))
    problem = Problem(Op.SPMV, Matrix("full", "dense", canonical(csr_array(entries), "full")))
    found = verdict(evaluator, CHEATS["rounds_values_to_half"].text, problem)
    assert found.status is Status.WRONG_RESULT
    assert "on input set 3" in found.error
    assert verdict(evaluator, GOOD, problem).status is Status.OK


@pytest.mark.gpu
@pytest.mark.parametrize("name", caught_by(SPOILT))
def test_a_time_that_an_earlier_answer_explains_is_impossible(
    evaluator: Evaluator, name: str
) -> None:
    if evaluator.facts.kind != "cuda":
        pytest.skip("needs an NVIDIA GPU")
    (spec,) = select("uniform-8-1m")
    problem = Problem(Op.SPMV, spec.build())
    found = verdict(evaluator, CHEATS[name].text, problem)
    assert found.status is CHEATS[name].expected["cuda"] is Status.IMPOSSIBLE_TIME, found
    assert re.search("holds no earlier answer|where an earlier answer lies", found.error)
    assert verdict(evaluator, GOOD, problem).status is Status.OK
    evaluator.release(problem.matrix)


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
def test_an_honest_program_that_looks_suspicious_is_right(evaluator: Evaluator, path: Path) -> None:
    found = verdict(evaluator, path.read_text(), PROBLEM)
    assert found.status is Status.OK, found.error


def test_there_are_honest_programs_of_every_suspicious_kind() -> None:
    assert len(HONEST) >= 5
