"""Puts a campaign's results where they can be read without MLflow: a folder of small files.

``rows.parquet`` has every row with its raw samples, ``summary.json`` every headline figure with its
interval and the commands that made it, ``programs.json`` the programs by digest, ``training/`` the
curves of training, ``README.md`` the same as tables, ``report.html`` and ``report.pdf`` the whole
report. Pages are made from rows, programs and curves, so ``refresh`` makes them anew without a
store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from reports import trained
from reports.build import report
from reports.digest import digest
from reports.figures import figures, repeatability
from reports.intervals import Figure
from reports.markdown import markdown
from reports.restore import records
from reports.source import Campaign, TrainingRun
from reports.tables import by_family, by_matrix, repayment
from reports.write import write_pages
from suite.record import Row

SCHEMA = 1
_COLUMNS = (
    ("correct_rate", "right"),
    ("speedup_vs_cusparse.hot", "vs `cusparse`, hot"),
    ("speedup_vs_cusparse_best.hot", "vs `cusparse_best`, hot"),
    ("speedup_vs_cusparse_best.cold", "vs `cusparse_best`, cold"),
)


class PublishError(RuntimeError):
    """There is nothing to publish, or the campaigns do not belong together."""


def publish(
    campaigns: Sequence[Campaign],
    commands: Sequence[str],
    folder: Path,
    program: Callable[[Campaign, Row], str],
    training: Sequence[TrainingRun] = (),
) -> None:
    """Writes the published files.

    Args:
        campaigns: The campaign to publish, and repetitions of it that show how far it repeats.
        commands: The commands that made the campaigns, as a person would type them.
        folder: Where to; files there are replaced.
        program: Fetches the text of a row's program; empty where the store does not have it.
        training: Runs to publish beside it; those that are in the folder stay.

    Raises:
        PublishError: Emulated results, or campaigns on different devices.
    """
    devices = {row.device for c in campaigns for row in c.rows if row.hot_us is not None}
    if len(devices) != 1:
        raise PublishError(f"results of one GPU are published together, not of {sorted(devices)}")
    folder.mkdir(parents=True, exist_ok=True)
    plain = [row.to_dict() for campaign in campaigns for row in campaign.rows]
    pd.DataFrame(plain).to_parquet(folder / "rows.parquet", compression="zstd")
    texts = {row.program_digest: (c, row) for c in campaigns for row in c.rows}
    programs = {digest: program(*of) for digest, of in sorted(texts.items()) if digest}
    kept = {digest: text for digest, text in programs.items() if text}
    (folder / "programs.json").write_text(json.dumps(kept, indent=1) + "\n")
    trained.save(training, folder)
    _pages(campaigns, commands, folder, kept)


def refresh(folder: Path) -> None:
    """Makes summary, README and report of a published folder anew from its rows.

    Raises:
        RestoreError: The folder does not hold published results.
    """
    found = records(folder)
    commands = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["commands"]
    campaigns = [Campaign(r.campaign, "", r.rows, r.facts) for r in found]
    _pages(campaigns, commands, folder, found[0].programs)


def _pages(
    campaigns: Sequence[Campaign],
    commands: Sequence[str],
    folder: Path,
    programs: Mapping[str, str],
) -> None:
    first, *others = campaigns
    found = figures(first.rows)
    for other in others:
        found |= repeatability(first.rows, other.rows)
    summary = {
        "schema": SCHEMA,
        "gpu": next(row.device for row in first.rows if row.device),
        "dtype": str(first.rows[0].dtype),
        "matrices": len({row.matrix for row in first.rows}),
        "operations": list(dict.fromkeys(row.label for row in first.rows)),
        "authors": {row.author: row.kind.value for row in first.rows},
        "commit": first.facts.get("commit"),
        "commands": list(commands),
        "rows_sha256": digest(first.rows),
        "campaigns": [_public(campaign.facts) for campaign in campaigns],
        "figures": {n: {**asdict(f), "run": _run(n)} for n, f in sorted(found.items())},
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    (folder / "README.md").write_text(page(first, others, found, commands))
    lasting = replace(first, run="", runs={}, store="")  # those of a store that nobody else has
    document = report(
        lasting, trained.load(folder), lambda row: programs.get(row.program_digest or "", "")
    )
    write_pages(document, folder)


def _run(figure: str) -> str:
    """Name of the MLflow run that a figure is of, once the rows are restored."""
    return re.sub(r"\.(compile_rate|correct_rate|speedup_vs_|repeat_time_ratio).*", "", figure)


def _public(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a reader needs to repeat a campaign; the host's name is not one of them."""
    return {name: value for name, value in facts.items() if name not in ("host", "process")}


