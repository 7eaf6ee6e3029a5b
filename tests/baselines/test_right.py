"""Every hand-tuned program is right on every kind of matrix, or says that it does not apply."""

from __future__ import annotations

import pytest

from suite.baselines.files import FileAuthor, baselines
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix
from suite.matrices.named import smoke
from suite.problem import Op, Problem
from tests.baselines.judging import tally

# `make bench` takes 32: here no slice, no warp and no vector load of eight comes out even.
COLUMNS = {Op.SPMV: 1, Op.SPMM: 12}


@pytest.fixture(scope="module")
def ordinary() -> list[Matrix]:
    return [spec.build() for spec in smoke()]


@pytest.mark.parametrize("author", baselines(), ids=lambda a: a.name)
def test_a_baseline_is_right_on_every_smoke_matrix(
    evaluator: Evaluator, ordinary: list[Matrix], author: FileAuthor
) -> None:
    operations = [op for op in Op if author.answers(op)]
    asked = [Problem(op, matrix, COLUMNS[op]) for matrix in ordinary for op in operations]
    found = tally(evaluator, author, asked)
    assert found.wrong == []
    assert found.right >= 1
