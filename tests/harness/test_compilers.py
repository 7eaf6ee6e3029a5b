"""Compilers are shared: who needs a program now comes first, and closing ends them for good."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suite.harness.compile import Target
from suite.harness.compilers import Compilers
from suite.harness.device import Compiled
from suite.harness.parse import parse
from suite.harness.settings import Settings
from suite.harness.worker import Worker, WorkerUnavailable
from tests.harness.samples import GOOD

SLOW = 0.05  # seconds of a compilation


def texts(count: int) -> list[str]:
    return [f"{GOOD}\n// {i}\n" for i in range(count)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Worker, str]]:
    """Which compiler was asked for what; none of them is real, and each takes its time."""
    calls: list[tuple[Worker, str]] = []

    def call(worker: Worker, method: str, *_: Any, timeout: float) -> Compiled | None:
        calls.append((worker, method))
        time.sleep(SLOW)
        return Compiled("", b"", {}, "", 0.0) if method == "compile" else None

    monkeypatch.setattr(Worker, "call", call)
    return calls


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Compilers]:
    compilers = Compilers(Settings(cache=tmp_path, compilers=2))
    yield compilers
    compilers.close()


def children() -> set[int]:
    """Processes of this one."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def compile_one(compilers: Compilers) -> None:
    compilers.compile(parse(GOOD), Target())


def test_who_needs_a_program_now_does_not_wait_for_what_is_compiled_ahead(
    two: Compilers, asked: list[tuple[Worker, str]]
) -> None:
    batches = [
        threading.Thread(target=two.compile_ahead, args=(texts(20), Target())) for _ in range(3)
    ]
    for batch in batches:
        batch.start()
    time.sleep(2 * SLOW)
    for _ in range(3):
        compile_one(two)
    methods = [method for _, method in asked]
    assert methods.count("compile") == 3
    assert methods.count("compile_ahead") < 20  # of 60
    for batch in batches:
        batch.join()


def test_a_batch_is_compiled_by_all_at_once(
    two: Compilers, asked: list[tuple[Worker, str]]
) -> None:
    two.compile_ahead(texts(20), Target())
    assert len(asked) == 20
    assert len({worker for worker, _ in asked}) == 2


def test_one_program_after_the_other_needs_one_compiler(
    two: Compilers, asked: list[tuple[Worker, str]]
) -> None:
    for _ in range(4):
        compile_one(two)
    assert len({worker for worker, _ in asked}) == 1


def test_closing_ends_compilers_for_good_and_whoever_waits_for_them(two: Compilers) -> None:
    others = children()  # of earlier tests
    batch = threading.Thread(target=two.compile_ahead, args=(texts(500), Target()))
    batch.start()
    compile_one(two)  # by then its process is there
    processes = children() - others
    assert processes
    two.close()
    batch.join(2)
    assert not batch.is_alive()
    assert not processes & children()
    with pytest.raises(RuntimeError, match="closed"):
        compile_one(two)


def test_a_compiler_that_does_not_start_says_nothing_of_a_program(
    two: Compilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.harness.worker.sys.executable", "/bin/false")
    with pytest.raises(WorkerUnavailable, match="compiler process ended"):
        compile_one(two)


def test_a_compiler_starts_without_what_it_never_needs() -> None:
    says = "import sys, suite.harness.services; print('scipy.sparse' in sys.modules)"
    started = subprocess.run([sys.executable, "-c", says], capture_output=True, text=True)
    assert started.stdout == "False\n", started.stderr
