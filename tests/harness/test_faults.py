"""What goes wrong beside the program is the machine's fault: tried again, and never scored."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import sparse

from suite.evaluation import Status
from suite.harness.compile import CompilerUnavailable
from suite.harness.device import DeviceFacts, DeviceFault
from suite.harness.evaluate import Evaluator, _device_lock
from suite.harness.worker import Worker, WorkerDied, WorkerTimeout
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from tests.harness.samples import GOOD, PROBLEM, SIGNATURE, SUM, body, matrix, verdict

DIED = WorkerDied("the compiler process ended (SIGSEGV)")
KILLED = WorkerDied("the compiler process ended (SIGKILL)", killed=True)


def failing(
    monkeypatch: pytest.MonkeyPatch, method: str, errors: list[Exception]
) -> Callable[[], int]:
    """Makes workers fail at ``method``, with one error a call; returns how often it was asked."""
    call, left = Worker.call, list(errors)

    def fail(self: Worker, asked: str, *args: Any, timeout: float) -> Any:
        if asked == method and left:
            raise left.pop(0)
        return call(self, asked, *args, timeout=timeout)

    monkeypatch.setattr(Worker, "call", fail)
    return lambda: len(errors) - len(left)


DEATH = WorkerDied("the emulator process ended (SIGKILL)")


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("hold", DEATH),
        ("hold", OSError(28, "No space left on device")),
        ("hold", RuntimeError("no usable CUDA device")),
        ("hold", DeviceFault(Status.LOAD_ERROR, "out of memory")),
        ("prepare", DEATH),
        ("prepare", DeviceFault(Status.LOAD_ERROR, "out of memory")),
        ("judge_program", DEATH),
    ],
)
def test_what_fails_twice_beside_the_program_is_nobodys_verdict(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch, method: str, error: Exception
) -> None:
    problem = Problem(Op.SPMV, matrix(seed=20))
    asked = failing(monkeypatch, method, [error] * 2)
    found = verdict(evaluator, GOOD, problem)
    assert found.status is Status.INFRASTRUCTURE_ERROR
    named = "" if isinstance(error, DeviceFault) else f"{type(error).__name__}: "
    assert found.error == f"{named}{error}"
    assert asked() == 2
    assert verdict(evaluator, GOOD, problem).ok
    evaluator.release(problem.matrix)


@pytest.mark.parametrize("method", ["hold", "prepare", "compile", "judge_program"])
def test_what_fails_once_costs_one_retry(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    problem = Problem(Op.SPMV, matrix(seed=21))
    asked = failing(monkeypatch, method, [WorkerDied("the process ended (SIGKILL)")])
    assert verdict(evaluator, GOOD, problem).ok
    assert asked() == 1
    evaluator.release(problem.matrix)


def test_a_worker_that_is_lost_while_a_problem_is_brought_ahead_costs_no_retry(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, ahead = (Problem(Op.SPMV, matrix(seed=seed)) for seed in (23, 24))
    assert verdict(evaluator, GOOD, held).ok
    os.kill(evaluator._worker._process.pid, signal.SIGKILL)
    evaluator.load(ahead)
    losses: list[Evaluator] = []
    monkeypatch.setattr(Evaluator, "_lose_worker", lambda self: losses.append(self))
    assert verdict(evaluator, GOOD, held).ok
    assert not losses
    for problem in (held, ahead):
        evaluator.release(problem.matrix)


def test_a_load_that_takes_too_long_is_not_the_programs(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(Op.SPMV, matrix(seed=22))
    failing(monkeypatch, "hold", [WorkerTimeout("no answer within 600 s")] * 2)
    assert verdict(evaluator, GOOD, problem).status is Status.INFRASTRUCTURE_ERROR


def test_a_host_without_a_compiler_is_not_the_programs(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "compile", [CompilerUnavailable("cannot load NVRTC")] * 2)
    found = verdict(evaluator, GOOD + "// no compiler\n")
    assert found.status is Status.INFRASTRUCTURE_ERROR
    assert "cannot load NVRTC" in found.error


@pytest.mark.parametrize(
    ("errors", "says"),
    [
        ([DIED, DIED], r"the compiler died of this program twice: .*SIGSEGV"),
        ([DIED, WorkerTimeout("no answer")], r"the compiler did not finish within 30 s"),
        ([WorkerTimeout("no answer")], r"the compiler did not finish within 30 s"),
    ],
    ids=["dies twice", "dies and hangs", "hangs"],
)
def test_a_program_that_the_compiler_cannot_survive_is_a_compile_error_and_asked_no_more(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch, errors: list[Exception], says: str
) -> None:
    text = GOOD + f"// {'/'.join(map(str, errors))}\n"
    asked = failing(monkeypatch, "compile", [*errors, DIED])
    for _ in range(2):
        found = verdict(evaluator, text)
        assert found.status is Status.COMPILE_ERROR
        assert re.search(says, found.error)
    assert asked() == len(errors)


def test_a_compiler_that_is_killed_again_and_again_is_no_fault_of_the_program(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD + "// killed\n"
    failing(monkeypatch, "compile", [KILLED] * 4)
    assert verdict(evaluator, text).status is Status.INFRASTRUCTURE_ERROR
    assert verdict(evaluator, text).ok


def test_times_are_milliseconds_and_wall_time_leaves_the_compiler_out(
    evaluator: Evaluator,
) -> None:
    started = time.perf_counter()
    found = verdict(evaluator, GOOD + "// not seen before\n")
    elapsed = (time.perf_counter() - started) * 1e3
    assert 1 < found.compile_ms < elapsed
    assert 0 <= found.conversion_ms < elapsed
    assert 0.8 * elapsed - 20 < found.compile_ms + found.wall_ms <= elapsed


def test_only_bound_arrays_count_as_bytes(evaluator: Evaluator) -> None:
    eye = Problem(Op.SPMV, Matrix("eye", "test", canonical(sparse.eye_array(64), "eye")))
    text = """//! op spmv
