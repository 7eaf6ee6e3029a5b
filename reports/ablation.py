"""Variants against the full one, matrix by matrix: paired differences and how sure they are."""

from __future__ import annotations

import math

from reports.document import Table
from reports.intervals import Figure, geometric, holm, sign_flip_p
from reports.rates import right
from reports.text import interval, titled
from reports.view import MAIN, View

FULL = "sparserl"  # what the other variants take a part away from


def ablation(view: View) -> Table | None:
    """Each variant's right answers and speed beside those of the full one; None without two."""
    full = FULL if FULL in view.models else next(iter(view.models), "")
    others = [name for name in view.models if name != full]
    if not others:
        return None
    found = [
        (label, name, *paired(view, label, name, full))
        for label in view.labels
        for name in others
        if view.of(label, name) and view.of(label, full)
    ]
    adjusted = holm([p for _, _, figure, p in found if figure])
    lines: list[tuple[str, ...]] = []
    ps = iter(adjusted)
    for label, name, figure, _ in found:
        shares = [interval(right(view.of(label, who))) for who in (full, name)]
        p = _p(next(ps)) if figure else ""
        lines.append((titled(label), f"`{name}`", *shares, interval(figure), p))
    table = Table(
        "ablation",
        f"Variants against `{full}`, paired by matrix.",
        ("operation", "variant", f"`{full}` right", "variant right", "speed ratio, hot", "p"),
        tuple(lines),
        align="ll",
        runs=tuple(view.run(label, name) for label, name, _, _ in found),
        note=""
        if not adjusted
        else "Speed ratio: geometric mean over matrices of the variant's speedup over"
        f" `{MAIN}` over that of `{full}`, failures as a tenth, with its 95 % interval; below 1 the"
        " variant is slower. p: two-sided, by flipping signs of the paired differences, adjusted"
        " for the number of rows (Holm).",
    )
    return table.pruned()


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def paired(view: View, label: str, name: str, full: str) -> tuple[Figure | None, float]:
    """A variant's speed over that of the full one on the matrices of both, and p."""
    ratios = list(view.paired(label, name, full).values())
    if not ratios:
        return None, 1.0
    return geometric(ratios, range(len(ratios))), sign_flip_p([math.log(r) for r in ratios])
