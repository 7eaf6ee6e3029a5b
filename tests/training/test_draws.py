"""Drawing programs: balanced, the same again after a stop, and never for another split."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from suite.matrices.splits import TRAIN_COUNT, Split, sampled, split_of
from training import draws
from training.draws import make, rows_of, shards, specs
from training.draws_config import DrawsConfig
from training.errors import ConfigError, TrainingError


@pytest.fixture
def config(tmp_path: Path) -> DrawsConfig:
    return DrawsConfig(out=tmp_path / "draws", matrices=5, per_matrix=4, largest=4e3, shard=2)


def quiet(_: str) -> None: ...


def test_every_matrix_gets_its_programs_in_shards(config: DrawsConfig) -> None:
    drawn = make(config, quiet)
    tables = [pq.read_table(path) for path in shards(config.out)]
    assert [sorted(set(table["turn"].to_pylist())) for table in tables] == [[0, 1], [2, 3], [4]]
    rows = [row for table in tables for row in table.to_pylist()]
    assert len({row["text_digest"] for row in rows}) == len(rows) == drawn.total()
    assert {row["op"] for row in rows} == {"spmv", "spmm"}


def test_a_run_that_stops_goes_on_with_the_same_draws(config: DrawsConfig) -> None:
    make(config, quiet)
    stopped = replace(config, out=config.out.with_name("stopped"))

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    for _ in shards(config.out):
        with pytest.raises(KeyboardInterrupt):
            make(stopped, stop)  # after one shard each
    make(stopped, quiet)
    for one, other in zip(shards(config.out), shards(stopped.out), strict=True):
        assert pq.read_table(one).equals(pq.read_table(other))


def test_a_text_that_was_drawn_is_not_drawn_again(config: DrawsConfig) -> None:
    matrix = next(specs(3e3, 4e3, 0)).build()
    texts: set[str] = set()
    first, again = (rows_of(0, matrix, config, Counter(), texts) for _ in range(2))
    assert len(first) == 4 > len(again)
    assert not {row["text"] for row in first} & {row["text"] for row in again}


def test_draws_are_balanced_over_strategies(config: DrawsConfig) -> None:
    drawn: Counter[str] = Counter()
    many = replace(config, per_matrix=10)
    stream = specs(3e3, 4e3, 0)
    for turn in range(12):
        rows = rows_of(turn, next(stream).build(), many, drawn, set())
        chosen = [row["strategy"] for row in rows]
        assert len(set(chosen)) >= len(chosen) - 2  # of one matrix
    always = [name for name in drawn if " csr " in name or " coo " in name]
    assert max(drawn[name] for name in always) - min(drawn[name] for name in always) <= 6


def test_draws_are_the_same_in_every_process(config: DrawsConfig) -> None:
    make(config, quiet)
    other = config.out.with_name("other")
    options = ["--matrices", "5", "--per-matrix", "4", "--largest", "4e3", "--shard", "2"]
    subprocess.run(
        [sys.executable, "-m", "training", "draws", "--out", str(other), *options],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": "7"},
        check=True,
    )
    for one, again in zip(shards(config.out), shards(other), strict=True):
        assert pq.read_table(one).equals(pq.read_table(again))


def test_a_full_disk_leaves_no_half_file(
    config: DrawsConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object, path: Path, **__: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(TrainingError, match=r"draws-00000.*No space left"):
            make(config, quiet)
    assert [path.name for path in config.out.iterdir()] == [draws.META]
    make(config, quiet)


def test_other_draws_in_the_folder_are_refused(config: DrawsConfig) -> None:
    make(config, quiet)
    with pytest.raises(TrainingError, match="seed 0, not 1"):
        make(replace(config, seed=1), quiet)
    with pytest.raises(TrainingError, match="is finished with 5 matrices"):
        make(replace(config, matrices=9), quiet)
    shards(config.out)[0].write_bytes(b"no parquet")
    with pytest.raises(TrainingError, match="delete the folder"):
        make(config, quiet)


def test_matrices_are_of_the_training_split() -> None:
    stream = sampled(Split.TRAIN, (3e3, 3e6), 0)
    assert all(split_of(next(stream)) is Split.TRAIN for _ in range(60))
    assert TRAIN_COUNT >= 3000


def test_mistakes_are_found_before_anything_starts(config: DrawsConfig) -> None:
    with pytest.raises(ConfigError) as caught:
        replace(config, matrices=0, smallest=10.0, shard=0).check()
    assert len(caught.value.mistakes) == 3


def test_no_draws_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="python -m training draws"):
        draws.shards(tmp_path)
    with pytest.raises(TrainingError, match="python -m training draws"):
        draws.read_meta(tmp_path)
