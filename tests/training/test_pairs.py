"""Verifying draws: what is right is a pair, the rest is counted, and a stop costs one shard."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suite.evaluation import Evaluation, Status
from suite.problem import Problem
from suite.program import KernelProgram
from training import draws, pairs
from training.draws_config import DrawsConfig
from training.errors import ConfigError, TrainingError
from training.pairs import make, read_pairs, read_verdicts
from training.pairs_command import figures, summary
from training.pairs_config import PairsConfig
from training.teacher.describe import describe

SHARDS = 4
DRAWS = 2 * SHARDS  # one of each matrix, two matrices a shard


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("draws")
    draws.make(DrawsConfig(out=out, matrices=2 * SHARDS, per_matrix=1, largest=4e3, shard=2), quiet)
    return out


@pytest.fixture
def config(drawn: Path, tmp_path: Path) -> PairsConfig:
    return PairsConfig(draws=drawn, out=tmp_path / "pairs", device="emulator", tracking="off")


def quiet(_: str) -> None: ...


class FakeEvaluator:
    """Judges nothing: every third program is wrong, so that drops are seen."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def close(self) -> None: ...

    def compile_ahead(self, *_: object) -> None: ...

    def convert_ahead(self, *_: object) -> None: ...

    def release(self, _: object) -> None: ...

    def binary(self, program: KernelProgram, _: object) -> bytes:
        return program.text.encode()

    def evaluate(self, problem: Problem, program: KernelProgram) -> Evaluation:
        if int(program.digest, 16) % 3 == 0:
            return Evaluation(Status.WRONG_RESULT, "wrong")
        return Evaluation(Status.OK)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeEvaluator]:
    monkeypatch.setattr(pairs, "Evaluator", FakeEvaluator)
    return FakeEvaluator


def test_draws_are_verified_by_several_processes_and_stored(config: PairsConfig) -> None:
    counts = make(replace(config, workers=2), quiet)
    rows = read_pairs(config.out).to_pylist()
    assert len(rows) == counts.kept == DRAWS  # the space has no wrong program
    assert {row["status"] for row in rows} == {"ok"}
    assert counts.matrices == 2 * SHARDS
    assert all(row["key"] == describe(row["text"]) and len(row["binary"]) == 16 for row in rows)
    assert any("programs over" in line for line in summary(counts))
    assert figures(counts)["kept"] == counts.kept


@pytest.mark.usefixtures("fake")
def test_what_is_wrong_is_counted_and_no_pair(config: PairsConfig) -> None:
    counts = make(config, quiet)
    assert 0 < counts.kept == read_pairs(config.out).num_rows < DRAWS
    assert counts.statuses["wrong_result"] == DRAWS - counts.kept
    assert read_verdicts(config.out).num_rows == DRAWS


@pytest.mark.usefixtures("fake")
def test_a_run_that_stops_goes_on_with_the_same_pairs(config: PairsConfig) -> None:
    make(config, quiet)
    stopped = replace(config, out=config.out.with_name("stopped"))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 3:  # one on what is there, then one a shard
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(stopped, say)
    assert len(list(stopped.out.glob("pairs-*.parquet"))) == 2
    make(stopped, said.append)
    assert f"2 of {SHARDS} shards are there" in said
    assert read_pairs(stopped.out).equals(read_pairs(config.out))


@pytest.mark.usefixtures("fake")
def test_pairs_of_other_draws_are_refused(config: PairsConfig, tmp_path: Path) -> None:
    make(config, quiet)
    other = DrawsConfig(out=tmp_path / "other", matrices=4, per_matrix=2, largest=4e3, shard=2)
    draws.make(replace(other, seed=1), quiet)
    with pytest.raises(TrainingError, match="is of other draws"):
        make(replace(config, draws=other.out), quiet)
    (config.out / "pairs-00000.parquet").write_bytes(b"no parquet")
    with pytest.raises(TrainingError, match="delete it"):
        make(config, quiet)


@pytest.mark.usefixtures("fake")
def test_a_matrix_that_is_built_differently_here_gives_no_pair(
    config: PairsConfig, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / draws.META).write_text((config.draws / draws.META).read_text())
    table = pq.read_table(draws.shards(config.draws)[0])
    digests = pa.array(["0" * 32] * table.num_rows)
    at = table.schema.get_field_index("matrix_digest")
    pq.write_table(table.set_column(at, "matrix_digest", digests), strange / "draws-00000.parquet")
    counts = make(replace(config, draws=strange), quiet)
    assert counts.statuses == {pairs.OTHER: table.num_rows}


def test_a_failing_machine_is_no_wrong_program(
    config: PairsConfig, fake: type[FakeEvaluator], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Evaluation(Status.INFRASTRUCTURE_ERROR, "disk full")
    monkeypatch.setattr(fake, "evaluate", lambda *_: broken)
    with pytest.raises(TrainingError, match="disk full"):
        make(config, quiet)
    assert not list(config.out.glob("*"))


def test_what_a_worker_cannot_begin_with_is_told(config: PairsConfig, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(config.draws, bare)
    (bare / draws.META).unlink()
    for workers in (1, 2):
        with pytest.raises(TrainingError, match=r"draws\.json"):
            make(replace(config, draws=bare, workers=workers), quiet)


def test_a_worker_that_is_killed_ends_the_command_in_one_line(config: PairsConfig) -> None:
    def kill_one() -> None:
        while not (found := multiprocessing.active_children()):
            time.sleep(0.05)
        os.kill(found[0].pid or 0, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(TrainingError, match="the same command goes on"):
        make(replace(config, workers=2), quiet)
    killer.join()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_command(config: PairsConfig, sent: signal.Signals) -> None:
    code = (
        "import signal, sys\n"
        "from training.__main__ import main\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    sys.exit(main(sys.argv[1:]))\n"
    )
    told = f"pairs --draws {config.draws} --out {config.out} --device emulator --workers 2"
    command = subprocess.Popen(
        [sys.executable, "-c", code, *told.split(), "--tracking", "off"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    while len(family := descendants(command.pid)) < 5:  # two workers, and what serves them
        assert command.poll() is None
        time.sleep(0.05)
    command.send_signal(sent)
    assert command.wait(10) == {signal.SIGINT: 130, signal.SIGKILL: -9}[sent]
    deadline = time.monotonic() + 5
    while left := family & running():
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def processes() -> dict[int, int]:
    """Running processes of this host, and whose children they are."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(path.parent.name)] = int(parent)
    return found


def running() -> set[int]:
    return set(processes())


def descendants(root: int) -> set[int]:
    parents, found = processes(), {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


@pytest.mark.usefixtures("fake")
def test_what_is_finished_needs_no_device(
    config: PairsConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = make(config, quiet)
    monkeypatch.delattr(pairs, "Evaluator")
    assert make(config, quiet) == counts


def test_a_full_disk_leaves_no_half_file(
    config: PairsConfig, fake: type[FakeEvaluator], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: pa.Table, path: Path, **__: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(TrainingError, match=r"pairs-00000.*No space left"):
        make(config, quiet)
    assert not list(config.out.glob("*"))


def test_mistakes_are_found_before_anything_starts(config: PairsConfig) -> None:
    with pytest.raises(ConfigError, match="--workers 0"):
        make(replace(config, workers=0), quiet)
    with pytest.raises(TrainingError, match="python -m training draws"):
        make(replace(config, draws=config.out), quiet)


def test_no_pairs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="python -m training pairs"):
        read_pairs(tmp_path)
