"""The baselines that ship: each parses, binds and compiles in both precisions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from suite.baselines.files import BASELINES, FileAuthor, baselines
from suite.formats.base import NotApplicableError
from suite.harness.bind import bind, check_names
from suite.harness.compile import Cache, Target, program_source
from suite.harness.parse import parse
from suite.harness.plan import Plan
from suite.matrices.base import Matrix, canonical
from suite.matrices.structure import facts
from suite.problem import DType, Op, Problem

PROGRAMS = [(author, Op(op)) for author in baselines() for op in author.texts]
each_program = pytest.mark.parametrize(
    ("author", "op"), PROGRAMS, ids=[f"{author.name}/{op}" for author, op in PROGRAMS]
)
FILES = sorted(BASELINES.glob("*/*.cu"))


def plan_for(author: FileAuthor, op: Op, matrix: sparse.csr_array, columns: int) -> Plan:
    problem = Problem(op, Matrix("m", "test", canonical(matrix, "m")), columns)
    declaration = parse(author.write(problem, 1)[0].text)
    layout = declaration.format.convert(problem.matrix.csr)
    csr = problem.matrix.csr
    given = {"rows": csr.shape[0], "cols": csr.shape[1], "nnz": csr.nnz, "n": problem.columns}
    given |= {"sms": 132, "itemsize": problem.dtype.numpy.itemsize}
    sizes = {**facts(csr), **given, **layout.sizes}
    try:
        return bind(declaration, op, problem.dtype, sizes)
    except NotApplicableError as error:
        pytest.skip(str(error))


def test_the_first_set_is_there_for_both_operations() -> None:
    files = {op: {author.name.split("-")[0] for author, of in PROGRAMS if of is op} for op in Op}
    names = {author.name for author, _ in PROGRAMS}
    spmv = {"csr_scalar", "csr_vector", "coo", "ell", "sell", "dia", "hyb", "bsr"}
    assert files[Op.SPMV] >= spmv
    assert files[Op.SPMM] >= {"rowsplit_scalar", "nnzsplit", "ell", "dia", "bsr"}
    assert names >= {f"csr_vector-lanes{lanes}" for lanes in (2, 4, 8, 16, 32)}


@each_program
@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.short)
def test_a_baseline_compiles_without_spilling(
    cubins: Cache, author: FileAuthor, op: Op, dtype: DType
) -> None:
    declaration = parse(author.texts[op])
    check_names(declaration, op, dtype)
    source = program_source(declaration, dtype)
    compiled = cubins.compile(source, Target(dtype=dtype))
    lines = (*declaration.prepares, *declaration.launches)
    assert set(compiled.kernels) == {line.kernel for line in lines}
    assert all(r.spill_bytes == 0 and r.stack_bytes == 0 for r in compiled.kernels.values())


@each_program
def test_a_matrix_without_entries_still_gets_its_whole_output_written(
    author: FileAuthor, op: Op
) -> None:
    plan = plan_for(author, op, sparse.csr_array((3, 4)), 1 if op is Op.SPMV else 4)
    assert plan.init_zero or any(not launch.empty for launch in plan.launches)


@each_program
@pytest.mark.parametrize("shape", [(0, 0), (0, 709)], ids=["0x0", "0x709"])
def test_nothing_is_launched_for_a_matrix_without_rows(
    author: FileAuthor, op: Op, shape: tuple[int, int]
) -> None:
    plan = plan_for(author, op, sparse.csr_array(shape), 1 if op is Op.SPMV else 4)
    assert all(launch.empty for launch in plan.launches)


@pytest.mark.parametrize("columns", [0, 4, 7, 32])
def test_exactly_one_spmm_kernel_runs_for_any_number_of_columns_but_none(columns: int) -> None:
    eye = sparse.csr_array(np.eye(5))
    for author, op in PROGRAMS:
        if op is Op.SPMM and not parse(author.texts[op]).requires:
            launches = plan_for(author, op, eye, columns).launches
            assert sum(not launch.empty for launch in launches) == (columns > 0), author.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_baseline_says_its_idea_before_its_first_line_of_code(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    code = next(at for at, line in enumerate(lines) if line and not line.startswith("//"))
    idea = [line for line in lines[:code] if re.match(r"// \S", line)]
    assert len(" ".join(idea)) > 100
    # A header line is one statement and cannot be broken.
    assert max(len(line) for line in lines if not line.startswith("//!")) <= 100
