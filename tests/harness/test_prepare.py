"""A program may derive its own arrays from the matrix, once, and from nothing but the matrix."""

import numpy as np
import pytest
from scipy import sparse

from suite.evaluation import Status
from suite.harness.bind import bind, check_names
from suite.harness.evaluate import Evaluator
from suite.harness.parse import parse
from suite.harness.plan import BindError, ParseError
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from tests.harness.samples import PROBLEM, verdict

# Values doubled beforehand, counted in ``made``; every second column is kept as 16 bits.
PROGRAM = """//! op spmv
//! format csr
//! require cols <= 65536
//! derived twice real nnz
//! derived narrow ushort nnz
//! derived made int 1 zero
//! workspace halves real rows
//! prepare make grid=ceildiv(nnz,64) block=64
//! launch k grid=ceildiv(rows,64) block=64
extern "C" __global__ void make(int nnz, const int* col_idx, const real* vals, real* twice,
                                unsigned short* narrow, int* made) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= nnz) return;
  twice[i] = 2 * vals[i];
  narrow[i] = col_idx[i];
  atomicAdd(made, 1);
}
extern "C" __global__ void k(int rows, int nnz, const int* row_ptr, const unsigned short* narrow,
                             const real* twice, const int* made, const real* x, real* halves,
                             real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || *made != nnz) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += twice[p] * x[narrow[p]];
  halves[row] = sum / 2;
  y[row] = halves[row];
}
"""
SIZES = {"rows": 9, "cols": 9, "nnz": 20, "n": 1, "sms": 4, "itemsize": 8}


def plan_of(text: str = PROGRAM):
    declaration = parse(text)
    check_names(declaration, Op.SPMV, DType.FLOAT64)
    return bind(declaration, Op.SPMV, DType.FLOAT64, SIZES)


def test_derived_arrays_are_filled_once_and_multiplied_by(evaluator: Evaluator) -> None:
    found = verdict(evaluator, PROGRAM)
    assert found.status is Status.OK, found.error
    assert found.format == "csr"
    assert found.derived_bytes == 6 * PROBLEM.matrix.csr.nnz + 4
    if evaluator.facts.kind == "emulator":
        assert found.prepare_us is None  # it has no device time
    else:
        assert found.prepare_us is not None
        assert found.prepare_us > 0
    nnz = PROBLEM.matrix.csr.nnz
    # Row pointers, doubled values, 16-bit columns and the count; neither vals nor col_idx.
    assert found.format_bytes == 4 * 501 + 4 * nnz + 2 * nnz + 4


def test_a_plan_tells_what_is_done_once_from_what_is_done_each_time() -> None:
    plan = plan_of()
    assert [launch.kernel for launch in plan.prepares] == ["make"]
    assert [launch.kernel for launch in plan.launches] == ["k"]
    assert [(a.name, a.nbytes, a.zero) for a in plan.derived] == [
        ("twice", 160, False),
        ("narrow", 40, False),
        ("made", 4, True),
    ]
    assert plan.bound == ("col_idx", "row_ptr", "vals", "x", "y")
    assert plan.streamed == ("made", "narrow", "row_ptr", "twice")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("int* made) {\n  int i", "int* made, const real* x) {\n  int i", "x is unknown"),
        ("int* made) {\n  int i", "int* made, real* y) {\n  int i", "y is unknown"),
        ("const real* twice,", "real* twice,", "twice is const here; only prepare kernels"),
        ("derived made int", "derived x int", "array x hides a name"),
        ("prepare make grid", "prepare mend grid", "no kernel 'mend'"),
    ],
)
def test_what_preparing_may_not_have_is_refused(old: str, new: str, says: str) -> None:
    assert PROGRAM.count(old) == 1
    with pytest.raises(BindError, match=says):
        plan_of(PROGRAM.replace(old, new))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("//! derived twice real 3", "derived twice is declared twice"),
        ("//! workspace twice real 3", "workspace twice is declared twice"),
        ("//! derived z half 3", "derived type is one of int, unsigned, short, ushort, uchar"),
        ("//! derived z", "expected //! derived NAME DTYPE"),
        ("//! prepare make grid=1", "prepare of make has no block="),
    ],
)
def test_a_malformed_line_is_named(line: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        parse(PROGRAM.replace("//! workspace halves", f"{line}\n//! workspace halves"))


def test_a_derived_array_is_no_memory_between_runs(evaluator: Evaluator) -> None:
    cheat = PROGRAM.replace(
        "  halves[row] = sum", "  ((real*)twice)[row] = sum;\n  halves[row] = sum"
    )
    found = verdict(evaluator, cheat)
    assert found.status is Status.WRONG_RESULT
    assert found.error.endswith("overwrote its input twice")


def test_preparing_may_not_change_the_matrix(evaluator: Evaluator) -> None:
    cheat = PROGRAM.replace("const real* vals, real* twice", "real* vals, real* twice").replace(
        "  atomicAdd(made", "  vals[i] = 1;\n  atomicAdd(made"
    )
    found = verdict(evaluator, cheat)
    assert found.status is Status.WRONG_RESULT
    assert found.error.endswith("overwrote its input vals")


def test_what_is_not_derived_is_not_there(evaluator: Evaluator) -> None:
    lazy = PROGRAM.replace("  twice[i] = 2 * vals[i];", "")
    assert verdict(evaluator, lazy).status is Status.WRONG_RESULT


def test_structure_is_known_by_name(evaluator: Evaluator) -> None:
    dense = np.zeros((6, 50))
    dense[1, [0, 7, 48]] = 1
    dense[4, 4] = 1
    problem = Problem(Op.SPMV, Matrix("m", "m", canonical(sparse.csr_array(dense), "m")))
    for name, value in (("longest", 3), ("filled", 2), ("reach", 47)):
        right = PROGRAM.replace("require cols <= 65536", f"require {name} == {value}")
        assert verdict(evaluator, right, problem).status is Status.OK
        wrong = PROGRAM.replace("require cols <= 65536", f"require {name} != {value}")
        assert verdict(evaluator, wrong, problem).status is Status.NOT_APPLICABLE
