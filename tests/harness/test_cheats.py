"""Each known cheat is caught, and by the defence that its first line names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from suite.evaluation import Status
from suite.harness.evaluate import Evaluator
from suite.matrices.sets import select
from suite.problem import Op, Problem
from tests.harness.samples import GOOD, long_and_empty_rows, verdict

CHEATS = sorted((Path(__file__).parent / "cheats").glob("*.cu"))
# What a refusal says when that defence has made it. Set 2 is the exact one and comes first.
DEFENCES = {
    "poisoned output": "on input set 2.*not a number, as where nothing was written",
    "exact input set": "on input set 2",
    "other input set": "on input set 1",
    "bound of the error": "on input set 1.*× its bound",
    "digest of x": r"overwrote its input x\Z",
    "digest of vals": r"overwrote its input vals\Z",
    "recheck after timing": "after the timed runs",
}
SPOILT = "runs into a spoilt output"
PROBLEM = Problem(Op.SPMV, long_and_empty_rows())


def defence(cheat: Path) -> str:
    """The defence that the first line names."""
    head = re.match("// caught by: (.+)\n", cheat.read_text())
    assert head, f"{cheat.name}: the first line must be '// caught by: DEFENCE'"
    return head[1]


def caught_by(*defences: str) -> list[Path]:
    return [cheat for cheat in CHEATS if defence(cheat) in defences]


def test_every_cheat_names_a_defence_and_every_defence_has_a_cheat() -> None:
    assert {defence(cheat) for cheat in CHEATS} == {*DEFENCES, SPOILT}


def test_the_problem_has_what_cheats_hide_behind(evaluator: Evaluator) -> None:
    lengths = np.diff(PROBLEM.matrix.csr.indptr)
    assert (lengths.min(), lengths.max()) == (0, 60_000)
    assert verdict(evaluator, GOOD, PROBLEM).status is Status.OK


@pytest.mark.parametrize("cheat", caught_by(*DEFENCES), ids=lambda path: path.stem)
def test_a_cheat_is_a_wrong_result_for_the_reason_it_names(
    evaluator: Evaluator, cheat: Path
) -> None:
    found = verdict(evaluator, cheat.read_text(), PROBLEM)
    assert found.status is Status.WRONG_RESULT, found.error
    assert re.search(DEFENCES[defence(cheat)], found.error), found.error
    assert (found.emulated_us, found.hot, found.cold) == (None, None, None)


@pytest.mark.gpu
@pytest.mark.parametrize("cheat", caught_by(SPOILT), ids=lambda path: path.stem)
def test_a_time_that_an_earlier_answer_explains_is_impossible(
    evaluator: Evaluator, cheat: Path
) -> None:
    if evaluator.facts.kind != "cuda":
        pytest.skip("needs an NVIDIA GPU")
    (spec,) = select("uniform-8-1m")
    problem = Problem(Op.SPMV, spec.build())
    found = verdict(evaluator, cheat.read_text(), problem)
    assert found.status is Status.IMPOSSIBLE_TIME, found
    assert "holds no earlier answer" in found.error
    assert verdict(evaluator, GOOD, problem).status is Status.OK
    evaluator.release(problem.matrix)


def test_a_cheat_leaves_nothing_behind_for_the_next_program(evaluator: Evaluator) -> None:
    for cheat in caught_by("digest of x", "digest of vals"):
        assert verdict(evaluator, cheat.read_text(), PROBLEM).status is Status.WRONG_RESULT
        assert verdict(evaluator, GOOD, PROBLEM).status is Status.OK
