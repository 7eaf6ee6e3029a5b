"""A sample of the teacher's programs is right in the emulator, whatever their writing."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from training.teacher.space import STRATEGIES, Program
from training.teacher.strategy import Strategy
from training.teacher.writing import drawn


@pytest.fixture(scope="module")
def evaluator(compiled: Path):
    settings = Settings(precision=None, cache=compiled)
    with Evaluator("emulator", settings) as evaluator:
        yield evaluator


def _matrices() -> list[Matrix]:
    rng = np.random.default_rng(1)
    dense_row = sparse.lil_array((67, 404))
    dense_row[33, :] = np.arange(1, 405)
    band = sparse.diags_array(
        [np.full(100 - abs(d), d + 0.5) for d in (-7, -1, 0, 1, 7)], offsets=(-7, -1, 0, 1, 7)
    )
    blocks = sparse.kron(sparse.random_array((12, 12), density=0.3, rng=rng), np.ones((4, 4)))
    odd = sparse.random_array((67, 131), density=0.2, rng=rng)
    ring = sparse.diags_array([np.ones(11), np.ones(12), np.ones(11)], offsets=(-1, 0, 1)).tolil()
    ring[0, 11] = ring[11, 0] = 1  # as many blocks in each row
    even = sparse.kron(ring, np.arange(1.0, 17.0).reshape(4, 4))
    found = {
        "even": even,
        "dense-row": dense_row.tocsr(),
        "band": band,
        "blocks": blocks,
        "odd": odd,
    }
    return [Matrix(name, "test", canonical(a, name)) for name, a in found.items()]


MATRICES = _matrices()


def _cases() -> Iterator[Any]:
    """Every strategy; the quick tier has every third, and so some of each file of the teacher."""
    for dtype in (DType.FLOAT32, DType.FLOAT64):
        for position, strategy in enumerate(STRATEGIES.values()):
            quick = dtype is DType.FLOAT32 and position % 3 == 0
            marks = () if quick else (pytest.mark.slow,)
            yield pytest.param(strategy, dtype, marks=marks, id=f"{strategy.name}-{dtype}")


@pytest.mark.parametrize(("strategy", "dtype"), list(_cases()))
def test_programs_are_right(evaluator: Evaluator, strategy: Strategy, dtype: DType) -> None:
    rng = random.Random(f"{strategy.name} {dtype}")
    small = [  # larger blocks take the emulator long
        one
        for one in strategy.combinations
        if int(one.get("block", 0)) <= 256 and int(one.get("split", 0)) <= 4
    ] or strategy.combinations
    applied = 0
    for _ in range(30):
        program = Program(
            strategy.name, tuple(rng.choice(small).items()), drawn(rng.getrandbits(40))
        )
        columns = 1 if strategy.op is Op.SPMV else rng.choice((8, 20, 36))
        for matrix in rng.sample(MATRICES, 2 if dtype is DType.FLOAT32 else 1):
            problem = Problem(strategy.op, matrix, columns, dtype)
            verdict = evaluator.evaluate(problem, KernelProgram("teacher", program.text))
            assert verdict.status in (Status.OK, Status.NOT_APPLICABLE), (
                f"{program.parameters} {program.writing} {problem.key}: {verdict.error}"
            )
            applied += verdict.ok
        if applied:
            return
    pytest.fail("applied to nothing")
