"""The prompt tells operation, sizes and nonzeros; both encodings tell the same."""

import numpy as np
import pytest
from scipy import sparse

from suite.matrices.base import Matrix, canonical
from suite.matrices.sets import select
from suite.models.coordinates import coordinates
from suite.models.prompt import Encoding, PromptStyle, level, prompt
from suite.models.sampler import sample
from suite.problem import DType, Op, Problem

V = 256
COORDINATES = PromptStyle(Encoding.COORDINATES, V)
TEXT = PromptStyle(Encoding.TEXT, V)


def problem(op: Op = Op.SPMV, columns: int = 1, name: str = "stencil-5pt-48") -> Problem:
    return Problem(op, select(name)[0].build(), columns)


def ids(asked: Problem, style: PromptStyle = COORDINATES, arch: str = "sm_90") -> list[int]:
    return prompt(asked, arch, style, lambda text: list(text.encode()))


def words(found: list[int]) -> str:
    return bytes(i for i in found if i < V).decode()


def test_levels_are_exact_when_small_and_never_fall() -> None:
    levels = [level(number) for number in range(100_000)]
    assert levels[:10] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert np.diff(levels).min() == 0
    assert level(16) == 12
    assert level(2**31 - 1) == 120


def test_what_is_asked_stands_first() -> None:
    asked = Problem(Op.SPMM, problem().matrix, 128, DType.FLOAT64)
    assert words(ids(asked, arch="sm_80")).startswith("// write spmm n 128 f64 sm_80\n")
    assert words(ids(problem())).startswith("// write spmv f32 sm_90\n// rows 41 cols 41 nnz 50 ")
    assert words(ids(problem())).endswith("// entries\n// program\n")


@pytest.mark.parametrize(
    "other",
    [
        problem(Op.SPMM, 32),
        problem(Op.SPMM, 1),
        Problem(Op.SPMV, problem().matrix, dtype=DType.FLOAT64),
        problem(name="block-4-1k"),
    ],
    ids=["operation", "one column", "dtype", "matrix"],
)
@pytest.mark.parametrize("style", [COORDINATES, TEXT], ids=str)
def test_different_problems_have_different_prompts(other: Problem, style: PromptStyle) -> None:
    assert ids(other, style) != ids(problem(), style)


def test_both_encodings_show_the_same_entries() -> None:
    asked = problem(name="power-law-3k")
    found = np.array(ids(asked))
    rows, cols = coordinates(found, V)
    shown = sample(asked.matrix.csr)
    assert (rows.tolist(), cols.tolist()) == (shown.rows.tolist(), shown.cols.tolist())
    told = []
    lines = words(ids(asked, TEXT)).split("// entries\n")[1].removesuffix("// program\n")
    for line in lines.splitlines():
        row, _, listed = line.partition(":")
        told += [(int(row), int(col)) for col in listed.split()]
    assert told == list(zip(rows.tolist(), cols.tolist(), strict=True))
    head = words(ids(asked, TEXT)).split("// entries\n")[0]
    assert words(ids(asked)).startswith(head)


def test_the_scale_tells_matrices_apart_that_begin_alike() -> None:
    small, large = (
        Problem(Op.SPMV, Matrix("eye", "test", canonical(sparse.eye_array(size), "eye")))
        for size in (1000, 1_000_000)
    )
    assert "rows 36 cols 36 nnz 36 longest 1 filled 36 reach 0" in words(ids(small))
    assert "rows 76 cols 76 nnz 76 longest 1 filled 76 reach 0" in words(ids(large))
    assert "lengths 1 1 1 1 1 1 1 1" in words(ids(large))


def test_a_matrix_without_entries_has_a_prompt() -> None:
    empty = Problem(Op.SPMV, Matrix("e", "test", canonical(sparse.csr_array((5, 9)), "e")))
    assert max(ids(empty)) < V
    assert ids(empty) == ids(empty, TEXT)


def test_fewer_entries_can_be_shown() -> None:
    short = PromptStyle(Encoding.COORDINATES, V, shown=10)
    assert sum(i >= V for i in ids(problem(), short)) == 10
