"""What was compared, on what, with what, where its numbers lie, and what is missing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from reports.digest import digest
from reports.document import Table
from reports.source import Campaign
from reports.text import bytes_of, percent, several, titled
from reports.view import View
from suite.author import Kind
from suite.evaluation import Status
from suite.metrics import REFERENCES

DIGITS = 32  # of a digest
_DETAILS = (
    ("driver", "driver", "{}"),
    ("driver_cuda", "CUDA of the driver", "{}"),
    ("compiler", "compiler", "{}"),
    ("copy_gbps", "copy bandwidth, measured", "{} GB/s"),
    ("sm_clock_max_mhz", "highest clock", "{} MHz"),
    ("power_limit_w", "power limit", "{} W"),
    ("sandbox", "sandbox of programs", "{}"),
)


def environment(campaign: Campaign) -> Table:
    """Device, compiler, host, versions, commit: what makes the numbers reproducible."""
    facts = campaign.facts
    device: Mapping[str, Any] = facts.get("device") or {}
    details: Mapping[str, Any] = {**device, **(device.get("details") or {})}
    lines = [("device", str(device.get("name", "")))]
    lines += [("architecture", _device(device))] if device.get("arch") else []
    lines += [(name, form.format(details[key])) for key, name, form in _DETAILS if details.get(key)]
    lines += [
        ("host", _host(facts)),
        ("Python", str(facts.get("python", ""))),
        ("packages", ", ".join(f"{k} {v}" for k, v in (facts.get("packages") or {}).items())),
        ("commit", f"{facts.get('commit', 'unknown')}{_dirty(facts)}"),
        ("started", str(facts.get("started", ""))),
        ("MLflow run", f"`{campaign.run}`" if campaign.run else ""),
        ("rows", f"{len(campaign.rows):,}, SHA-256 `{digest(campaign.rows)[:DIGITS]}`"),
    ]
    shown = tuple((name, value) for name, value in lines if value)
    return Table(
        "environment", "Where and with what it was measured.", ("what", "value"), shown, "ll"
    )


def repetition(campaign: Campaign, timed: bool) -> str:
    """Commands that measure it again and report on it; empty where its command is not known."""
    found = campaign.facts.get("command") or []
    typed = shlex.join(found) if isinstance(found, list) else str(found)
    if not typed:
        return ""
    models = any(row.kind is Kind.MODEL for row in campaign.rows)
    extras = ",".join(["dev"] + ["gpu"] * timed + ["train"] * models)
    lines = [
        f"git checkout {campaign.facts.get('commit', 'unknown')}",
        f"pip install -c constraints.txt -e '.[{extras}]'",
        typed,
    ]
    if re.search(r"--suite-tracking[ =]off", typed):
        lines.append("python -m suite import .suite/NAME    # the folder that pytest has named")
    lines += [  # a commit may be older than the reports
        "git checkout -",
        "pip install -c constraints.txt -e '.[reports]'",
        "python -m reports build --out report",
    ]
    return "\n".join([*lines, ""])


def matrices(view: View) -> Table:
    """The matrices by family, with their sizes."""
    lines = []
    for family in view.families:
        mine = [row for row in view.matrices.values() if row.family == family]
        built = [row for row in mine if row.nnz is not None]
        lines.append(
            (
                family,
                str(len(mine)),
                _range([row.rows or 0 for row in built]),
                _range([row.nnz or 0 for row in built]),
                _range([(row.nnz or 0) / max(row.rows or 1, 1) for row in built], ".1f"),
            )
        )
    return Table(
        "matrices",
        "The matrices, by structure.",
        ("family", "matrices", "rows", "entries", "entries a row"),
        tuple(lines),
    )


def runs(view: View) -> Table:
    """Where in MLflow each author's numbers lie."""
    place = {label: at for at, label in enumerate(view.labels)}
    found = sorted(
        view.campaign.runs.items(), key=lambda item: (place.get(item[0][0], len(place)), item[0])
    )
    return Table(
        "runs",
        f"MLflow runs of campaign `{view.campaign.name}` in `{view.campaign.store}`.",
        ("operation", "author", "run"),
        tuple((titled(label), f"`{author}`", f"`{run}`") for (label, author), run in found),
        align="lll",
    )


def gaps(view: View) -> list[str]:
    """Sentences on what this campaign does not have and a reader may miss."""
    campaign, rows = view.campaign, view.rows
    if not rows:
        return [
            f"Nothing of campaign `{campaign.name}` has been logged. If its journal is still there,"
            f" `python -m suite import .suite/{campaign.name}` logs it."
        ]
    found = [*_cut_off(view), *_kind_of_device(view)]
    lost = sum(r.status is Status.INFRASTRUCTURE_ERROR and not r.unanswered for r in rows)
    if lost:
        found.append(
            f"{several(lost, 'answer')} ended in an infrastructure error: a fault of the machine,"
            " which counts as a failure in every rate and is no verdict on a program."
        )
    disturbed = sum(row.disturbed != "" for row in rows)
    if disturbed:
        found.append(
            f"{several(disturbed, 'time')} were taken on a disturbed GPU (throttled, or not alone),"
            " also when repeated."
        )
    loose = sum(row.hot_settled is False or row.cold_settled is False for row in rows)
    if loose:
        timed = sum(row.hot_us is not None for row in rows)
        found.append(
            f"Of {several(timed, 'timed answer')} {loose:,} have a hot or cold interval wider than"
            " 1 % when their time was up."
        )
    if str(campaign.facts.get("dirty")).lower() == "true":
        found.append("The sources had changes that are in no commit.")
    return found


