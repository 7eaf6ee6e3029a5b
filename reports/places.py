"""Drawings of where and why: bandwidth under its roof, and which program wins on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from reports.document import Plot
from reports.text import titled
from reports.theme import FAINT, INK, SHADES, WIDTH
from reports.view import View
from suite.author import Kind
from suite.metrics import Cache, bandwidth_gbps, time_us
from suite.record import Row

_WRITERS = tuple(kind for kind in Kind if kind is not Kind.LIBRARY)
_OPERATIONS = (("#0072b2", "o"), ("#d55e00", "^"), ("#009e73", "s"), ("#cc79a7", "D"))


def roofline(view: View) -> Plot | None:
    """Achieved speed under the roof of memory, and achieved bandwidth by family."""
    points = {label: _fastest(view, label, "cold") for label in view.labels}
    if not any(row.flops and row.bytes_moved for rows in points.values() for row in rows):
        return None
    copies = [row.copy_gbps for row in view.rows if row.copy_gbps]
    roof = float(np.median(copies)) if copies else None
    drawing = Drawing(figsize=(WIDTH, 3.1), layout="constrained")
    left, right = drawing.subplots(1, 2, width_ratios=(1, 1.15))
    _under_roof(left, points, roof)
    _by_family(right, view.families, points, roof)
    drawing.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    share = "" if roof else " The bandwidth of a copy was not recorded, so there is no roof."
    return Plot(
        "roofline",
        "The fastest right program on each matrix with a flushed L2. Left: its speed over its"
        " arithmetic intensity, under what the GPU copies. Right: its bandwidth by family; the"
        " bar is the family's median. Bytes are the compulsory traffic of the program's own format:"
        " each array of it and each dense operand once. What a program can skip (padding, rows of"
        f" an operand that no entry meets) is counted, so a point can lie beyond the roof.{share}",
        drawing,
    )


def _under_roof(axis: Any, points: Mapping[str, Sequence[Row]], roof: float | None) -> None:
    every: list[float] = []
    for (label, rows), (colour, marker) in zip(points.items(), _OPERATIONS, strict=False):
        counted = [row for row in rows if row.flops and row.bytes_moved and row.cold_us]
        x = [(row.flops or 0) / (row.bytes_moved or 1) for row in counted]
        y = [(row.flops or 0) / (row.cold_us or 1) / 1e3 for row in counted]
        every += x
        axis.plot(
            x, y, marker, color=colour, markersize=3.4, markeredgewidth=0, label=titled(label)
        )
    if roof and every:
        edge = np.array([min(every) * 0.7, max(every) * 1.5])
        axis.plot(edge, edge * roof, color=INK, linewidth=0.9, label=f"copy, {roof:,.0f} GB/s")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("arithmetic intensity, flop/byte")
    axis.set_ylabel("speed, Gflop/s")


def _by_family(
    axis: Any, families: Sequence[str], points: Mapping[str, Sequence[Row]], roof: float | None
) -> None:
    rank = {family: len(families) - at for at, family in enumerate(families)}
    count = max(len(points), 1)
    for at, (rows, (colour, marker)) in enumerate(zip(points.values(), _OPERATIONS, strict=False)):
        shift = (count - 1) / 2 * 0.24 - at * 0.24
        of: dict[str, list[float]] = {}
        for row in rows:
            speed = bandwidth_gbps(row, "cold")
            if speed:
                of.setdefault(row.family, []).append(speed)
        for family, speeds in of.items():
            y = rank[family] + shift
            look = {"color": colour, "markersize": 2.6, "markeredgewidth": 0}
            axis.plot(speeds, [y] * len(speeds), marker, alpha=0.75, **look)
            axis.plot(
                [float(np.median(speeds))] * 2, [y - 0.13, y + 0.13], color=colour, linewidth=1.3
            )
    if roof:
        axis.axvline(roof, color=INK, linewidth=0.9)
    axis.set_yticks(list(rank.values()), list(rank))
    axis.set_ylim(0.4, len(families) + 0.6)
    axis.set_xlim(left=0)
    axis.set_xlabel("bandwidth, GB/s")


def fastest_by_family(view: View) -> Plot | None:
    """Which kind of baseline is the fastest on which family, for each operation."""
    only = (Kind.BASELINE,)
    of = {label: _shares(_fastest(view, label, "hot", only), _stem) for label in view.labels}
    of = {label: shares for label, shares in of.items() if shares}
    if not of:
        return None
    drawing = _heat(
        [(titled(label), shares, _frequent(shares)) for label, shares in of.items()],
        view.families,
        "program",
    )
    return Plot(
        "fastest",
        "Which hand-written program is the fastest of them on which family, hot: per cent of the"
        " family's matrices, darker where more. Variants of one program are counted as one.",
        drawing,
    )


def choices(view: View, label: str, author: str) -> Plot | None:
    """What an author chose by family, beside what was really the fastest there."""
    known = {
        row.program_digest: _stem(row)
        for row in view.everyone(label)
        if row.kind is Kind.BASELINE and row.program_digest
    }

    def strategy(row: Row) -> str:
        return known.get(row.program_digest) or storage(row)

    def storage(row: Row) -> str:
        return row.format.partition(" ")[0] or "none"

    mine = [row for row in view.of(label, author) if not row.unanswered]
    if not mine:
        return None
    chooser = view.kinds[author] is Kind.CHOOSER
    chosen = _shares(mine, strategy if chooser else storage)
    fastest = _fastest(view, label, "hot", (Kind.BASELINE,) if chooser else _WRITERS)
    best = _shares(fastest, strategy if chooser else storage)
    if not best:
        return None
    columns = _frequent({**{("", c): n for (_, c), n in best.items()}, **chosen} | best)
    what = "baseline" if chooser else "storage format"
    drawing = _heat(
        [(f"chosen by {author}", chosen, columns), ("really the fastest", best, columns)],
        view.families,
        what,
    )
    none = " `none` is an answer without one, for example one that could not be read."
    unread = none if "none" in columns else ""
    return Plot(
        f"choice-{label}-{author}",
        f"{titled(label)}: the {what} that `{author}` chose by family, in per cent of its answers,"
        " beside that of the fastest right program, in per cent of the matrices. Where only one"
        f" side is dark, the choice was another than the fastest.{unread}",
        drawing,
    )


_Shares = Mapping[tuple[str, str], float]


def _heat(
    parts: Sequence[tuple[str, _Shares, Sequence[str]]], families: Sequence[str], what: str
) -> Drawing:
    widths = [max(len(columns), 2) for _, _, columns in parts]
    height = 0.95 + 0.12 * len(families)
    drawing = Drawing(figsize=(WIDTH, height), layout="constrained")
    axes = drawing.subplots(1, len(parts), sharey=True, width_ratios=widths, squeeze=False)[0]
    for axis, (title, shares, columns) in zip(axes, parts, strict=True):
        grid = np.array([[shares.get((f, c), np.nan) for c in columns] for f in families])
        axis.imshow(grid, vmin=0, vmax=1, cmap=f"{SHADES}_r", aspect="auto")
        axis.set_xticks(range(len(columns)), columns, rotation=90)
        axis.set_yticks(range(len(families)), families)
        axis.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
        axis.set_yticks(np.arange(len(families) + 1) - 0.5, minor=True)
        axis.grid(visible=False)
        axis.grid(which="minor", color=FAINT, linewidth=0.4)
        axis.tick_params(which="both", length=0)
        axis.set_title(title)
        for (y, x), share in np.ndenumerate(grid):
            if not np.isnan(share) and share > 0:
                ink = "white" if share > 0.5 else "black"
                axis.text(
                    x, y, f"{share * 100:.0f}", ha="center", va="center", color=ink, fontsize=6
                )
        for spine in axis.spines.values():
            spine.set_visible(False)
    axes[0].set_ylabel("family")
    drawing.supxlabel(what, fontsize=8)
    return drawing


def _shares(rows: Sequence[Row], name: Any) -> dict[tuple[str, str], float]:
    """Of each family's rows the share that has each name, by family and name."""
    counts = Counter((row.family, name(row)) for row in rows)
    totals = Counter(row.family for row in rows)
    return {key: count / totals[key[0]] for key, count in counts.items()}


def _frequent(shares: _Shares) -> list[str]:
    total: Counter[str] = Counter()
    for (_, name), share in shares.items():
        total[name] += share  # type: ignore[assignment]  # a Counter takes any number
    return [name for name, _ in total.most_common()]


def _fastest(view: View, label: str, cache: Cache, kinds: Sequence[Kind] = _WRITERS) -> list[Row]:
    """The fastest right row on each matrix, of anyone who wrote a program."""
    best: dict[str, Row] = {}
    for row in view.everyone(label):
        time = time_us(row, cache)
        if row.kind not in kinds or not time:
            continue
        held = best.get(row.matrix)
        if held is None or time < (time_us(held, cache) or 0):
            best[row.matrix] = row
    return list(best.values())


def _stem(row: Row) -> str:
    """The program's file, without the variant."""
    return row.author.partition("-")[0]
