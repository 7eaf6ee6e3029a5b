"""The two-phase SpMV on shapes at the edges of its tiles and segments.

A tile has up to 24,576 columns, a segment up to 32,768 entries; shapes go beyond both.
"""

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from tests.baselines.judging import full_row, named, of_lengths, stem, tally

pytestmark = pytest.mark.slow

AUTHORS = [author for author in baselines() if stem(author) == "twophase"]
WIDE = 65_000  # columns of at least three tiles


def runs(rows: int, cols: int, number: int, seed: int) -> sparse.csr_array:
    """Runs of 1 to 40 neighbours anywhere."""
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(0.25, number).clip(1, 40)
    nth = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    row = np.repeat(rng.integers(0, rows, number), lengths)
    col = np.repeat(rng.integers(0, cols - 40, number), lengths) + nth
    return sparse.coo_array((rng.standard_normal(len(row)), (row, col)), (rows, cols)).tocsr()


MATRICES = {
    "a-row-over-many-segments": full_row(300, 100_000),
    "long-and-empty-rows": of_lengths(
        [0] * 3000 + [3] * 9000 + [0] * 5000 + [40_000] + [1] * 500 + [0] * 900, WIDE
    ),
    "segments-filled-exactly": of_lengths([8] * 4096 + [0] * 3, 49_152),
    "one-more-than-a-segment": of_lengths([8] * 4096 + [1], 49_153),
    "runs-of-neighbours": runs(2_000, WIDE, 9_000, 4),
    "few-wide-rows": runs(5, WIDE, 8_000, 5),
    "tall": runs(60_000, 700, 10_000, 6),
}


@pytest.fixture(scope="module")
def matrices() -> list[Matrix]:
    return named("seams", MATRICES)


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.short)
@pytest.mark.parametrize("author", AUTHORS, ids=lambda a: a.name)
def test_it_is_right_at_every_edge(
    evaluator: Evaluator, matrices: list[Matrix], author: FileAuthor, dtype: DType
) -> None:
    found = tally(evaluator, author, [Problem(Op.SPMV, m, 1, dtype) for m in matrices])
    assert found.wrong == []
    assert found.right == len(matrices)


@pytest.mark.parametrize("author", AUTHORS[:1], ids=lambda a: a.name)
def test_it_does_not_apply_to_more_tiles_than_it_has_room_for(
    evaluator: Evaluator, author: FileAuthor
) -> None:
    wide = sparse.coo_array(([1.0], ([0], [25_000_000])), shape=(1, 26_000_000)).tocsr()
    problem = Problem(Op.SPMV, Matrix("wide", "seams", canonical(wide, "wide")), 1)
    verdict = evaluator.evaluate(problem, author.write(problem, 1)[0])
    assert verdict.status is Status.NOT_APPLICABLE
