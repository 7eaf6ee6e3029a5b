"""What a process may no longer do once the suite has taken it away, and what it still can."""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from suite.evaluation import Status
from suite.harness import processes, sandbox
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.evaluate import Evaluator
from suite.harness.isolate import forked
from suite.harness.judge import Verdict
from suite.harness.worker import Worker, WorkerDied
from tests.emulator.lab import Lab
from tests.harness.samples import GOOD, verdict

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64",
    reason="system calls are filtered on Linux on x86-64 only",
)
REFUSED = "PermissionError"


def socket_of(family: int) -> Callable[[], object]:
    return lambda: socket.socket(family, socket.SOCK_STREAM)


def fork() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    return child


def thread() -> None:
    one = threading.Thread(target=lambda: None)
    one.start()
    one.join()


def executable_memory() -> None:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


def trace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, os.getppid(), 0, 0):  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "ptrace")


ATTEMPTS: dict[str, Callable[[], object]] = {
    "read a file": lambda: Path("/etc/hostname").read_text(),
    "write a file": lambda: os.open("/tmp/escaped", os.O_CREAT | os.O_WRONLY),
    "remove a file": lambda: os.unlink("/tmp/not-there"),
    "open an internet socket": socket_of(socket.AF_INET),
    "open a local socket": socket_of(socket.AF_UNIX),
    "fork": fork,
    "run a program": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "become a program": lambda: os.execv("/bin/true", ["true"]),
    "signal its parent": lambda: os.kill(os.getppid(), 0),
    "trace its parent": trace,
    "make memory executable": executable_memory,
    "make a pipe": os.pipe,
    "start a thread": thread,
    "allocate": lambda: mmap.mmap(-1, 1 << 20),
}
COMPUTING = {"start a thread", "allocate"}
NETWORK = {"open an internet socket", "open a local socket", "trace its parent"}


def outcome(name: str) -> str:
    try:
        ATTEMPTS[name]()
    except OSError as error:
        return type(error).__name__
    return "done"


def tried(before: Callable[[], object], names: set[str]) -> dict[str, str]:
    """What becomes of attempts in a child of ours, after ``before``."""

    def attempt() -> Verdict:
        before()
        return Verdict(Status.OK, detail=repr({name: outcome(name) for name in sorted(names)}))

    found = forked(attempt, 20.0)
    assert found.status is Status.OK, found.error
    return dict(eval(found.detail))  # our own repr


def test_a_confined_process_can_compute_and_nothing_else() -> None:
    found = tried(sandbox.confine, set(ATTEMPTS))
    assert found == {name: "done" if name in COMPUTING else REFUSED for name in ATTEMPTS}


def test_unconfined_the_same_attempts_succeed() -> None:
    """Otherwise their failing would say nothing."""
    kept = {
        "read a file",
        "open an internet socket",
        "fork",
        "make memory executable",
        "make a pipe",
    }
    assert set(tried(lambda: None, kept | COMPUTING).values()) == {"done"}


def test_without_a_network_files_and_processes_remain() -> None:
    names = {"read a file", "fork", "make a pipe", *COMPUTING, *NETWORK}
    found = tried(sandbox.no_network, names)
    assert found == {name: REFUSED if name in NETWORK else "done" for name in names}


def test_a_driver_may_keep_the_sockets_of_this_host() -> None:
    found = tried(lambda: sandbox.no_network(local_sockets=True), NETWORK)
    assert found == dict.fromkeys(NETWORK, REFUSED) | {"open a local socket": "done"}


def test_a_loaded_program_is_confined_before_it_runs(cache: Path) -> None:
    """By the device itself: no code of a program has run when the door closes."""
    names = {"read a file", "write a file", "open an internet socket", "fork", "run a program"}

    def load_and_run() -> None:
        lab = Lab(EmulatorDevice(cache / "emulator", workers=2, confine=sandbox.confine))
        text = 'extern "C" __global__ void k(float* y) { y[threadIdx.x] = 3; }'
        found = lab.run(text, {"y": np.zeros(4, np.float32)}, block=4)
        assert list(found["y"]) == [3, 3, 3, 3]

    assert set(tried(load_and_run, names).values()) == {REFUSED}


class Prober:
    """A service that tries, as the real ones are set up."""

    def __init__(self, filtered: bool) -> None:
        if filtered:
            sandbox.no_network()

    def outcome(self, name: str) -> str:
        return outcome(name)

    def folder(self) -> str:
        import tempfile

        return tempfile.gettempdir()


def test_each_worker_has_a_private_folder_that_goes_with_it() -> None:
    one, two = (Worker("tests.harness.test_sandbox:Prober", {"filtered": True}) for _ in "ab")
    try:
        folders = [Path(worker.call("folder", timeout=20)) for worker in (one, two)]
        assert folders[0] != folders[1]
        assert all(folder.stat().st_mode & 0o77 == 0 for folder in folders)
        assert one.call("outcome", "open an internet socket", timeout=20) == REFUSED
    finally:
        one.close()
        two.close()
    assert not any(folder.exists() for folder in folders)


def test_only_folders_of_processes_that_have_ended_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"sparserl-{ended.pid}-left"
    left.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_PROCESSES", tmp_path / "no-proc")  # as on other systems
        mine = processes.private_folder(tmp_path)
        assert left.exists()
    another = processes.private_folder(tmp_path)
    assert (left.exists(), mine.exists(), another.exists()) == (False, True, True)


def test_what_a_worker_is_says_how_it_is_confined(cache: Path) -> None:
    with Evaluator("emulator") as evaluator:
        assert evaluator.facts.details["sandbox"] == "system calls filtered"


@pytest.mark.parametrize("function", ["open", "socket", "system", "fork", "printf"])
def test_no_program_can_name_a_function_of_the_host(evaluator: Evaluator, function: str) -> None:
    call = f'extern "C" int {function}(const char*, ...);\n'
    text = GOOD.replace("extern", f"{call}extern", 1).replace("sum = 0", f'sum = {function}("a")')
    refused = (Status.COMPILE_ERROR, Status.LOAD_ERROR, Status.NOT_APPLICABLE)
    assert verdict(evaluator, text).status in refused


class Malicious:
    """What a program might leave instead of a verdict."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch /tmp/escaped",)


def test_an_answer_is_data_and_never_code(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = pickle.dumps(Malicious())
    monkeypatch.setattr("suite.harness.isolate.pickle.dumps", lambda _: answer)
    found = forked(lambda: Verdict(Status.OK), 5.0)
    assert found.status is Status.MEMORY_FAULT
    assert "spoilt its process's answer" in found.error
    assert not Path("/tmp/escaped").exists()


def test_a_worker_that_is_started_ahead_answers_like_any_other() -> None:
    worker = Worker("tests.harness.test_sandbox:Prober", {"filtered": False})
    try:
        worker.start()
        worker.start()
        process = worker._process
        assert worker.call("outcome", "allocate", timeout=20) == "done"
        assert worker._process is process
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            worker.call("outcome", "allocate", timeout=20)
    finally:
        worker.close()


def test_a_worker_that_cannot_start_says_so_when_it_is_asked() -> None:
    worker = Worker("tests.harness.test_sandbox:Nothing", {})
    worker.start()
    with pytest.raises(AttributeError, match="Nothing"):
        worker.call("outcome", "allocate", timeout=20)
    assert worker._process is None


def test_a_compiler_has_no_network() -> None:
    script = (
        "from pathlib import Path; import socket\n"
        "from suite.harness.services import compiler\n"
        "compiler(Path('/tmp'), 4 << 30, 1 << 20)\n"
        "socket.socket()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert REFUSED in ended.stderr
