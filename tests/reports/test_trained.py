"""Training runs are published as small files, and come back from them."""

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
