"""A campaign that is told to stop, stops: nothing of it is left after three seconds."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.shell import plain

# Until nothing is left. Beside other tests on every core, a process may wait for its turn.
GONE_S = 10 if "PYTEST_XDIST_WORKER" in os.environ else 3

ENDLESS = """//! op spmv
//! format csr
//! launch k grid=1 block=32
extern "C" __global__ void k(const real* x, real* y) {
  while (x[0] != 12345) y[0] = 0;
}
"""
REPOSITORY = Path(__file__).parents[2]


def until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())


def processes() -> Iterator[tuple[int, int, bytes]]:
    """Id, parent's id and environment of every process of ours that is alive."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                yield int(folder.name), int(fields[1]), (folder / "environ").read_bytes()
        except OSError:  # ended meanwhile, or somebody else's
            continue


def of_campaign(pid: int) -> dict[int, int]:
    """Processes that the campaign's process has started, with their parents."""
    mark = f"sparserl-{pid}-".encode()  # in the name of the folder that each of them is given
    return {child: parent for child, parent, environment in processes() if mark in environment}


def processor_seconds(pid: int) -> float:
    """Processor time of a process that is there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_judging(pid: int) -> bool:
    """Whether a worker has made the process in which a program runs."""
    found = of_campaign(pid)
    return any(parent in found for parent in found.values())


def is_logged(database: Path) -> bool:
    """Whether MLflow has a run; to import it takes seconds at the start."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return bool(connection.execute("select count(*) from runs").fetchone()[0])


@pytest.fixture
def campaign(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    empty_store: Path,
    request: pytest.FixtureRequest,
) -> Iterator[subprocess.Popen[bytes]]:
    """A campaign of one endless program on the emulator, which has begun to run it."""
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    (tmp_path / "endless.cu").write_text(ENDLESS)
    (tmp_path / "one.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n4 4 1\n1 1 1\n"
    )
    options = ["--suite-matrices=one.mtx", "--suite-authors=endless.cu", "--suite-ops=spmv"]
    options += ["--suite-device=emulator", "--benchmark-only", "-p", "no:cacheprovider"]
    tracking = getattr(request, "param", "on")
    options += [f"--suite-tracking={tracking}"]
    plain(monkeypatch)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", str(REPOSITORY / "suite"), *options],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert until(lambda: is_judging(process.pid) or process.poll() is not None, 120)
        assert tracking == "off" or until(lambda: is_logged(tmp_path / "mlflow.db"), 60)
        assert process.poll() is None
        yield process
    finally:
        for child in of_campaign(process.pid):
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 2, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, id="SIGTERM", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_campaign_leaves_nothing_behind(
    campaign: subprocess.Popen[bytes], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    mine = f"sparserl-{campaign.pid}-*"
    assert [*Path("/dev/shm").glob(mine), *Path("/tmp").glob(mine)]
    started, worked = time.monotonic(), processor_seconds(campaign.pid)
    os.killpg(campaign.pid, number)  # as a terminal does
    assert until(lambda: not of_campaign(campaign.pid), GONE_S)
    spent = 0.0
    while campaign.poll() is None and time.monotonic() - started < 60:
        spent = processor_seconds(campaign.pid) - worked
        time.sleep(0.02)
    # On a busy host its processor time tells how long it would have taken, and a processor that
    # others use too is slower.
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert min(time.monotonic() - started, spent) < (4.5 if busy else 3)
    assert campaign.returncode == code
    assert not of_campaign(campaign.pid)
    assert not [*Path("/dev/shm").glob(mine), *Path("/tmp").glob(mine)]
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("sparserl-bench")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert runs
    assert {run.info.status for run in runs} == {"KILLED"}


@pytest.mark.parametrize("campaign", ["off"], indirect=True, ids=["without MLflow"])
def test_a_killed_campaign_leaves_no_process(campaign: subprocess.Popen[bytes]) -> None:
    campaign.kill()
    campaign.wait()
    assert until(lambda: not of_campaign(campaign.pid), GONE_S)
