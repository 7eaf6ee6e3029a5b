"""What is in MLflow after a campaign, and after all that can go wrong (cases 16, 17 and 18)."""

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite.__main__ import main
from suite.journal import read
from suite.mlstore import EXPERIMENT, TrackingError, open_store, tracking_uri
from suite.provenance import Process, this_process
from suite.tracking import Tracker, close_stale

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
OPEN = "import sys; from suite.mlstore import open_store; open_store(sys.argv[1])"


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory):
    """A store that was initialised once, to be copied."""
    folder = tmp_path_factory.mktemp("store")
    open_store(f"sqlite:///{folder / 'mlflow.db'}")
    return folder / "mlflow.db"


@pytest.fixture
def store(suite_dir, empty_store, monkeypatch):
    """An initialised store where the runs of the test go; returns its client."""
    shutil.copy(empty_store, suite_dir.path / "mlflow.db")
    uri = f"sqlite:///{suite_dir.path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return open_store(uri)


def all_runs(store, where=""):
    client, experiment = store
    return client.search_runs([experiment], where, order_by=["attributes.start_time ASC"])


def parents(store):
    return all_runs(store, "tags.`suite.role` = 'campaign'")


def artifacts(store, run, path=None):
    names = []
    for item in store[0].list_artifacts(run.info.run_id, path):
        names += artifacts(store, run, item.path) if item.is_dir else [item.path]
    return sorted(names)


