"""Making pairs: balanced, right, the same again after a stop, and never from another split."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from suite.evaluation import Evaluation, Status
from suite.matrices.splits import TRAIN_COUNT, Split, sampled, split_of
from suite.problem import Problem
from suite.program import KernelProgram
from training import pairs
from training.errors import ConfigError, TrainingError
from training.pairs import make, read_pairs, tasks
from training.pairs_command import figures, summary
from training.pairs_config import PairsConfig
from training.teacher.describe import describe


@pytest.fixture
def config(tmp_path: Path) -> PairsConfig:
    return PairsConfig(
        out=tmp_path / "pairs",
        programs=12,
        per_matrix=4,
        largest=4e3,
        shard=2,
        device="emulator",
        tracking="off",
    )


class FakeEvaluator:
    """Judges nothing: every third program is wrong, so that drops are seen."""

    def __init__(self, *_: object, **__: object) -> None:
        self.judged = 0

    def __enter__(self) -> "FakeEvaluator":
        return self

    def __exit__(self, *_: object) -> None: ...

    def compile_ahead(self, *_: object) -> None: ...

    def release(self, _: object) -> None: ...

    def binary(self, program: KernelProgram, _: object) -> bytes:
        return program.text.encode()

    def evaluate(self, problem: Problem, program: KernelProgram) -> Evaluation:
        self.judged += 1
        if int(program.digest, 16) % 3 == 0:
            return Evaluation(Status.WRONG_RESULT, "wrong")
        return Evaluation(Status.OK)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeEvaluator]:
    monkeypatch.setattr(pairs, "Evaluator", FakeEvaluator)
    return FakeEvaluator


def test_pairs_are_verified_and_stored(config: PairsConfig) -> None:
    counts = make(config, lambda _: None)
    rows = read_pairs(config.out).to_pylist()
    assert len(rows) == counts.kept >= 12
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["op"] for row in rows} == {"spmv", "spmm"}
    assert len({row["text"] for row in rows}) == len(rows)
    assert all(row["key"] == describe(row["text"]) and len(row["binary"]) == 16 for row in rows)
    assert counts.statuses["ok"] == sum(counts.statuses.values())  # the space has no wrong program
    assert any("programs over" in line for line in summary(counts))
    assert figures(counts)["kept"] == counts.kept


@pytest.mark.usefixtures("fake")
def test_what_is_wrong_is_dropped_and_counted(config: PairsConfig) -> None:
    counts = make(replace(config, programs=40), lambda _: None)
    assert counts.kept >= 40
    assert counts.statuses["ok"] == counts.kept == read_pairs(config.out).num_rows
    assert counts.statuses["wrong_result"] > 0


@pytest.mark.usefixtures("fake")
def test_a_run_that_stops_goes_on_with_the_same_pairs(
    config: PairsConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replace(config, programs=60, out=config.out / "whole")
    make(whole, lambda _: None)
    stopped = replace(config, programs=60, out=config.out / "stopped")
    written = pairs.write

    def write(config: PairsConfig, *rest: object) -> None:
        written(config, *rest)  # type: ignore[arg-type]
        if len(list(config.out.glob("pairs-*.parquet"))) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(pairs, "write", write)
    with pytest.raises(KeyboardInterrupt):
        make(stopped, lambda _: None)
    monkeypatch.setattr(pairs, "write", written)
    make(stopped, lambda _: None)
    assert read_pairs(stopped.out).equals(read_pairs(whole.out))
    said = [json.loads((c.out / "counts.json").read_text())["counts"] for c in (whole, stopped)]
    assert said[0] == said[1]


@pytest.mark.usefixtures("fake")
def test_other_pairs_in_the_folder_are_refused(config: PairsConfig) -> None:
    make(config, lambda _: None)
    with pytest.raises(TrainingError, match="seed 0, not 1"):
        make(replace(config, seed=1), lambda _: None)
    (config.out / "pairs-00000.parquet").write_bytes(b"no parquet")
    with pytest.raises(TrainingError, match="delete the folder"):
        make(replace(config, programs=99), lambda _: None)


def test_a_failing_machine_is_no_wrong_program(
    config: PairsConfig, fake: type[FakeEvaluator], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Evaluation(Status.INFRASTRUCTURE_ERROR, "disk full")
    monkeypatch.setattr(fake, "evaluate", lambda *_: broken)
    with pytest.raises(TrainingError, match="disk full"):
        make(config, lambda _: None)
    assert not (config.out / "counts.json").exists()


def test_draws_are_balanced_over_strategies(config: PairsConfig) -> None:
    drawn: Counter[str] = Counter()
    stream = tasks(replace(config, per_matrix=10), 0, drawn)
    for _ in range(12):
        task = next(stream)
        chosen = [program.strategy for _, program in task.asked]
        assert len(set(chosen)) >= len(chosen) - 2  # of one matrix
    always = [name for name in drawn if " csr " in name or " coo " in name]
    assert max(drawn[name] for name in always) - min(drawn[name] for name in always) <= 6


def test_matrices_are_of_the_training_split() -> None:
    stream = sampled(Split.TRAIN, (3e3, 3e6), 0)
    assert all(split_of(next(stream)) is Split.TRAIN for _ in range(60))
    assert TRAIN_COUNT >= 3000


def test_mistakes_are_found_before_anything_starts(config: PairsConfig) -> None:
    with pytest.raises(ConfigError) as caught:
        replace(config, programs=0, smallest=10.0, shard=0).check()
    assert len(caught.value.mistakes) == 3


def test_no_pairs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="python -m training pairs"):
        read_pairs(tmp_path)
