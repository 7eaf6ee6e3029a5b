"""Every program gets its own verdict, on the emulator, and none disturbs the next one's."""

import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock, Timeout
from scipy import sparse

from suite.evaluation import Status
from suite.harness.evaluate import DeviceUnavailable, Evaluator, Settings
from suite.harness.judge import PLAIN
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram, LibraryCall
from tests.conftest import gpu_missing
from tests.harness.samples import GOOD, PROBLEM, body, matrix, verdict


def test_a_right_program_is_ok_with_everything_known_about_it(evaluator: Evaluator) -> None:
    found = verdict(evaluator, GOOD)
    assert found.status is Status.OK
    assert 4 + PLAIN.least <= found.checks <= 4 + PLAIN.most
    assert 0 < found.error_ratio < 1
    assert found.resources is not None
    assert found.resources.registers > 0
    if evaluator.facts.kind == "emulator":
        assert found.emulated_us > 0
        assert (found.hot, found.cold) == (None, None)
    else:
        assert found.emulated_us is None
        assert found.hot.low_us <= found.hot.median_us <= found.hot.high_us
        assert found.cold.median_us >= 0.9 * found.hot.median_us
    csr = PROBLEM.matrix.csr
    assert found.format_bytes == csr.indptr.nbytes + csr.indices.nbytes + csr.nnz * 4
    assert found.conversion_ms is not None
    assert found.device == evaluator.facts.name


def test_a_text_that_came_to_no_end_is_not_parsed(evaluator: Evaluator) -> None:
    answer = KernelProgram("model", GOOD, unfinished="no end within 9 tokens")
    found = evaluator.evaluate(PROBLEM, answer)
    assert (found.status, found.error) == (Status.PARSE_ERROR, "no end within 9 tokens")


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("", Status.PARSE_ERROR, "empty"),
        ("\0" + GOOD, Status.PARSE_ERROR, "NUL"),
        ("I cannot help with that.", Status.PARSE_ERROR, "no '//! op' line"),
        (GOOD.replace("int rows,", "int height,"), Status.BIND_ERROR, "height is unknown"),
        (GOOD.replace("sum = 0", "sum = zero"), Status.COMPILE_ERROR, r"program.cu\(9\): error"),
        (GOOD.replace("sum = 0", "sum = “0”"), Status.COMPILE_ERROR, "error"),
        (
            GOOD.replace("block=64", "block=64 shared=300000"),
            Status.LOAD_ERROR,
            "300,?000 bytes of shared memory",
        ),
        (body("while (vals[0] != 12345) y[row] = 0;"), Status.TIMEOUT, "did not finish within 3 s"),
        (body("y[row + (1ll << 40)] = 0;"), Status.MEMORY_FAULT, "address|illegal memory"),
        (
            body("y[row] = x[col_idx[row] + (1ll << 40)];"),
            Status.MEMORY_FAULT,
            "address|illegal memory",
        ),
        (body("__trap();"), Status.MEMORY_FAULT, "trap|launch|instruction"),
        (body("y[row] = 0;"), Status.WRONG_RESULT, "wrong element"),
        (body("if (row != 77) y[row] = 0; "), Status.WRONG_RESULT, "wrong element"),
    ],
)
def test_each_failure_has_a_status_of_its_own(
    evaluator: Evaluator, text: str, status: Status, says: str
) -> None:
    found = verdict(evaluator, text)
    assert found.status is status, found.error
    assert re.search(says, found.error)
    assert "\n" not in found.error
    assert (found.emulated_us, found.hot, found.cold) == (None, None, None)


def test_a_compile_error_comes_with_the_compilers_whole_log(evaluator: Evaluator) -> None:
    found = verdict(evaluator, GOOD.replace("sum = 0", "sum = zero"))
    assert 'identifier "zero" is undefined' in found.log
    assert found.resources is None


def test_good_programs_between_bad_ones_are_undisturbed(evaluator: Evaluator) -> None:
    out_of_bounds = body("y[row + (1ll << 40)] = 1;")
    endless = body("while (x[0] != 12345) ;")
    abort = body("__trap();")
    started = time.monotonic()
    batch = [GOOD, out_of_bounds, GOOD, endless, GOOD, abort, GOOD]
    found = [verdict(evaluator, text).status for text in batch]
    assert found[::2] == [Status.OK] * 4
    assert found[1::2] == [Status.MEMORY_FAULT, Status.TIMEOUT, Status.MEMORY_FAULT]
    assert time.monotonic() - started < 30


def test_a_worker_killed_by_the_host_costs_one_retry_and_no_verdict(evaluator: Evaluator) -> None:
    assert verdict(evaluator, GOOD).ok
    process = evaluator._worker._process
    assert process is not None
    process.kill()
    process.wait()
    assert [verdict(evaluator, GOOD).status for _ in range(2)] == [Status.OK] * 2


