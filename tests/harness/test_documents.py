"""The program that the README shows is one that the suite takes."""

import re
from pathlib import Path

from suite.evaluation import Status
from tests.harness.samples import PROBLEM, verdict

ROOT = Path(__file__).parents[2]


def test_the_readmes_program_is_right(evaluator) -> None:
    (program,) = re.findall(r"```cuda\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    found = verdict(evaluator, program, PROBLEM)
    assert found.status is Status.OK, found.error
