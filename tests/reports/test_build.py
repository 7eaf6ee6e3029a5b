"""The command reads MLflow and writes every form, also from a store with thousands of runs."""

import json
import time
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.restore import records
from reports.source import Store
from reports.view import View
from suite.author import Kind
from suite.evaluation import Status
from suite.mlstore import open_store, tracking_uri
from tests.reports.campaigns import campaign, on_gpu, with_models

PUBLISHED = Path(__file__).parents[2] / "reports/published/h200"
LIMIT = 60.0  # seconds that a build may take


@pytest.mark.slow
def test_a_report_is_written_whole_from_a_store_with_two_thousand_runs(keep) -> None:
    fill(2000)
    keep("mine", with_models(), {"written": "//! op spmv\n__global__ void f() {}\n"})
    start = time.process_time()
    assert main(["build", "--campaign", "mine", "--out", "out"]) == 0
    assert time.process_time() - start < LIMIT
    out = Path("out")
    assert "__global__" in (out / "report.html").read_text()
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF")
    tables = {item["name"]: item for item in json.loads((out / "tables.json").read_text())}
    assert {path.stem for path in (out / "tables").glob("*.tex")} == set(tables)
    assert (out / "figures" / "profile.pdf").exists()
    page, text = (out / "report.html").read_text(), (out / "tables" / "headline.tex").read_text()
    for row in tables["headline"]["rows"]:
        for cell in row[2:]:
            assert cell in page
            assert cell in text
    assert "secret-host" not in page


def fill(count: int) -> None:
    """Runs of other campaigns, put straight into the store's tables."""
    from mlflow.store.tracking.dbmodels.models import SqlRun, SqlTag

    client, experiment = open_store(tracking_uri(Path.cwd()))
    store = client._tracking_client.store
    with store.ManagedSessionMaker(read_only=False) as session:
        for at in range(count):
            run = f"{at:032x}"
            role = "campaign" if at % 50 == 0 else "author"
            tags = {"suite.campaign": f"old{at // 50}", "suite.role": role}
            session.add(
                SqlRun(
                    run_uuid=run,
                    name=f"run{at}",
                    experiment_id=int(experiment),
                    status="FINISHED",
                    start_time=at,
                    end_time=at + 1,
                    lifecycle_stage="active",
                    artifact_uri="",
                    user_id="somebody",
                )
            )
            session.add_all(SqlTag(run_uuid=run, key=k, value=v) for k, v in tags.items())


def test_the_newest_campaign_and_any_run_of_one_can_be_asked_for(keep) -> None:
    keep("first", on_gpu())
    time.sleep(0.01)
    keep("second", on_gpu()[:8])
    store = Store(tracking_uri(Path.cwd()))
    assert store.newest().name == "second"
    child = store.campaign("first").runs["spmv", "fast"]
    assert store.of_run(child).name == "first"
    assert len(store.of_run(child).rows) == 32


def test_a_campaign_whose_logging_was_cut_off_is_read_from_its_authors(keep) -> None:
    parent = keep("first", on_gpu())
    store = Store(tracking_uri(Path.cwd()))
    for file in ("rows.json", "campaign.json"):
        next(Path(_artifacts(store, parent)).glob(file)).unlink()
    store._client.delete_tag(parent, "suite.complete")
    found = store.campaign("first")
    assert not found.complete
    assert len(found.rows) == 32
    assert found.facts["commit"] == "abc"


def _artifacts(store: Store, run: str) -> str:
    return str(store._client.get_run(run).info.artifact_uri).removeprefix("file://")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--campaign", "nothing"], "no campaign 'nothing'"),
        (["--campaign", "it's"], "no campaign"),
        (["--run", "0" * 32], "no run"),
        (["--experiment", "elsewhere"], "no experiment 'elsewhere'"),
        (["--campaign", "first", "--matrix", "m99"], "no time on a matrix 'm99'"),
    ],
)
def test_what_is_not_there_is_one_line(
    keep, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    keep("first", on_gpu()[:4])
    assert main(["build", *arguments, "--out", "out"]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert line in said
    assert not Path("out").exists()


def test_a_missing_store_is_not_made(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["build", "--out", "out"]) == 1
    assert "no results here" in capsys.readouterr().err
    assert not Path("mlflow.db").exists()


def test_published_results_come_back_as_they_were_published() -> None:
    summary = json.loads((PUBLISHED / "summary.json").read_text())
    found = records(PUBLISHED)
    assert [record.campaign for record in found] == [c["campaign"] for c in summary["campaigns"]]
    first = found[0]
    view = View(campaign(list(first.rows)))
    figures = summary["figures"]
    for author in ("best_of_baselines", "coo", "dia-batch2-keep0"):
        found = view.speedup("spmv", author)
        published = figures[f"spmv.{author}.speedup_vs_cusparse_best.hot"]
        assert found is not None
        for name in ("value", "low", "high", "n"):
            assert getattr(found, name) == pytest.approx(published[name])
    assert {row.status for row in first.rows} == {Status.OK, Status.NOT_APPLICABLE}
    baselines = {row.program_digest for row in first.rows if row.kind is Kind.BASELINE}
    assert baselines & set(first.programs)  # of those that are in the sources as they were
    assert all(isinstance(row.registers, int | None) for row in first.rows)
