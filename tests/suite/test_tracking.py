"""What is in MLflow after a campaign, and after all that can go wrong (cases 16, 17 and 18)."""

import json
import math
import os
import signal
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from suite.__main__ import main
from suite.journal import Journal, Record, read
from suite.mlstore import EXPERIMENT, TrackingError, masked, open_store, tracking_uri
from suite.provenance import Process, this_process
from suite.tracking import Tracker, close_stale, import_record
from tests.suite.apart import Apart
from tests.suite.stores import runs

pytest_plugins = ["pytester"]


def parents(store):
    return runs(store, "tags.`suite.role` = 'campaign'")


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
    children = runs(store, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
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
    (child,) = runs(store, "tags.`suite.role` = 'author'")
    assert ["".join(Path(n).suffixes) for n in artifacts(store, child)] == [".cu.txt", ".json"]


@pytest.mark.parametrize("author", ["interrupted", "terminated"])
def test_an_interrupted_campaign_is_killed_and_keeps_its_rows(run, store, author):
    run(f"good,{author},slow", "--suite-tracking=on", apart=True)
    (parent,) = parents(store)
    assert parent.info.status == "KILLED"
    assert parent.data.metrics["unanswered"] == 4 + 2 - 1
    children = {r.info.run_name: r for r in runs(store, "tags.`suite.role` = 'author'")}
    assert {r.info.status for r in children.values()} == {"KILLED"}
    good, slow = (children[f"spmv.{name}"].data.metrics for name in ("good", "slow"))
    assert (good["asked"], good["unanswered"], good["correct_rate"]) == (2, 1, 1)
    assert slow["unanswered"] == 2
    assert not {"compile_rate", "correct_rate"} & set(slow)
    assert not runs(store, "attributes.status = 'RUNNING'")


def test_a_run_whose_process_is_dead_is_closed_at_the_next_start(run, store):
    result = run("dies", "--suite-tracking=on", apart=True)
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
    assert {r.info.run_id for r in runs(store, "attributes.status = 'RUNNING'")} == {
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
    processes = [Apart(open_store, uri) for _ in range(3)]
    assert [(p.result().errlines, p.result().ret) for p in processes] == [([], 0)] * 3
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


class Answering(BaseHTTPRequestHandler):
    """A server that knows one experiment and one run."""

    def do_GET(self):
        info = {"run_id": "1", "run_uuid": "1", "experiment_id": "1", "run_name": "campaign"}
        experiment = {"experiment_id": "1", "name": EXPERIMENT, "lifecycle_stage": "active"}
        known = {"experiment": experiment, "run": {"info": info, "data": {}}, "run_info": info}
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(known).encode())

    def do_POST(self):
        self.do_GET()

    def log_message(self, *_):
        pass


def test_nothing_is_printed_for_a_run_that_ends_on_a_server(capsys):
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client, _ = open_store(f"http://me:secret@127.0.0.1:{server.server_port}")
        client.set_terminated("1", "FINISHED")
        server.shutdown()
    assert capsys.readouterr().out == ""


def test_the_command_that_imports_a_folder_with_a_space_in_its_name_can_be_pasted(
    run, suite_dir, monkeypatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///:memory:")
    result = run("good", "--suite-tracking=on", "--suite-folder=of mine")
    (folder,) = (suite_dir.path / "of mine").iterdir()
    result.stdout.fnmatch_lines([f"WARNING: *python -m suite import '{folder}'"])


def test_the_default_store_is_a_file_where_pytest_was_started(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"


def unfinished(store):
    return runs(store, "attributes.status = 'RUNNING'")


def imports(suite_dir):
    (folder,) = (suite_dir.path / ".suite").iterdir()
    return main(["import", str(folder)])


def terminate(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
    raise AssertionError("the signal was ignored")


def interrupt(*_):
    raise KeyboardInterrupt


def fill(*_):
    raise OSError("No space left on device")


@pytest.mark.parametrize(("stop", "code"), [(interrupt, 2), (terminate, 143)])
def test_an_interrupt_while_results_are_logged_is_a_warning_and_leaves_no_run_open(
    run, store, suite_dir, monkeypatch, stop, code
):
    with monkeypatch.context() as patch:
        patch.setattr(type(store[0]), "log_artifacts", stop)
        result = run("good,slow", "--suite-tracking=on")
    assert result.ret == code
    result.stdout.fnmatch_lines(
        ["WARNING: logging interrupted; import with: python -m suite import *"]
    )
    assert {r.info.status for r in runs(store)} == {"KILLED"}
    assert imports(suite_dir) == 0
    (parent,) = parents(store)
    assert (parent.info.status, parent.data.metrics["asked"]) == ("FINISHED", 4)
    assert len(runs(store)) == 1 + 2  # nothing is left of the first attempt


def test_a_store_that_fails_while_results_are_logged_leaves_no_run_open(
    run, store, suite_dir, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(type(store[0]), "log_artifacts", fill)
        result = run("good", "--suite-tracking=on")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert {r.info.status for r in runs(store)} == {"FAILED"}
        assert imports(suite_dir) == 1
        patch.setattr(type(store[0]), "log_artifacts", interrupt)
        assert imports(suite_dir) == 130
    assert {r.info.status for r in runs(store)} == {"KILLED"}
    assert imports(suite_dir) == 0
    assert [p.info.status for p in parents(store)] == ["FINISHED"]


@pytest.mark.parametrize("method", ["create_run", "log_batch"])
def test_an_interrupt_while_the_parent_is_made_leaves_it_killed(store, monkeypatch, method):
    client = type(store[0])
    before = getattr(client, method)
    with monkeypatch.context() as patch:
        patch.setattr(client, method, lambda *a, **k: (before(*a, **k), interrupt()))
        with pytest.raises(KeyboardInterrupt):
            Tracker(os.environ["MLFLOW_TRACKING_URI"], "c", {"options": {"dtype": "float32"}})
    assert [p.info.status for p in parents(store)] == ["KILLED"]


def test_a_campaign_that_another_process_still_measures_is_not_imported(store, monkeypatch):
    uri = os.environ["MLFLOW_TRACKING_URI"]
    Tracker(uri, "c", {})
    with monkeypatch.context() as patch:
        patch.setattr("suite.tracking.this_process", lambda: Process("h", "1:x:2"))
        with pytest.raises(TrackingError, match="campaign c is still running"):
            import_record(Record("c", {}, (), (), 0, {}), uri)
    assert len(unfinished(store)) == 1


def test_a_new_store_that_cannot_be_initialised_leaves_no_file(tmp_path, monkeypatch):
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"

    def full(uri, artifacts, experiment):
        Path(uri.removeprefix("sqlite:///")).write_bytes(b"half")
        fill()

    with monkeypatch.context() as patch:
        patch.setattr("suite.mlstore._connect", full)
        with pytest.raises(TrackingError, match="No space left on device"):
            open_store(uri)
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db.lock"]


@pytest.mark.parametrize("uri", ["sqlite:///", "sqlite://", "sqlite:///:memory:", "sqlite:///?x=1"])
def test_a_store_without_a_file_is_refused(uri):
    with pytest.raises(TrackingError, match="names no file; use sqlite:///mlflow"):
        open_store(uri)


def test_an_address_that_is_none_is_one_line():
    with pytest.raises(TrackingError, match=r"tracking store http://\[bad: "):
        open_store("http://[bad")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:secret@host:1/x", "http://me:***@host:1/x"),
        ("see postgresql://me:p/w@x@host/db now", "see postgresql://me:***@host/db now"),
        ("mysql://host/db?user=me&password=secret&x=1", "mysql://host/db?user=me&password=***&x=1"),
        ("http://host:5000/a", "http://host:5000/a"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
        ("http://[bad", "http://[bad"),
    ],
)
def test_passwords_are_masked_and_nothing_else(text, shown):
    assert masked(text) == shown


def test_no_password_is_printed_when_a_campaign_is_imported(tmp_path, monkeypatch, capsys):
    Journal(tmp_path, "main").facts({"campaign": "c"})
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@host")
    monkeypatch.setattr("suite.__main__.import_record", lambda record, uri: None)
    assert main(["import", str(tmp_path)]) == 0
    assert "http://me:***@host" in capsys.readouterr().out