def page(
    first: Campaign,
    others: Sequence[Campaign],
    found: Mapping[str, Figure],
    commands: Sequence[str],
) -> str:
    """The published tables as Markdown."""
    device = next(row.device for row in first.rows if row.device)
    lines = [
        f"# Measured on one {device}",
        "",
        f"Campaign `{first.name}`: {len({r.problem_key for r in first.rows})} problems on"
        f" {len({r.matrix for r in first.rows})} matrices, {first.rows[0].dtype},"
        f" {len(first.rows):,} answers. Made by",
        "",
        *(f"    {command}" for command in commands),
        "",
        "Geometric means over the matrices with 95 % bootstrap intervals; a failure counts as a"
        " tenth of the reference, and an author is compared only where it applies. `hot`: back to"
        " back; `cold`: L2 flushed. `report.pdf` and `report.html` are the report, `rows.parquet`"
        " has every row with its samples, `summary.json` every figure.",
    ]
    for label in dict.fromkeys(row.label for row in first.rows):
        lines += ["", f"## {label}", "", *_table(label, first.rows, found)]
        for title, table in (
            ("the best baseline by family", by_family(first.rows, label)),
            ("by matrix", by_matrix(first.rows, label)),
            ("when storage is repaid", repayment(first.rows, label)),
        ):
            lines += ["", f"### {label}: {title}", "", *markdown(table)]
    if others:
        lines += ["", "## Repetition", "", *_repetition(found, others)]
    return "\n".join(lines) + "\n"


def _table(label: str, rows: Sequence[Row], found: Mapping[str, Figure]) -> list[str]:
    prefix = f"{label}."
    authors = dict.fromkeys(
        name.removeprefix(prefix).rsplit(".speedup", 1)[0]
        for name in found
        if name.startswith(prefix) and ".speedup_vs_cusparse.hot" in name
    )
    asked = len({row.problem_key for row in rows if row.label == label})
    lines = [
        "| author | applies to | " + " | ".join(title for _, title in _COLUMNS) + " |",
        "| --- | --- |" + " --- |" * len(_COLUMNS),
    ]
    for author in authors:
        cells = [_cell(found.get(f"{prefix}{author}.{metric}")) for metric, _ in _COLUMNS]
        applies = found[f"{prefix}{author}.speedup_vs_cusparse.hot"].n
        lines.append(f"| `{author}` | {applies} of {asked} | " + " | ".join(cells) + " |")
    return lines


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if figure.unit == "share":
        return f"{figure.value:.0%}"
    return f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})"


def _repetition(found: Mapping[str, Figure], others: Sequence[Campaign]) -> list[str]:
    names = ", ".join(f"`{campaign.name}`" for campaign in others)
    lines = [
        f"The same command once more ({names}). Largest change of a geometric mean of times:",
        "",
    ]
    lines += ["| operation | cache | author | change |", "| --- | --- | --- | --- |"]
    changes = {name: f.value - 1 for name, f in found.items() if ".repeat_time_ratio." in name}
    for label in dict.fromkeys(name.partition(".")[0] for name in changes):
        for cache in ("hot", "cold"):
            mine = {
                n: c for n, c in changes.items() if n.startswith(f"{label}.") and n.endswith(cache)
            }
            worst = max(mine, key=lambda name: abs(mine[name]))
            author = worst.removeprefix(f"{label}.").partition(".repeat")[0]
            lines.append(f"| {label} | {cache} | `{author}` | {mine[worst]:+.2%} |")
    return lines