def test_a_worker_that_cannot_start_is_nobodys_wrong_program(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Evaluator("emulator", Settings(cache=cache, run_s=3.0)) as evaluator:
        evaluator._lose_worker()
        monkeypatch.setenv("PATH", str(tmp_path))
        for _ in range(2):
            found = verdict(evaluator, GOOD)
            assert found.status is Status.INFRASTRUCTURE_ERROR
            assert "g++" in found.error
        monkeypatch.undo()
        assert verdict(evaluator, GOOD).ok


def test_a_compiler_that_does_not_finish_is_a_compile_error_and_asked_once(cache: Path) -> None:
    bomb = "template <int N> struct T { static constexpr int v = T<N - 1>::v + T<N - 2>::v; };\n"
    text = GOOD.replace("extern", f"{bomb}extern", 1).replace(
        "real sum = 0", "real sum = T<900>::v"
    )
    settings = Settings(cache=cache, run_s=3.0, compile_s=0.05)
    with Evaluator("emulator", settings) as evaluator:
        first = verdict(evaluator, text)
        started = time.monotonic()
        second = verdict(evaluator, text)
        assert time.monotonic() - started < 0.5
    assert first.status is second.status is Status.COMPILE_ERROR
    assert "did not finish within 0.05 s" in first.error


def test_a_row_whose_sum_could_overflow_is_not_applicable(evaluator: Evaluator) -> None:
    huge = Matrix("sums", "file", canonical(sparse.csr_array(np.full((2, 9), 3e38)), "sums"))
    found = verdict(evaluator, GOOD, Problem(Op.SPMV, huge))
    assert found.status is Status.NOT_APPLICABLE
    assert "may overflow float32" in found.error


def test_scratch_memory_is_not_zero_unless_it_is_asked_to_be(evaluator: Evaluator) -> None:
    text = GOOD.replace("//! format csr", "//! format csr\n//! workspace w real rows")
    text = text.replace("real* __restrict__ y)", "real* y, real* w)")
    text = text.replace("y[row] = sum;", "y[row] = w[row] + sum;")
    assert verdict(evaluator, text).status is Status.WRONG_RESULT
    assert verdict(evaluator, text.replace("real rows", "real rows zero")).status is Status.OK


def test_init_zero_lets_a_program_accumulate(evaluator: Evaluator) -> None:
    text = GOOD.replace("y[row] = sum", "y[row] += sum")
    assert verdict(evaluator, text).status is Status.WRONG_RESULT
    accumulating = text.replace("//! format csr", "//! format csr\n//! init zero")
    assert verdict(evaluator, accumulating).status is Status.OK


def test_a_format_that_does_not_fit_is_not_applicable_with_its_reason(evaluator: Evaluator) -> None:
    big = Problem(Op.SPMV, matrix(rows=6000, cols=6000))
    program = """//! op spmv
//! format dia
//! launch k grid=1 block=1
extern "C" __global__ void k(int rows, real* y) {}
"""
    found = verdict(evaluator, program, big)
    assert found.status is Status.NOT_APPLICABLE
    assert "diagonals" in found.error
    assert found.emulated_us is None


def test_a_library_routine_needs_a_gpu(evaluator: Evaluator) -> None:
    if evaluator.facts.kind == "cuda":
        pytest.skip("this host has a GPU")
    found = evaluator.evaluate(PROBLEM, LibraryCall("cusparse"))
    assert found.status is Status.NOT_APPLICABLE
    assert "needs an NVIDIA GPU" in found.error


@pytest.mark.gpu
@pytest.mark.parametrize("routine", ["cusparse", "cusparse_best"])
@pytest.mark.parametrize("columns", [1, 32])
@pytest.mark.parametrize("dtype", list(DType))
def test_the_library_is_judged_like_a_program(
    evaluator: Evaluator, routine: str, columns: int, dtype: DType
) -> None:
    if evaluator.facts.kind != "cuda":
        pytest.skip("needs an NVIDIA GPU")
    op = Op.SPMV if columns == 1 else Op.SPMM
    found = evaluator.evaluate(Problem(op, matrix(), columns, dtype), LibraryCall(routine))
    assert found.status is Status.OK, found.error
    assert 4 + PLAIN.least <= found.checks <= 4 + PLAIN.most
    assert found.detail


@pytest.mark.parametrize("shape", [(0, 0), (0, 709), (3, 4), (1000, 1000), (1, 1)])
def test_empty_matrices_give_zeros_of_the_right_shape(
    evaluator: Evaluator, shape: tuple[int, int]
) -> None:
    empty = Matrix(
        f"empty-{shape[0]}-{shape[1]}", "empty", canonical(sparse.csr_array(shape), "empty")
    )
    found = verdict(evaluator, GOOD, Problem(Op.SPMV, empty))
    assert found.status is Status.OK, found.error


def test_no_dense_columns_is_nothing_to_compute(evaluator: Evaluator) -> None:
    text = """//! op spmm
//! format csr
//! launch k grid=rows block=32
extern "C" __global__ void k(int n, real* C) {
  if (threadIdx.x < n) C[blockIdx.x * n + threadIdx.x] = 0;
}
"""
    assert verdict(evaluator, text, Problem(Op.SPMM, matrix(), columns=0)).status is Status.OK


def test_a_value_that_overflows_the_precision_is_not_applicable(evaluator: Evaluator) -> None:
    huge = Matrix("huge", "file", canonical(sparse.csr_array([[1e300, 1.0]]), "huge"))
    found = verdict(evaluator, GOOD, Problem(Op.SPMV, huge))
    assert found.status is Status.NOT_APPLICABLE
    assert "float64" in found.error
    assert verdict(evaluator, GOOD, Problem(Op.SPMV, huge, dtype=DType.FLOAT64)).ok


def test_a_released_matrix_is_simply_loaded_again(evaluator: Evaluator) -> None:
    mine = Problem(Op.SPMV, matrix(seed=9))
    assert verdict(evaluator, GOOD, mine).ok
    evaluator.release(mine.matrix)
    assert verdict(evaluator, GOOD, mine).ok


def test_compiling_ahead_leaves_nothing_to_compile(evaluator: Evaluator) -> None:
    programs = [KernelProgram("test", GOOD + f"// {i}\n") for i in range(3)]
    broken = KernelProgram("test", GOOD.replace("sum = 0", "sum = zero"))
    evaluator.compile_ahead([*programs, broken, KernelProgram("test", "")], DType.FLOAT32)
    assert [evaluator.evaluate(PROBLEM, p).compile_ms for p in programs] == [0, 0, 0]


def test_cuda_without_a_gpu_says_so_in_one_line(tmp_path: Path) -> None:
    if not gpu_missing():
        pytest.skip("this host has a GPU")
    with pytest.raises(DeviceUnavailable, match=r"\A[^\n]*CUDA[^\n]*\Z"):
        Evaluator("cuda", Settings(cache=tmp_path))


def test_nothing_is_left_behind(cache: Path) -> None:
    def folders() -> set[Path]:
        roots = (Path("/dev/shm"), Path(tempfile.gettempdir()))
        return {path for root in roots for path in root.glob(f"sparserl-{os.getpid()}-*")}

    before = folders()
    evaluator = Evaluator("emulator", Settings(cache=cache, run_s=3.0))
    evaluator.evaluate(PROBLEM, KernelProgram("test", GOOD))
    assert len(folders() - before) == 3  # matrices, and what each of two processes may write to
    evaluator.close()
    assert folders() == before


def test_compilers_last_from_one_batch_to_the_next(cache: Path) -> None:
    with Evaluator("emulator", Settings(cache=cache, compilers=2)) as evaluator:
        for batch in range(2):
            programs = [KernelProgram("test", f"{GOOD}// batch {batch}, {i}\n") for i in range(5)]
            evaluator.compile_ahead(programs, DType.FLOAT32)
            for program in programs:
                assert evaluator.evaluate(PROBLEM, program).compile_ms == 0


def test_a_problem_brought_ahead_is_there(evaluator: Evaluator) -> None:
    problem = Problem(Op.SPMV, matrix(40, 40))
    evaluator.load(problem)
    assert verdict(evaluator, GOOD, problem).ok
    huge = Matrix("huge", "", canonical(sparse.eye_array(4) * 1e300, "huge"))
    evaluator.load(Problem(Op.SPMV, huge))  # what goes wrong is told by the first program
    assert verdict(evaluator, GOOD, Problem(Op.SPMV, huge)).status is Status.NOT_APPLICABLE


def test_an_exclusive_evaluator_has_the_device_while_it_is_open(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other() -> FileLock:
        return FileLock(tmp_path / "gpu.lock")

    monkeypatch.setattr("suite.harness.evaluate._device_lock", lambda facts, shared: other())
    settings = Settings(precision=None, cache=cache, exclusive=True)
    with Evaluator("emulator", settings) as exclusive:
        assert exclusive.evaluate(PROBLEM, KernelProgram("test", GOOD)).ok
        with pytest.raises(Timeout):
            other().acquire(timeout=0)
    with other().acquire(timeout=0):
        pass
