"""Training runs are published as small files, and come back from them."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from reports import trained
from reports.source import Store, TrainingRun
from suite.mlstore import tracking_uri
from tests.reports.conftest import enter

RUN = TrainingRun(
    name="rl grpo sparserl",
    run="id",
    status="FINISHED",
    seconds=90.0,
    params={"steps": "2"},
    curves={"reward": [(1, 0.5), (2, 0.75)], "status.ok": [(1, 0.25), (2, 1.0)]},
)


def test_a_published_run_reads_as_it_was_but_for_its_id(tmp_path: Path) -> None:
    trained.save([RUN], tmp_path)
    (found,) = trained.load(tmp_path)
    assert (found.name, found.run, found.seconds, found.params) == (
        RUN.name,
        "",
        RUN.seconds,
        RUN.params,
    )
    assert found.curves == RUN.curves


def test_a_folder_without_any_has_none(tmp_path: Path) -> None:
    assert trained.load(tmp_path) == []


def test_a_restored_run_is_one_of_the_store_and_is_restored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path
) -> None:
    enter(tmp_path, empty_store, monkeypatch)
    trained.save([RUN], tmp_path)
    uri = tracking_uri(tmp_path)
    (key,) = trained.restore(tmp_path, uri).values()
    assert key
    (found,) = Store(uri).training()
    assert (found.name, found.run, found.status, found.params) == (
        RUN.name,
        key,
        RUN.status,
        RUN.params,
    )
    assert found.seconds == pytest.approx(90.0)
    assert found.curves == RUN.curves
    assert trained.restore(tmp_path, uri) == {RUN.name: None}


def test_of_two_runs_with_one_name_the_newest_is_published(tmp_path: Path) -> None:
    trained.save([RUN, replace(RUN, seconds=1.0)], tmp_path)
    (found,) = trained.load(tmp_path)
    assert found.seconds == RUN.seconds


def test_what_is_no_number_is_written_as_strict_json(tmp_path: Path) -> None:
    trained.save([replace(RUN, curves={"loss": [(1, math.nan), (2, 3.0)]})], tmp_path)
    (path,) = (tmp_path / trained.FOLDER).iterdir()
    assert json.loads(path.read_text(), parse_constant=pytest.fail)
    (found,) = trained.load(tmp_path)
    assert math.isnan(found.curves["loss"][0][1])
    assert found.curves["loss"][1] == (2, 3.0)


def test_runs_are_read_with_the_last_stage_first_as_a_store_has_them(tmp_path: Path) -> None:
    stages = ("pretrain", "sft", "rl")
    trained.save([replace(RUN, name=s, params={"stage": s}) for s in stages], tmp_path)
    assert [run.name for run in trained.load(tmp_path)] == ["rl", "sft", "pretrain"]


def test_a_restore_that_was_cut_off_is_done_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path
) -> None:
    from mlflow import MlflowClient

    enter(tmp_path, empty_store, monkeypatch)
    trained.save([RUN], tmp_path)
    uri = tracking_uri(tmp_path)
    with monkeypatch.context() as cut:

        def fails(*_: object) -> None:
            raise KeyboardInterrupt

        cut.setattr(MlflowClient, "set_terminated", fails)
        with pytest.raises(KeyboardInterrupt):
            trained.restore(tmp_path, uri)
    assert trained.restore(tmp_path, uri)[RUN.name]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3),
        ("status", "DONE"),
        ("seconds", "soon"),
        ("seconds", -1),
        ("params", {"steps": 2}),
        ("params", []),
        ("curves", {"loss": [[1e400, 1.0]]}),
    ],
)
def test_a_field_that_is_wrong_is_told(field: str, value: object, tmp_path: Path) -> None:
    trained.save([RUN], tmp_path)
    (path,) = (tmp_path / trained.FOLDER).iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(trained.TrainedError, match="no published training run"):
        trained.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "x", "curves": {"loss": 3}}'])
def test_a_file_that_is_no_run_is_named(text: str, tmp_path: Path) -> None:
    trained.save([RUN], tmp_path)
    (path,) = (tmp_path / trained.FOLDER).iterdir()
    path.write_text(text)
    with pytest.raises(trained.TrainedError, match=f"{path.name}: no published training run"):
        trained.load(tmp_path)


def test_the_published_runs_can_be_read() -> None:
    found = trained.load(Path(__file__).parents[2] / "reports" / "published" / "h200")
    assert {run.params["stage"] for run in found} >= {"pretrain", "sft", "rl"}
    for run in found:
        assert run.seconds, run.name
        assert run.params["made_by"].startswith("python -m training "), run.name
