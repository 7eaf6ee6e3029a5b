"""What the README says was measured is what the published summary says."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports/published/h200"
SUMMARY = json.loads((PUBLISHED / "summary.json").read_text())
FIRST_SET = json.loads((PUBLISHED / "first-set/summary.json").read_text())
OPERATIONS = {"SpMV": "spmv", "SpMM, 32 columns": "spmm32", "SpMM, 128 columns": "spmm128"}
METRICS = (
    "speedup_vs_cusparse.hot",
    "speedup_vs_cusparse_best.hot",
    "speedup_vs_cusparse_best.cold",
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_readmes_table_quotes_the_summary(operation: str) -> None:
    readme = (ROOT / "README.md").read_text()
    (line,) = re.findall(rf"^\| {operation} \|(.*)\|$", readme, re.MULTILINE)
    figures = [
        SUMMARY["figures"][f"{OPERATIONS[operation]}.best_of_baselines.{metric}"]
        for metric in METRICS
    ]
    quoted = [f"{f['value']:.2f} ({f['low']:.2f} to {f['high']:.2f})" for f in figures]
    assert [cell.strip() for cell in line.split("|")] == quoted


def test_the_sentences_beside_it_are_true() -> None:
    figures = SUMMARY["figures"]
    single = {
        name.split(".")[1]: figure["value"]
        for name, figure in figures.items()
        if re.fullmatch(r"spmv\.[^.]+\.speedup_vs_cusparse_best\.hot", name) and figure["n"] == 38
    }
    del single["cusparse"], single["cusparse_best"], single["best_of_baselines"]
    assert f"{single.pop('heuristic'):.2f}" == "1.57"
    assert max(single, key=single.__getitem__) == "coo"
    assert f"{single['coo']:.2f}" == "0.82"
    repeats = [f["value"] for n, f in FIRST_SET["figures"].items() if ".repeat_time_ratio." in n]
    assert max(abs(value - 1) for value in repeats) < 0.006
    assert all(f["value"] == 1 for n, f in figures.items() if n.endswith(".correct_rate"))


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
