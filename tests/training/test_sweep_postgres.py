"""Two workers on one PostgreSQL study, a server of the test's own, and ``kill -9``."""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

optuna = pytest.importorskip("optuna", reason="needs the train extra")

from training.sweep.storage import open_storage  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DONE = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
FAILED = optuna.trial.TrialState.FAIL
TRIALS = 12


def programs() -> Path | None:
    """Where a server's programs are; Debian does not put them on the path."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((one for one in folders if (one / "postgres").exists()), None)


def somebody() -> str | None:
    """The server refuses to be root; None where nobody else is needed."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return pytest.skip("root cannot run PostgreSQL, and there is no other user")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of an empty database."""
    where = programs()
    if where is None:
        pytest.skip("needs PostgreSQL's server: apt install postgresql")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("needs PostgreSQL's driver: pip install 'psycopg[binary]'")
    user = somebody()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        if user:
            shutil.chown(folder, user)
        data = Path(folder) / "data"
        initdb = [where / "initdb", "-D", data, "-U", "sweep", "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run(initdb, check=True, user=user, cwd=folder, capture_output=True)
        running = subprocess.Popen(
            [where / "postgres", "-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port)],
            user=user,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield _ready(f"postgresql+psycopg://sweep@127.0.0.1:{port}/postgres", running)
        finally:
            running.send_signal(signal.SIGINT)  # its fast way to stop
            running.wait(30)


def _ready(url: str, running: "subprocess.Popen[bytes]") -> str:
    import psycopg

    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert running.poll() is None, "the server ended"
        try:
            psycopg.connect(url.replace("+psycopg", ""), connect_timeout=2).close()
            return url
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


class Worker:
    """A process that works on the study; its lines go to a file."""

    def __init__(self, url: str, out: Path, study: str) -> None:
        self._lines = out / f"{study}-{time.monotonic_ns()}.txt"
        with self._lines.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.training.sweep_lab", url, out, str(TRIALS), study],
                cwd=ROOT,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        return self._lines.read_text(encoding="utf-8")

    @property
    def begun(self) -> list[int]:
        return [int(one) for one in re.findall(r"^trial (\d+) begins$", self.text, re.MULTILINE)]

    def wait_for_a_trial(self) -> int:
        """Until one begins."""
        before, until = len(self.begun), time.monotonic() + 60
        while time.monotonic() < until and len(self.begun) == before:
            assert self.process.poll() is None, self.text
            time.sleep(0.02)
        return self.begun[-1]


@pytest.mark.parametrize("victim", [0, 1], ids=["who made it", "who joined"])
def test_no_trial_runs_twice_and_a_killed_worker_is_survived(
    server: str, tmp_path: Path, victim: int
) -> None:
    study = f"victim {victim}"
    workers = [Worker(server, tmp_path, study)]
    try:
        workers[0].wait_for_a_trial()
        workers.append(Worker(server, tmp_path, study))
        workers[1].wait_for_a_trial()
        if victim == 0:
            workers[0].wait_for_a_trial()
        workers[victim].process.send_signal(signal.SIGKILL)
        workers[victim].process.wait(10)
        survivor = workers[1 - victim]
        assert survivor.process.wait(90) == 0, survivor.text
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait(10)
    found = optuna.load_study(study_name=study, storage=open_storage(server, 1, 2))
    begun = workers[0].begun + workers[1].begun
    assert len(begun) == len(set(begun))
    assert set(begun) == {trial.number for trial in found.trials}
    assert sum(trial.state in DONE for trial in found.trials) == TRIALS
    killed = [trial for trial in found.trials if trial.state is FAILED]
    assert [trial.number for trial in killed] == [workers[victim].begun[-1]]
    (again,) = (trial for trial in found.trials if trial.user_attrs.get("retries"))
    assert again.user_attrs["retries"] == [killed[0].number]
    assert again.params == killed[0].params
    assert again.state in DONE


def test_workers_that_begin_at_once_make_one_study(server: str, tmp_path: Path) -> None:
    workers = [Worker(server, tmp_path, "at once") for _ in range(2)]
    try:
        assert [worker.process.wait(90) for worker in workers] == [0, 0], workers[0].text
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait(10)
    found = optuna.load_study(study_name="at once", storage=open_storage(server, 1, 2))
    assert sorted(workers[0].begun + workers[1].begun) == list(range(len(found.trials)))
    starts = [trial for trial in found.trials if trial.user_attrs.get("start")]
    assert [trial.number for trial in starts] == [0]
