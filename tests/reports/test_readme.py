"""What the README says was measured is what the published summary says."""

import json
from pathlib import Path

import pandas as pd
import pytest

from reports.__main__ import main
from reports.readme import ReadmeError, filled, table

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports/published/h200"
FIRST_SET = json.loads((PUBLISHED / "first-set/summary.json").read_text())


def test_the_readmes_table_is_the_published_one() -> None:
    readme = (ROOT / "README.md").read_text()
    assert filled(readme, ROOT) == readme, "python -m reports readme README.md"


def test_a_readme_without_room_for_results_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("nothing\n")
    assert main(["readme", str(tmp_path / "README.md")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "<!-- results:" in line


def test_a_missing_summary_is_named() -> None:
    with pytest.raises(ReadmeError, match=r"gone\.json"):
        filled("<!-- results: gone.json -->\n<!-- /results -->", ROOT)


def test_the_table_has_models_choosers_the_oracle_and_the_best_baseline_that_applies_most() -> None:
    def figure(value: float, n: int = 8) -> dict[str, float]:
        return {"value": value, "low": value / 2, "high": value * 2, "n": n}

    main_metric = "speedup_vs_cusparse_best.hot"
    speeds = {"sparserl": (3, 8), "best_of_baselines": (2, 8), "narrow": (9, 2), "wide": (1.25, 8)}
    summary = {
        "gpu": "G",
        "matrices": 8,
        "dtype": "float32",
        "operations": ["spmv"],
        "authors": {"narrow": "baseline", "wide": "baseline", "sparserl": "model"},
        "figures": {f"spmv.{a}.{main_metric}": figure(v, n) for a, (v, n) in speeds.items()},
    }
    lines = [line for line in table(summary).splitlines() if line.startswith("| SpMV")]
    assert [line.split("|")[2].strip() for line in lines] == [
        "`sparserl`",
        "best baseline of each matrix, by hindsight",
        "best single baseline, `wide`",
    ]
    assert "1.25 (0.62 to 2.50)" in lines[2]
    summary["figures"]["spmv.wide.correct_rate"] = figure(1.0)
    assert "was right" in table(summary)
    summary["figures"]["spmv.wide.correct_rate"] = figure(0.5)
    assert "was right" not in table(summary)


def test_the_sentence_on_repetition_is_true() -> None:
    repeats = [f["value"] for n, f in FIRST_SET["figures"].items() if ".repeat_time_ratio." in n]
    assert max(abs(value - 1) for value in repeats) < 0.006


def test_the_opening_claims_are_in_the_published_rows() -> None:
    rows = pd.read_parquet(PUBLISHED / "rows.parquet")
    rows = rows[(rows.label == "spmv") & (rows.kind == "baseline")]
    times = rows.pivot(index="matrix", columns="author", values="hot_us")
    best = times.min(axis=1)
    stencils = rows[rows.family == "stencil"].matrix.unique()
    assert len(stencils) >= 4
    assert all(times.loc[name].idxmin().startswith("dia-") for name in stencils)
    assert times.filter(like="dia-").loc["graph-preferential-200k"].isna().all()
    assert times.loc["fem-disc-p1", "csr_scalar"] / best["fem-disc-p1"] < 1.25
    assert round(times.loc["dense-rows-1m", "csr_scalar"] / best["dense-rows-1m"]) == 588
