"""The two-phase SpMV on shapes at the edges of its tiles and segments.

A tile has up to 24,576 columns, a segment up to 32,768 entries; shapes go beyond both.
"""

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem

AUTHORS = [author for author in baselines() if author.name.startswith("twophase")]
WIDE = 65_000  # columns of at least three tiles


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory):
    settings = Settings(precision=None, cache=tmp_path_factory.mktemp("cache"))
    with Evaluator("emulator", settings) as evaluator:
        yield evaluator


def _with_lengths(lengths: list[int], cols: int, seed: int) -> sparse.csr_array:
    """Rows of these lengths, with scattered columns."""
    rng = np.random.default_rng(seed)
    row_ptr = np.concatenate(([0], np.cumsum(lengths)))
    drawn = [np.sort(rng.choice(cols, length, replace=False)) for length in lengths if length]
    values = rng.standard_normal(row_ptr[-1])
    return sparse.csr_array((values, np.concatenate(drawn), row_ptr), shape=(len(lengths), cols))


def _runs(rows: int, cols: int, number: int, seed: int) -> sparse.csr_array:
    """Runs of 1 to 40 neighbours anywhere."""
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(0.25, number).clip(1, 40)
    nth = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    row = np.repeat(rng.integers(0, rows, number), lengths)
    col = np.repeat(rng.integers(0, cols - 40, number), lengths) + nth
    return sparse.coo_array((rng.standard_normal(len(row)), (row, col)), (rows, cols)).tocsr()


def _dense_row(rows: int, cols: int) -> sparse.csr_array:
    row = np.full(cols, rows // 2)
    return sparse.coo_array(
        (np.arange(1.0, cols + 1), (row, np.arange(cols))), (rows, cols)
    ).tocsr()


HURTFUL = {
    "a-row-over-many-segments": _dense_row(300, 100_000),
    "long-and-empty-rows": _with_lengths(
        [0] * 3000 + [3] * 9000 + [0] * 5000 + [40_000] + [1] * 500 + [0] * 900, WIDE, 1
    ),
    "segments-filled-exactly": _with_lengths([8] * 4096 + [0] * 3, 49_152, 2),
    "one-more-than-a-segment": _with_lengths([8] * 4096 + [1], 49_153, 3),
    "runs-of-neighbours": _runs(2_000, WIDE, 9_000, 4),
    "few-wide-rows": _runs(5, WIDE, 8_000, 5),
    "tall": _runs(60_000, 700, 10_000, 6),
    "no-entries": sparse.csr_array((70, WIDE)),
}


@pytest.fixture(scope="module")
def matrices() -> list[Matrix]:
    return [Matrix(name, "hurtful", canonical(a, name)) for name, a in HURTFUL.items()]


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.short)
@pytest.mark.parametrize("author", AUTHORS, ids=lambda a: a.name)
def test_it_is_right_at_every_edge(
    evaluator: Evaluator, matrices: list[Matrix], author: FileAuthor, dtype: DType
) -> None:
    for matrix in matrices:
        problem = Problem(Op.SPMV, matrix, 1, dtype)
        verdict = evaluator.evaluate(problem, author.write(problem, 1)[0])
        assert verdict.status is Status.OK, f"{problem.key}: {verdict.error}"


@pytest.mark.parametrize("author", AUTHORS[:1], ids=lambda a: a.name)
def test_it_does_not_apply_to_more_tiles_than_it_has_room_for(
    evaluator: Evaluator, author: FileAuthor
) -> None:
    wide = sparse.coo_array(([1.0], ([0], [25_000_000])), shape=(1, 26_000_000)).tocsr()
    problem = Problem(Op.SPMV, Matrix("wide", "hurtful", canonical(wide, "wide")), 1)
    verdict = evaluator.evaluate(problem, author.write(problem, 1)[0])
    assert verdict.status is Status.NOT_APPLICABLE