def test_a_campaign_is_one_parent_with_a_child_for_each_author_and_operation(run, store, on_gpu):
    run(
        "cusparse,good,unfit,wrong",
        "--suite-ops=spmv,spmm",
        "--suite-columns=8",
        "--suite-tracking=on",
    )
    (parent,) = parents(store)
    children = all_runs(store, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    authors = ("cusparse", "good", "unfit", "wrong", "best_of_baselines")
    assert {child.info.run_name for child in children} == {
        f"{label}.{author}" for label in ("spmv", "spmm8") for author in authors
    }
    assert {child.info.status for child in children} == {"FINISHED"}
    assert parent.info.status == "FAILED"  # a baseline was wrong, so the run failed
    good = next(child for child in children if child.info.run_name == "spmv.good").data
    assert good.metrics["compile_rate"] == good.metrics["correct_rate"] == 1.0
    assert good.metrics["speedup_vs_cusparse.hot"] == pytest.approx(2.0)
    assert good.metrics["fastest.hot"] == 2
    assert good.params["author"] == "good"
    wrong = next(child for child in children if child.info.run_name == "spmv.wrong").data
    assert wrong.metrics["speedup_vs_cusparse.hot"] == pytest.approx(0.1)
    assert "speedup_vs_cusparse_if_correct.hot" not in wrong.metrics
    assert all(math.isfinite(v) and v < 1e300 for c in children for v in c.data.metrics.values())


def test_rows_programs_and_digests_are_artifacts_and_facts_are_tags(run, store, suite_dir):
    run("good", "--suite-tracking=on")
    (parent,) = parents(store)
    assert {"campaign.json", "matrices.json", "rows.csv", "rows.json"} <= set(
        artifacts(store, parent)
    )
    tags = parent.data.tags
    assert tags["device.name"] == "emulator"
    assert (tags["driver"] if "driver" in tags else tags["device.driver"]) == "580.1"
    assert {"commit", "command", "packages"} <= set(tags)
    assert parent.info.status == "FINISHED"
    client, _ = store
    folder = Path(client.download_artifacts(parent.info.run_id, "", str(suite_dir.mkdir("down"))))
    assert [row["author"] for row in json.loads((folder / "rows.json").read_text())] == [
        "good",
        "good",
    ]
    assert set(json.loads((folder / "matrices.json").read_text())) == {"one", "two"}
    (child,) = all_runs(store, "tags.`suite.role` = 'author'")
    assert [Path(name).suffix for name in artifacts(store, child)] == [".cu", ".json"]


def test_two_workers_make_one_campaign(run, store):
    run("good,slow", "-n2", "--suite-tracking=on", subprocess=True)
    (parent,) = parents(store)
    assert parent.data.metrics["asked"] == 4
    assert len(all_runs(store)) == 3 + 1  # good, slow and the best of both


@pytest.mark.parametrize("author", ["interrupted", "terminated"])
def test_an_interrupted_campaign_is_killed_and_keeps_its_rows(run, store, author):
    run(f"good,{author},slow", "--suite-tracking=on", subprocess=True)
    (parent,) = parents(store)
    assert parent.info.status == "KILLED"
    assert parent.data.metrics["unanswered"] == 4 + 2 - 1
    assert not all_runs(store, "attributes.status = 'RUNNING'")


def test_a_run_whose_process_is_dead_is_closed_at_the_next_start(run, store):
    result = run("dies", "--suite-tracking=on", subprocess=True)
    assert result.ret == 9
    assert [r.info.status for r in parents(store)] == ["RUNNING"]
    run("good", "--suite-tracking=on")
    assert [r.info.status for r in parents(store)] == ["KILLED", "FINISHED"]


def test_a_run_whose_process_lives_is_left_alone(store):
    client, experiment = store
    uri = os.environ["MLFLOW_TRACKING_URI"]
    alive = Tracker(uri, "alive", {})
    elsewhere = client.create_run(
        experiment, tags={"suite.host": "another", "suite.process": "1:x:2"}
    )
    assert close_stale(client, experiment) == 0
    assert {r.info.run_id for r in all_runs(store, "attributes.status = 'RUNNING'")} == {
        alive.run_id,
        elsewhere.info.run_id,
    }


def test_a_process_is_told_from_a_later_one_with_the_same_id():
    now = this_process()
    assert now.alive is True
    pid, boot, started = now.identity.split(":")
    assert Process(now.host, f"{pid}:{boot}:{int(started) - 1}").alive is False
    assert Process("another host", now.identity).alive is None


def test_several_processes_open_one_new_file(tmp_path):
    uri = f"sqlite:///{tmp_path / 'new.db'}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, uri], env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [(p.communicate()[1], p.returncode) for p in processes] == [(b"", 0)] * 3
    assert open_store(uri)[0].get_experiment_by_name(EXPERIMENT) is not None


def test_an_unreachable_server_is_found_out_quickly_and_the_campaign_can_be_imported(
    run, store, suite_dir, monkeypatch, capsys
):
    uri = os.environ["MLFLOW_TRACKING_URI"]
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        result = run("good", "--suite-tracking=on")
        assert time.monotonic() - started < 10
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["WARNING: tracking store http://127*python -m suite import *"])
    (folder,) = (suite_dir.path / ".suite").iterdir()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert main(["import", str(folder)]) == 0
    (parent,) = parents(store)
    assert (parent.info.status, parent.data.metrics["asked"]) == ("FINISHED", 2)
    assert main(["import", str(folder)]) == 0
    assert "nothing done" in capsys.readouterr().out
    assert len(parents(store)) == 1
    assert read(folder).unanswered == 0


def test_importing_what_is_no_campaign_is_one_line_and_an_exit_code(tmp_path, capsys):
    assert main(["import", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["not a database at all, only text" * 10])
def test_a_file_that_is_no_database_is_one_line(tmp_path, text):
    (tmp_path / "mlflow.db").write_text(text)
    with pytest.raises(TrackingError, match="file is not a database"):
        open_store(f"sqlite:///{tmp_path / 'mlflow.db'}")


def test_a_password_in_the_address_is_not_shown():
    with pytest.raises(TrackingError) as caught:
        open_store("http://me:secret@127.0.0.1:9")
    assert "secret" not in str(caught.value)


def test_the_default_store_is_a_file_where_pytest_was_started(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
