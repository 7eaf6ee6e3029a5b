"""One right program, and problems to give it to."""

import numpy as np
from scipy import sparse

from suite.evaluation import Evaluation
from suite.harness.evaluate import Evaluator
from suite.matrices.base import Matrix, canonical
from suite.problem import Op, Problem
from suite.program import KernelProgram

HEADER = """//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64
"""
SIGNATURE = """extern "C" __global__ void k(int rows, const int* __restrict__ row_ptr,
    const int* __restrict__ col_idx, const real* __restrict__ vals, const real* __restrict__ x,
    real* __restrict__ y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
"""
SUM = """  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
}
"""
GOOD = HEADER + SIGNATURE + SUM


def body(code: str) -> str:
    """A program whose kernel does ``code`` for each row."""
    return HEADER + SIGNATURE + code + "\n}\n"


def matrix(rows: int = 500, cols: int = 400, seed: int = 0, density: float = 0.02) -> Matrix:
    a = sparse.random_array((rows, cols), density=density, rng=np.random.default_rng(seed))
    return Matrix(f"random-{rows}", "random", canonical(a, "random"))


PROBLEM = Problem(Op.SPMV, matrix())


def verdict(evaluator: Evaluator, text: str, problem: Problem = PROBLEM) -> Evaluation:
    return evaluator.evaluate(problem, KernelProgram("test", text))
