"""Verifying draws: what is right is a pair, the rest is counted, and a stop costs one shard."""

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


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("draws")
    draws.make(DrawsConfig(out=out, matrices=2 * SHARDS, per_matrix=2, largest=4e3, shard=2), quiet)
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
    assert len(rows) == counts.kept == 16  # the space has no wrong program
    assert {row["status"] for row in rows} == {"ok"}
    assert counts.matrices == 2 * SHARDS
    assert all(row["key"] == describe(row["text"]) and len(row["binary"]) == 16 for row in rows)
    assert any("programs over" in line for line in summary(counts))
    assert figures(counts)["kept"] == counts.kept


@pytest.mark.usefixtures("fake")
def test_what_is_wrong_is_counted_and_no_pair(config: PairsConfig) -> None:
    counts = make(config, quiet)
    assert 0 < counts.kept == read_pairs(config.out).num_rows < 16
    assert counts.statuses["wrong_result"] == 16 - counts.kept
    assert read_verdicts(config.out).num_rows == 16


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


def test_mistakes_are_found_before_anything_starts(config: PairsConfig) -> None:
    with pytest.raises(ConfigError, match="--workers 0"):
        make(replace(config, workers=0), quiet)
    with pytest.raises(TrainingError, match="python -m training draws"):
        make(replace(config, draws=config.out), quiet)


def test_no_pairs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="python -m training pairs"):
        read_pairs(tmp_path)
