"""Published figures come from MLflow, carry their intervals, and can be computed by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest
from pypdf import PdfReader

from reports.__main__ import main
from reports.digest import digest
from reports.figures import figures, repeatability
from reports.restore import records
from reports.setting import DIGITS
from reports.source import Store
from suite.author import Kind
from suite.evaluation import Status
from suite.mlstore import tracking_uri
from suite.record import Row
from tests.reports.conftest import enter, log
from tests.suite.rows import failed, right

TWO = [
    right("cusparse", 20.0, "a", Kind.LIBRARY),
    right("cusparse", 40.0, "b", Kind.LIBRARY),
    right("fast", 10.0, "a"),
    right("fast", 5.0, "b"),
    right("odd", 20.0, "a"),
    failed(Status.WRONG_RESULT, "b", author="odd"),
]


def test_a_speedup_is_the_geometric_mean_over_the_matrices() -> None:
    found = figures(TWO)["spmv.fast.speedup_vs_cusparse.hot"]
    assert found.value == pytest.approx(math.sqrt(2 * 8))
    assert (found.unit, found.n) == ("x", 2)
    assert found.low == pytest.approx(2)
    assert found.high == pytest.approx(8)


def test_a_failure_counts_as_a_tenth_and_against_the_rate() -> None:
    found = figures(TWO)
    assert found["spmv.odd.speedup_vs_cusparse.hot"].value == pytest.approx(math.sqrt(1 * 0.1))
    assert found["spmv.odd.correct_rate"].value == 0.5
    assert found["spmv.odd.compile_rate"].value == 1.0


def test_what_does_not_apply_to_a_baseline_is_left_out_of_its_figures_only() -> None:
    rows = [
        *TWO,
        failed(Status.NOT_APPLICABLE, "c", author="fast"),
        right("cusparse", 9.0, "c", Kind.LIBRARY),
    ]
    assert figures(rows)["spmv.fast.correct_rate"].n == 2
    assert figures(rows)["spmv.cusparse.correct_rate"].n == 3


def test_the_best_of_the_baselines_takes_the_fastest_on_each_matrix() -> None:
    rows = [*TWO, right("other", 4.0, "a")]
    best = figures(rows)["spmv.best_of_baselines.speedup_vs_cusparse.hot"]
    assert best.value == pytest.approx(math.sqrt(5 * 8))


def test_an_interval_narrows_with_the_number_of_matrices() -> None:
    def width(n: int) -> float:
        rows = [right("cusparse", 10.0, f"m{i}", Kind.LIBRARY) for i in range(n)]
        rows += [right("fast", 10.0 / (1 + i % 3), f"m{i}") for i in range(n)]
        figure = figures(rows)["spmv.fast.speedup_vs_cusparse.hot"]
        assert figure.low < figure.value < figure.high
        return figure.high / figure.low

    assert width(60) < width(12)


def test_a_repetition_is_compared_problem_by_problem() -> None:
    again = [replace(r, hot_us=r.hot_us * 1.02) if r.hot_us else r for r in TWO[:4]]
    found = repeatability(TWO, again)
    assert found["spmv.fast.repeat_time_ratio.hot"].value == pytest.approx(1.02)
    assert found["spmv.fast.repeat_time_ratio.cold"].value == pytest.approx(1.0)
    assert "spmv.odd.repeat_time_ratio.hot" not in found


def publish(*arguments: str) -> int:
    return main(
        ["publish", *arguments, "--out", "out", "--made-by", "pytest suite --benchmark-only"]
    )


def on_gpu(rows: list[Row]) -> list[Row]:
    return [replace(row, device="NVIDIA H200") for row in rows]


WRITTEN = [replace(row, program_digest=f"of-{row.author}") for row in on_gpu(TWO)]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """What ``publish`` makes of a campaign and its repetition; its store is not to be had."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, empty_store, patch)
        for name in ("first", "again"):
            log(name, WRITTEN, {"of-fast": "//! op spmv"})
        assert publish("first", "again") == 0
    (folder / "mlflow.db").unlink()
    return folder / "out"


def test_rows_figures_and_tables_are_written_from_mlflow(published: Path) -> None:
    summary = json.loads((published / "summary.json").read_text())
    assert summary["gpu"] == "NVIDIA H200"
    assert summary["commands"] == ["pytest suite --benchmark-only"]
    assert "secret-host" not in json.dumps(summary)
    figure = summary["figures"]["spmv.fast.speedup_vs_cusparse.hot"]
    assert figure["value"] == pytest.approx(4.0)
    assert figure["run"]
    assert "spmv.fast.repeat_time_ratio.hot" in summary["figures"]
    assert len(pd.read_parquet(published / "rows.parquet")) == 2 * len(TWO)
    page = (published / "README.md").read_text()
    assert "| `fast` | 2 of 2 | 100% | 4.00 (2.00 to 8.00) |" in page
    assert "+0.00%" in page


def test_published_programs_and_rows_can_be_put_back(
    published: Path, tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, empty_store, monkeypatch)
    assert main(["restore", str(published)]) == 0
    store = Store(tracking_uri(tmp_path))
    again = store.campaign("first")
    assert sorted(again.rows, key=str) == sorted(
        (replace(row, campaign="first") for row in WRITTEN), key=str
    )
    texts = {row.author: store.program(again, row) for row in again.rows}
    assert (texts["fast"], texts["odd"]) == ("//! op spmv", "")


def test_a_folder_without_results_cannot_be_restored(
    keep, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", "."]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no published results" in line


def test_a_campaign_that_is_not_there_is_one_line(keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep("first", on_gpu(TWO))
    assert publish("second") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no campaign 'second'" in line


def test_emulated_results_are_not_published(keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep("slow", [replace(TWO[0], hot_us=None, cold_us=None, emulated_us=5.0, device="emulator")])
    assert publish("slow") == 1
    assert "results of one GPU" in capsys.readouterr().err
    assert not Path("out").exists()


def test_the_published_report_is_of_the_published_rows() -> None:
    folder = Path(__file__).parents[2] / "reports/published/h200"
    rows = records(folder)[0].rows
    known = digest(rows)
    summary = json.loads((folder / "summary.json").read_text())
    pages = PdfReader(folder / "report.pdf").pages
    assert summary["rows_sha256"] == known
    assert any(known[:DIGITS] in page.extract_text() for page in pages)
    assert known[:DIGITS] in (folder / "report.html").read_text()
    fresh = {name: (f.value, f.low, f.high) for name, f in figures(rows).items()}
    assert fresh == {n: (f["value"], f["low"], f["high"]) for n, f in summary["figures"].items()}


def test_a_published_report_fits_into_a_repository() -> None:
    folder = Path(__file__).parents[2] / "reports/published/h200"
    sizes = [(folder / name).stat().st_size for name in ("report.html", "report.pdf")]
    assert sum(sizes) < 3_000_000


def test_pages_are_made_anew_from_the_rows_alone(published: Path, tmp_path: Path) -> None:
    names = ("summary.json", "README.md", "report.html", "report.pdf")
    mine = copytree(published, tmp_path / "out")
    for name in names[1:]:
        (mine / name).unlink()
    assert main(["refresh", str(mine)]) == 0
    assert [(mine / n).read_bytes() for n in names] == [(published / n).read_bytes() for n in names]