//! format csr
//! launch k grid=1 block=64
extern "C" __global__ void k(const real* vals, const real* x, real* y) {
  y[threadIdx.x] = vals[threadIdx.x] * x[threadIdx.x];
}
"""
    assert verdict(evaluator, text, eye).format_bytes == 64 * 4


def test_a_kernel_that_is_never_launched_counts_for_no_resources(evaluator: Evaluator) -> None:
    launched = verdict(evaluator, GOOD).resources
    loads = "".join(f"  real a{i} = x[row + {i}];\n" for i in range(80))
    total = " + ".join(f"a{i} * a{79 - i} * sum" for i in range(80))
    idle = SIGNATURE.replace(" k(", " idle(") + SUM.replace("y[row] = sum", f"y[row] = {total}")
    text = GOOD + idle.replace("  real sum", f"{loads}  real sum", 1)
    assert verdict(evaluator, text).resources == launched
    text = text.replace("//! launch", "//! launch idle grid=1 block=64\n//! launch", 1)
    assert verdict(evaluator, text).resources.registers > launched.registers


def test_the_hungriest_of_the_launched_kernels_is_reported(evaluator: Evaluator) -> None:
    text = GOOD.replace("//! launch", "//! launch idle grid=1 block=1\n//! launch", 1)
    text += 'extern "C" __global__ void idle() {}\n'
    assert verdict(evaluator, text).resources == verdict(evaluator, GOOD).resources


def test_both_precisions_of_one_matrix_are_kept_apart(evaluator: Evaluator) -> None:
    double = Problem(Op.SPMV, PROBLEM.matrix, dtype=DType.FLOAT64)
    assert [verdict(evaluator, GOOD, p).ok for p in (PROBLEM, double, PROBLEM)] == [True] * 3


def test_duplicates_of_a_file_are_one_entry_on_every_device(evaluator: Evaluator) -> None:
    stored = sparse.csr_array(([2.0, 1, 5], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    problem = Problem(Op.SPMV, Matrix("twice", "test", canonical(stored, "twice")))
    # The matrix's own values are 3 and 5; those of the other sets are signs or large odd integers.
    text = body(
        "  real v = vals[row];\n"
        "  bool known = v == row * 2 + 3 || v * v == 1 || v * v > 100;\n"
        "  y[row] = known ? v * x[row] : 0;"
    )
    text = text.replace("//! launch", "//! require nnz == 2\n//! launch", 1)
    assert verdict(evaluator, text, problem).ok


LOCKED = DeviceFacts("cuda", "x", "sm_90", 1, 1, 1, 1, {"pci_bus_id": "0000:test"})


def waits(shared: bool, **more: str) -> bool:
    """Whether another process has to wait for the GPU."""
    script = (
        "import signal, sys\n"
        "from suite.harness.evaluate import _device_lock\n"
        "from tests.harness.test_faults import LOCKED\n"
        "signal.signal(signal.SIGALRM, lambda *_: sys.exit(7))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        f"with _device_lock(LOCKED, {shared}):\n    signal.setitimer(signal.ITIMER_REAL, 0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **more}
    code = subprocess.run([sys.executable, "-c", script], env=environment).returncode
    assert code in (0, 7)
    return code == 7


def test_one_measurement_at_a_time_holds_across_processes() -> None:
    with _device_lock(LOCKED, shared=False):
        assert waits(shared=False)
        assert waits(shared=False, TMPDIR="/dev/shm")  # a job scheduler gives each job its own
        assert waits(shared=True)
    assert not waits(shared=False)


def test_whoever_only_verifies_shares_the_gpu_with_others_like_it() -> None:
    with _device_lock(LOCKED, shared=True):
        assert not waits(shared=True)
        assert waits(shared=False)


def test_whoever_measures_is_not_overtaken_by_those_who_verify() -> None:
    measured = threading.Event()

    def measure() -> None:
        with _device_lock(LOCKED, shared=False):
            measured.set()

    with _device_lock(LOCKED, shared=True):
        measuring = threading.Thread(target=measure)
        measuring.start()
        assert not measured.wait(0.2)
        assert waits(shared=True)  # else one who verifies after the other would keep it for ever
    assert measured.wait(5)
    measuring.join()
    assert not waits(shared=True)


def test_a_lock_may_be_used_by_several_threads_in_turn() -> None:
    lock = _device_lock(LOCKED, shared=False)

    def use() -> None:
        for _ in range(20):
            with lock:
                time.sleep(0.001)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert not waits(shared=False)


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_gpu() -> None:
    with _device_lock(LOCKED, shared=False):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        assert not waits(shared=False)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_lock_that_another_user_made_is_opened_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _device_lock(LOCKED, shared=False):
        pass  # now it is there
    real = os.open

    def protected(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT:  # as with fs.protected_regular, in a folder like /tmp
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", protected)
    with _device_lock(LOCKED, shared=False):
        pass