def absent(view: View, trained: bool) -> list[str]:
    """Sentences on parts of a full report that have nothing to show here."""
    found = []
    if not view.models:
        found.append(
            "No trained variant took part: there is no pass@k, no ablation, and no page on a"
            " generated program."
        )
    elif len(view.models) == 1:
        found.append(f"Only one variant took part, `{view.models[0]}`: there is no ablation.")
    if not trained:
        found.append("There is no training run beside it: no learning curves and no costs.")
    if view.timed and not _copies(view):
        found.append(
            "The bandwidth of a copy was not recorded: the roofline has no roof, and no bandwidth"
            " is given as a share."
        )
    if str((view.campaign.facts.get("options") or {}).get("sanitize", "off")) in ("off", "False"):
        found.append("Programs were not run under `compute-sanitizer`.")
    return found


def _cut_off(view: View) -> list[str]:
    campaign, rows = view.campaign, view.rows
    found = []
    if campaign.status == "RUNNING":
        found.append("The campaign is still running: this is what had been logged.")
    if not campaign.complete:
        found.append(
            "Logging was cut off, and rows may be missing;"
            f" `python -m suite import .suite/{campaign.name}` completes it."
        )
    missing = sum(row.unanswered for row in rows)
    if missing:
        whole = {row.matrix for row in rows} - {row.matrix for row in rows if row.unanswered}
        share = percent(1 - missing / len(rows))
        found.append(
            f"**Partial campaign:** it was stopped with {len(rows) - missing:,} of {len(rows):,}"
            f" answers measured ({share}); {len(whole)} of {len(view.matrices)} matrices are"
            " complete. What was not measured takes part in no figure, and nothing is said about"
            " the other matrices."
        )
    return found


def _kind_of_device(view: View) -> list[str]:
    if view.timed:
        lacking = [
            f"`{author}` on {titled(label)}"
            for label in view.labels
            for author in REFERENCES
            if not view.reference(label, author).times
        ]
        if not lacking:
            return []
        return [f"There are no times of {', '.join(lacking)}: no speedup over it is given."]
    if any(row.emulated_us is not None for row in view.rows):
        return [
            "**Emulated campaign:** programs were compiled by the real compiler and run in the"
            " emulator. That says what is right and nothing about speed, so there is no time,"
            " speedup or bandwidth in this report."
        ]
    return ["Nothing was timed: there is no speedup or bandwidth in this report."]


def _copies(view: View) -> bool:
    return any(row.copy_gbps for row in view.rows)


def compared(view: View) -> str:
    """Who took part, in a sentence."""
    kinds = {
        Kind.MODEL: ("trained variant", "trained variants"),
        Kind.CHOOSER: ("chooser", "choosers"),
        Kind.FILE: ("program from a file", "programs from files"),
        Kind.BASELINE: ("hand-written baseline", "hand-written baselines"),
        Kind.LIBRARY: ("library reference", "library references"),
    }
    authors = {row.author: row.kind for row in view.rows}
    parts = []
    for kind, (one, many) in kinds.items():
        names = [name for name, of in authors.items() if of is kind]
        if names:
            listed = f" ({', '.join(f'`{n}`' for n in names)})" if len(names) <= 6 else ""
            parts.append(several(len(names), one, many) + listed)
    return ", ".join(parts)


def _host(facts: Mapping[str, Any]) -> str:
    processors = f"{facts['cpus']} processors" if facts.get("cpus") else ""
    return ", ".join(filter(None, (facts.get("platform"), processors)))


def _device(device: Mapping[str, Any]) -> str:
    parts = [str(device["arch"])]
    if device.get("multiprocessors"):
        parts.append(f"{device['multiprocessors']} multiprocessors")
    for key, name in (("memory_bytes", "memory"), ("l2_bytes", "L2")):
        if float(device.get(key) or 0):
            parts.append(f"{bytes_of(float(device[key]))} {name}")
    return ", ".join(parts)


def _dirty(facts: Mapping[str, Any]) -> str:
    return " with changes" if str(facts.get("dirty")).lower() == "true" else ""


def _range(values: list[int] | list[float], form: str = ",") -> str:
    if not values:
        return "not built"
    low, high = min(values), max(values)
    shown = [f"{value:{form}}" for value in (low, high)]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} – {shown[1]}"
