"""Several evaluators give the verdicts of one, whatever is asked about, and end when told to."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.harness.together import Together
from suite.program import KernelProgram
from tests.harness.samples import GOOD, PROBLEM, body

WRONG = body("if (row < rows) y[row] = 1;")
UNREADABLE = "//! op spmv\n"
PROGRAMS = [
    KernelProgram(f"author{at}", text)
    for at, text in enumerate((GOOD, WRONG, UNREADABLE, GOOD, WRONG))
]
VERDICTS = [Status.OK, Status.WRONG_RESULT, Status.PARSE_ERROR, Status.OK, Status.WRONG_RESULT]


@pytest.fixture
def together(cache: Path) -> Iterator[Together]:
    settings = Settings(cache=cache, run_s=3.0, together=2)

    def make() -> Evaluator:
        return Evaluator("emulator", settings)

    together = Together(make(), make, settings.together)
    yield together
    together.close()


def test_what_was_begun_ahead_has_the_verdict_of_its_own_program(together: Together) -> None:
    together.evaluate_ahead((PROBLEM, program) for program in PROGRAMS)
    found = [together.evaluate(PROBLEM, program).status for program in PROGRAMS]
    assert found == VERDICTS


def test_in_any_order_and_without_being_told_ahead(together: Together) -> None:
    together.evaluate_ahead((PROBLEM, program) for program in PROGRAMS[:3])
    found = [together.evaluate(PROBLEM, program).status for program in reversed(PROGRAMS)]
    assert found == VERDICTS[::-1]


def test_a_released_matrix_is_brought_again_when_it_is_asked_about(together: Together) -> None:
    together.evaluate_ahead((PROBLEM, program) for program in PROGRAMS)
    together.release(PROBLEM.matrix)
    assert [together.evaluate(PROBLEM, program).status for program in PROGRAMS] == VERDICTS


def test_closing_does_not_wait_for_what_nobody_asks_about(together: Together) -> None:
    endless = body("while (x[0] != y[row] || x[0] == x[0]) y[0] = x[0];")
    programs = [KernelProgram(f"author{at}", endless) for at in range(20)]
    together.evaluate_ahead((PROBLEM, program) for program in programs)
    closing = threading.Thread(target=together.close)
    closing.start()
    closing.join(20.0)
    assert not closing.is_alive()
