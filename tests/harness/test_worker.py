"""A worker answers, or is replaced; it never takes the caller down, nor carries its secrets."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from suite.harness.worker import Worker, WorkerDied, WorkerTimeout


class Probe:
    """A service that does what it is told."""

    def __init__(self, name: str) -> None:
        self.name = name

    def pid(self) -> int:
        return os.getpid()

    def hello(self) -> str:
        return f"hello {self.name}"

    def sleep(self, seconds: float) -> str:
        time.sleep(seconds)
        return "late"

    def fail(self) -> None:
        raise KeyError("what went wrong")

    def unpicklable(self) -> None:
        class Local(Exception):
            pass

        raise Local("still told")

    def die(self, code: int) -> None:
        os._exit(code)

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def child(self) -> int:
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        return child


@pytest.fixture
def worker():
    worker = Worker("tests.harness.test_worker:Probe", {"name": "world"})
    yield worker
    worker.close()


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone_within(seconds: float, pid: int) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_a_worker_answers_from_a_process_of_its_own(worker: Worker) -> None:
    assert worker.call("hello", timeout=10) == "hello world"
    assert worker.call("pid", timeout=10) not in (os.getpid(), None)


def test_an_exception_reaches_the_caller_and_the_worker_goes_on(worker: Worker) -> None:
    before = worker.call("pid", timeout=10)
    with pytest.raises(KeyError, match="what went wrong"):
        worker.call("fail", timeout=10)
    with pytest.raises(RuntimeError, match="still told"):
        worker.call("unpicklable", timeout=10)
    assert worker.call("pid", timeout=10) == before


def test_a_hang_is_ended_in_time_and_the_next_call_gets_a_fresh_process(worker: Worker) -> None:
    stuck = worker.call("pid", timeout=10)
    started = time.monotonic()
    with pytest.raises(WorkerTimeout, match=r"no answer within 0\.3 s"):
        worker.call("sleep", 30.0, timeout=0.3)
    assert time.monotonic() - started < 3
    assert gone_within(3, stuck)
    assert worker.call("hello", timeout=10) == "hello world"


@pytest.mark.parametrize("code", [0, 3])
def test_a_death_is_told_with_its_exit_code(worker: Worker, code: int) -> None:
    with pytest.raises(WorkerDied, match=f"exit code {code}") as died:
        worker.call("die", code, timeout=10)
    assert not died.value.killed
    assert worker.call("hello", timeout=10) == "hello world"


def test_a_killed_process_is_told_by_its_signal(worker: Worker) -> None:
    os.kill(worker.call("pid", timeout=10), signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL") as died:
        worker.call("hello", timeout=10)
    assert died.value.killed


def test_an_interrupted_call_leaves_no_late_answer_to_the_next(worker: Worker) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    worker.call("pid", timeout=10)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            worker.call("sleep", 0.6, timeout=10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert worker.call("hello", timeout=10) == "hello world"


def test_no_secret_of_the_environment_reaches_a_worker(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in worker.call("environment", timeout=10).values()


def test_closing_ends_the_process_and_its_children(worker: Worker) -> None:
    pids = [worker.call("pid", timeout=10), worker.call("child", timeout=10)]
    worker.close()
    worker.close()
    assert all(gone_within(3, pid) for pid in pids)


def test_a_worker_ends_when_its_parent_is_killed() -> None:
    script = (
        "import sys, time\n"
        "from suite.harness.worker import Worker\n"
        "w = Worker('tests.harness.test_worker:Probe', {'name': 'x'})\n"
        "print(w.call('pid', timeout=10), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert gone_within(3, pid)


def test_a_worker_outlives_the_thread_that_needed_it_first(worker: Worker) -> None:
    pids: list[int] = []
    thread = threading.Thread(target=lambda: pids.append(worker.call("pid", timeout=10)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert worker.call("pid", timeout=10) == pids[0]
