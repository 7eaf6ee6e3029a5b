"""Every hand-tuned program is right, or not applicable with a reason, on every kind of matrix."""

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.base import Matrix, canonical
from suite.matrices.named import smoke
from suite.problem import DType, Op, Problem

AUTHORS = baselines()


@pytest.fixture(scope="module", params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def evaluator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    settings = Settings(precision=None, cache=tmp_path_factory.mktemp("cache"))
    with Evaluator(request.param, settings) as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def ordinary() -> list[Matrix]:
    return [spec.build() for spec in smoke()]


def _dense_row(rows: int, cols: int) -> sparse.csr_array:
    a = sparse.lil_array((rows, cols))
    a[rows // 2, :] = np.arange(1, cols + 1)
    return a.tocsr()


HURTFUL = {
    "empty-0x0": sparse.csr_array((0, 0)),
    "empty-0x709": sparse.csr_array((0, 709)),
    "no-entries-3x4": sparse.csr_array((3, 4)),
    "no-entries-1000": sparse.csr_array((1000, 1000)),
    "one-element": sparse.csr_array([[2.5]]),
    "one-row": sparse.csr_array(np.arange(1.0, 300.0)[None, :]),
    "one-column": sparse.csr_array(np.arange(1.0, 300.0)[:, None]),
    "one-full-row-among-empty": _dense_row(257, 1031),
    "explicit-zeros": sparse.csr_array(
        (np.zeros(64), np.arange(64) % 8, np.arange(0, 65, 8)), shape=(8, 8)
    ),
    "odd-edges": sparse.random_array((67, 131), density=0.2, rng=np.random.default_rng(1)),
    "rows-around-a-warp": sparse.csr_array(np.tri(70, 70) + np.eye(70)),
}


def failures(evaluator: Evaluator, author: FileAuthor, problems: list[Problem]) -> list[str]:
    """One line for each problem on which the author is neither right nor not applicable."""
    found = []
    for problem in problems:
        verdict = evaluator.evaluate(problem, author.write(problem, 1)[0])
        if verdict.status not in (Status.OK, Status.NOT_APPLICABLE):
            found.append(f"{problem.key}: {verdict.status}: {verdict.error}")
    return found


def problems(author: FileAuthor, matrices: list[Matrix], columns: tuple[int, ...], dtype: DType):
    wanted = [(Op.SPMV, 1), *((Op.SPMM, n) for n in columns)]
    return [
        Problem(op, matrix, n, dtype)
        for matrix in matrices
        for op, n in wanted
        if author.answers(op)
    ]


@pytest.mark.parametrize("author", AUTHORS, ids=lambda a: a.name)
def test_a_baseline_is_right_on_every_smoke_matrix(
    evaluator: Evaluator, ordinary: list[Matrix], author: FileAuthor
) -> None:
    assert failures(evaluator, author, problems(author, ordinary, (32,), DType.FLOAT32)) == []


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.short)
@pytest.mark.parametrize("author", AUTHORS, ids=lambda a: a.name)
def test_a_baseline_is_right_on_shapes_made_to_hurt(
    evaluator: Evaluator, author: FileAuthor, dtype: DType
) -> None:
    hurtful = [Matrix(n, "hurtful", canonical(m.tocsr(), n)) for n, m in HURTFUL.items()]
    assert failures(evaluator, author, problems(author, hurtful, (3, 64), dtype)) == []


@pytest.mark.parametrize("author", AUTHORS, ids=lambda a: a.name)
def test_a_baseline_applies_to_some_matrix(
    evaluator: Evaluator, ordinary: list[Matrix], author: FileAuthor
) -> None:
    op = Op.SPMV if author.answers(Op.SPMV) else Op.SPMM
    asked = [Problem(op, matrix, 1 if op is Op.SPMV else 32) for matrix in ordinary]
    verdicts = [evaluator.evaluate(p, author.write(p, 1)[0]).status for p in asked]
    assert Status.OK in verdicts
