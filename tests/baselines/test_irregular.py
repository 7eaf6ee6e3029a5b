"""Programs for irregular structures are right where their storage has seams.

A matrix here puts rows, columns or entries on both sides of each border that such a program draws:
tiles of columns, blocks of 16,384 rows, chunks of entries, classes of row lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import FileAuthor, baselines
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem

FILES = ("coltile", "csr_adaptive", "csr_packed", "csr_xshared", "merge", "nnzsplit", "rowbins")


def of_file(stem: str) -> list[FileAuthor]:
    """The first and the last author of a file: between them they have every chosen value."""
    authors = [author for author in baselines() if author.name.partition("-")[0] == stem]
    return [authors[0], *authors[1:][-1:]]


AUTHORS = [author for stem in FILES for author in of_file(stem)]


def scattered(rows: int, cols: int, entries: int) -> sparse.csr_array:
    """About so many entries anywhere."""
    draw = np.random.default_rng(rows + cols)
    places = (draw.integers(0, rows, entries), draw.integers(0, cols, entries))
    return sparse.coo_array((draw.uniform(0.5, 1.5, entries), places), (rows, cols)).tocsr()


def of_lengths(lengths: list[int], cols: int) -> sparse.csr_array:
    """Rows of these lengths, their columns drawn without repetition."""
    draw = np.random.default_rng(cols)
    ends = np.cumsum([0, *lengths])
    columns = [np.sort(draw.choice(cols, length, replace=False)) for length in lengths]
    values = draw.uniform(0.5, 1.5, ends[-1])
    return sparse.csr_array((values, np.concatenate(columns), ends), (len(lengths), cols))


def arrow(n: int) -> sparse.csr_array:
    """A diagonal, two full rows and two full columns."""
    a = sparse.lil_array((n, n))
    a.setdiag(1.0)
    a[:2, :] = 1.5
    a[:, :2] = 2.5
    return a.tocsr()


def around(powers: range) -> list[int]:
    """One less, equal, and one more of each power of two."""
    return [(1 << power) + change for power in powers for change in (-1, 0, 1)]


MATRICES = {
    "several-tiles": scattered(50, 80_000, 3_000),
    "many-tiles-some-empty": scattered(20, 900_000, 60),
    "several-row-blocks": scattered(70_000, 60, 12_000),
    "tiles-and-row-blocks": scattered(20_000, 40_000, 20_000),
    "a-long-row-among-short": of_lengths([0] * 5 + [41_000] + [1] * 7, 45_000),
    "long-rows-side-by-side": of_lengths([2500] * 6 + [0] + [2049] * 3, 3000),
    "arrow": arrow(3000),
    "lengths-around-borders": of_lengths([0, *around(range(12))], 5001),
    "short-lengths": of_lengths([*range(16), *reversed(range(16))] * 9, 1031),
    "at-most-one-a-row": of_lengths([0, 1, 0, 0, 1, 1, 0] * 300, 2000),
    "last-rows-empty": of_lengths([3] * 100 + [0] * 3000, 50),
    "first-rows-empty": of_lengths([0] * 3000 + [3] * 100, 50),
    "entries-a-multiple-of-chunks": of_lengths([16] * 1024, 700),
    "one-entry-past-a-chunk": of_lengths([16] * 512 + [1], 700),
}


@pytest.fixture(scope="module", params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def evaluator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Evaluator]:
    settings = Settings(precision=None, cache=tmp_path_factory.mktemp("cache"))
    with Evaluator(request.param, settings) as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def matrices() -> list[Matrix]:
    return [Matrix(name, "seams", canonical(a, name)) for name, a in MATRICES.items()]


def values(authors: Iterable[FileAuthor]) -> set[tuple[str, ...]]:
    """File and one chosen value each."""
    names = [author.name.split("-") for author in authors]
    return {(stem, value) for stem, *chosen in names if stem in FILES for value in chosen}


def test_every_chosen_value_has_an_author() -> None:
    assert values(AUTHORS) == values(baselines())


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.short)
@pytest.mark.parametrize("author", AUTHORS, ids=lambda a: a.name)
def test_a_program_is_right_on_both_sides_of_its_seams(
    evaluator: Evaluator, matrices: list[Matrix], author: FileAuthor, dtype: DType
) -> None:
    wrong, right = [], 0
    for matrix in matrices:
        problem = Problem(Op.SPMV, matrix, 1, dtype)
        verdict = evaluator.evaluate(problem, author.write(problem, 1)[0])
        right += verdict.status is Status.OK
        if verdict.status not in (Status.OK, Status.NOT_APPLICABLE):
            wrong.append(f"{matrix.name}: {verdict.status}: {verdict.error}")
    assert wrong == []
    assert right >= 5
