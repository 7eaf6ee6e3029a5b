"""Matrices are handed over in a folder that goes away: when dropped, at exit, after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from suite.harness.exchange import Exchange
from suite.problem import DType, Op, Problem
from tests.harness.samples import matrix

SINGLE = Problem(Op.SPMV, matrix())
DOUBLE = Problem(Op.SPMV, SINGLE.matrix, dtype=DType.FLOAT64)
OTHER = Problem(Op.SPMV, matrix(seed=1))


@pytest.fixture
def exchange() -> Iterator[Exchange]:
    exchange = Exchange()
    yield exchange
    exchange.close()


def test_arrays_are_the_matrix_in_the_problems_precision(exchange: Exchange) -> None:
    csr = SINGLE.matrix.csr
    for problem, dtype in ((SINGLE, "float32"), (DOUBLE, "float64")):
        folder = exchange.put(problem)
        found = {path.stem: np.load(path) for path in folder.iterdir()}
        assert np.array_equal(found["values"], csr.data.astype(dtype))
        assert found["values"].dtype == dtype
        assert np.array_equal(found["indptr"], csr.indptr)
        assert np.array_equal(found["indices"], csr.indices)


def test_dropping_a_matrix_removes_its_folder_and_no_other(exchange: Exchange) -> None:
    mine, double, other = (exchange.put(problem) for problem in (SINGLE, DOUBLE, OTHER))
    exchange.drop(SINGLE.matrix.digest)
    assert not mine.parent.exists()
    assert not double.exists()
    assert (other / "values.npy").exists()
    assert (exchange.put(SINGLE) / "values.npy").exists()


def test_half_an_array_on_a_full_disk_is_not_taken_for_a_whole_one(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = np.save

    def full(path: Path, array: np.ndarray) -> None:
        save(path, array[: array.size // 2])
        if path.stem == "values":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="No space"):
        exchange.put(SINGLE)
    monkeypatch.setattr(np, "save", save)
    assert np.load(exchange.put(SINGLE) / "values.npy").size == SINGLE.matrix.csr.nnz


def test_dropping_what_is_not_there_is_harmless(exchange: Exchange) -> None:
    exchange.drop("nothing was put yet")
    exchange.put(SINGLE)
    exchange.drop("another digest")


def test_closing_removes_everything_and_may_be_repeated() -> None:
    exchange = Exchange()
    root = exchange.put(SINGLE).parents[1]
    assert root.exists()
    exchange.close()
    exchange.close()
    assert not root.exists()


def left_behind_by(ending: str) -> Path:
    """The folder of a process that puts a matrix and ends."""
    script = (
        "import os, signal\n"
        "from suite.harness.exchange import Exchange\n"
        "from tests.harness.test_exchange import SINGLE\n"
        "exchange = Exchange()\n"
        f"print(exchange.put(SINGLE).parents[1], flush=True)\n{ending}\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode in (0, 1, -signal.SIGKILL), ended.stderr
    return Path(ended.stdout.strip())


@pytest.mark.parametrize("ending", ["", "raise SystemExit(1)"])
def test_a_process_that_ends_leaves_nothing(ending: str) -> None:
    assert not left_behind_by(ending).exists()


def test_what_a_killed_process_left_goes_with_the_next_exchange(exchange: Exchange) -> None:
    folder = left_behind_by("os.kill(os.getpid(), signal.SIGKILL)")
    assert folder.exists()
    mine = exchange.put(SINGLE)
    assert not folder.exists()
    assert mine.exists()
    second = Exchange()
    second.put(OTHER)
    second.close()
    assert mine.exists()  # its process is alive
