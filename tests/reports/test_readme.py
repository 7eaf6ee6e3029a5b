"""What the README says was measured is what the published summary says."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUMMARY = json.loads((ROOT / "reports/published/h200/summary.json").read_text())
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
    assert max(single, key=single.__getitem__) == "coo"
    assert f"{single['coo']:.2f}" == "0.82"
    repeats = [f["value"] for name, f in figures.items() if ".repeat_time_ratio." in name]
    assert max(abs(value - 1) for value in repeats) < 0.006
    assert all(f["value"] == 1 for n, f in figures.items() if n.endswith(".correct_rate"))
