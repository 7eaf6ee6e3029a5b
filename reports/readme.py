"""The table of results inside a README, made from a published summary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.text import titled
from suite.metrics import BEST

_BLOCK = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- /results -->)", re.DOTALL)
_METRICS = (
    ("vs `cusparse`, hot", "speedup_vs_cusparse.hot"),
    ("vs `cusparse_best`, hot", "speedup_vs_cusparse_best.hot"),
    ("vs `cusparse_best`, cold", "speedup_vs_cusparse_best.cold"),
)
_MAIN = _METRICS[1][1]


class ReadmeError(RuntimeError):
    """The README has no room for results, or the summary is missing; the message is one line."""


def filled(text: str, folder: Path) -> str:
    """A README with its results brought up to date.

    Args:
        text: Of the README, with ``<!-- results: SUMMARY -->`` and ``<!-- /results -->`` in it.
        folder: Where the README lies, from which the path of a summary counts.

    Raises:
        ReadmeError: No such marks, or the summary cannot be read.
    """
    if not _BLOCK.search(text):
        raise ReadmeError("no <!-- results: SUMMARY --> … <!-- /results --> to fill")

    def put(found: re.Match[str]) -> str:
        path = folder / found[2]
        try:
            summary = json.loads(path.read_text(encoding="utf-8"))
            return f"{found[1]}{table(summary)}{found[3]}"
        except (OSError, ValueError, KeyError) as error:
            raise ReadmeError(f"{path}: no summary of published results: {error}") from error

    return _BLOCK.sub(put, text)


def table(summary: Mapping[str, Any]) -> str:
    """The headline as Markdown: models, choosers, the oracle and the best single baseline."""
    figures, kinds = summary["figures"], summary["authors"]
    lines = [
        f"On one {summary['gpu']}, {summary['matrices']} matrices, {summary['dtype']}: geometric"
        " means of speedups with 95 % intervals.",
        "",
        f"| | author | {' | '.join(title for title, _ in _METRICS)} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for label in summary["operations"]:
        for author, who in _shown(label, figures, kinds):
            cells = [quoted(figures.get(f"{label}.{author}.{metric}")) for _, metric in _METRICS]
            lines.append(f"| {titled(label)} | {who} | {' | '.join(cells)} |")
    wrong = [n for n, f in figures.items() if n.endswith(".correct_rate") and f["value"] < 1]
    baselines = [n for n in wrong if kinds.get(n.split(".")[1]) in ("baseline", "library")]
    right = "Every answer of the baselines and the library that applied was right."
    return "\n".join([*lines, "", *([] if baselines else [right, ""])])


def quoted(figure: Mapping[str, Any] | None) -> str:
    """A figure with its interval."""
    if figure is None:
        return ""
    return f"{figure['value']:.2f} ({figure['low']:.2f} to {figure['high']:.2f})"


def _shown(
    label: str, figures: Mapping[str, Any], kinds: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    known = {a: figures[n] for a in kinds if (n := f"{label}.{a}.{_MAIN}") in figures}
    for kind, what in (("model", ""), ("chooser", ", picks one without measuring")):
        yield from ((a, f"`{a}`{what}") for a in known if kinds[a] == kind)
    if f"{label}.{BEST}.{_MAIN}" in figures:
        yield BEST, "best baseline of each matrix, by hindsight"
    single = {a: f for a, f in known.items() if kinds[a] == "baseline"}
    if single:
        most = max(f["n"] for f in single.values())
        best = max((a for a in single if single[a]["n"] == most), key=lambda a: single[a]["value"])
        yield best, f"best single baseline, `{best}`"
