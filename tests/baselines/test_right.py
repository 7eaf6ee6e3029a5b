"""Every hand-tuned program is right on every kind of matrix, or says that it does not apply."""

from __future__ import annotations

import pytest

from suite.baselines.files import FileAuthor, baselines
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix
from suite.matrices.named import smoke
from suite.problem import Op, Problem
from tests.baselines.judging import Tally, first_and_last, tally

# `make bench` takes 32: here no slice, no warp and no vector load of eight comes out even.
COLUMNS = {Op.SPMV: 1, Op.SPMM: 12}
# Where time is short: one program of each file on every matrix; the others, which differ from it in
# numbers only, on every third, which are of all kinds.
AUTHORS = baselines()
FIRST = [first for first, _ in first_and_last(AUTHORS)]
OTHERS = [author for author in AUTHORS if author not in FIRST]


@pytest.fixture(scope="module")
def ordinary() -> list[Matrix]:
    return [spec.build() for spec in smoke()]


def found(evaluator: Evaluator, author: FileAuthor, matrices: list[Matrix]) -> Tally:
    operations = [op for op in Op if author.answers(op)]
    asked = [Problem(op, matrix, COLUMNS[op]) for matrix in matrices for op in operations]
    return tally(evaluator, author, asked)


@pytest.mark.parametrize(
    "author",
    [*FIRST, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS)],
    ids=[author.name for author in (*FIRST, *OTHERS)],
)
def test_a_baseline_is_right_on_every_smoke_matrix(
    evaluator: Evaluator, ordinary: list[Matrix], author: FileAuthor
) -> None:
    whole = found(evaluator, author, ordinary)
    assert whole.wrong == []
    assert whole.right >= 1


@pytest.mark.parametrize("author", OTHERS, ids=lambda a: a.name)
def test_another_choice_of_a_file_is_right_on_a_third_of_them(
    evaluator: Evaluator, ordinary: list[Matrix], author: FileAuthor
) -> None:
    turn = OTHERS.index(author)
    parts = (found(evaluator, author, ordinary[(turn + at) % 3 :: 3]) for at in range(3))
    part = next(part for part in parts if part.right or part.wrong)  # that it applies to
    assert part.wrong == []
