from pathlib import Path
from shutil import copyfile

import pytest
from mlflow.tracking import MlflowClient

from training.curve import Point
from training.tracking import EXPERIMENT, RunLog


def log(folder: Path, on: bool = True) -> RunLog:
    return RunLog(folder, "pretrain tiny", {"steps": 3}, {"stage": "pretrain"}, on)


def points(count: int) -> list[Point]:
    return [Point(step, {"loss": float(step)}) for step in range(count)]


@pytest.fixture
def store(uri: str, empty_store: Path, tmp_path: Path) -> str:
    """Where runs are logged, with a store there."""
    copyfile(empty_store, tmp_path / "mlflow.db")
    return uri


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return uri


def test_sessions_share_one_run_and_no_point_is_logged_twice(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = log(folder)
    first.log(points(2))
    first.log(points(3), "KILLED")
    assert first.failure == ""
    second = log(folder)
    second.log(points(5), "FINISHED")
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params == {"steps": "3"}
    assert run.data.tags["stage"] == "pretrain"
    assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == [0, 1, 2, 3, 4]
    assert run.info.run_id in second.where


def test_what_could_not_be_logged_is_logged_later(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    blocked = tmp_path / "file"
    blocked.write_text("")
    with monkeypatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{blocked}/mlflow.db")
        broken = log(folder)
        broken.log(points(2))
        broken.log(points(3), "KILLED")
    assert broken.failure.startswith("tracking store")
    assert broken.where == ""
    later = log(folder)
    later.log(points(3), "FINISHED")
    client = MlflowClient(store)
    (run,) = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    assert len(client.get_metric_history(run.info.run_id, "loss")) == 3


def test_off_touches_nothing(uri: str, tmp_path: Path) -> None:
    quiet = log(tmp_path / "run", on=False)
    quiet.log(points(2), "FINISHED")
    assert (quiet.where, quiet.failure) == ("", "")
    assert not (tmp_path / "mlflow.db").exists()
