"""One matrix up close: its picture, everybody's time on it, and the fastest program's text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from scipy import sparse

from reports.document import Block, Listing, Paragraph, Plot, Section, Table
from reports.spy import build, draw
from reports.text import microseconds, number, several, titled
from reports.theme import INK, WIDTH, Theme
from reports.view import MAIN, View
from suite.author import Kind
from suite.metrics import REFERENCES, bandwidth_gbps, time_us
from suite.record import Row

BARS = 16  # the fastest programs; more do not fit


class NoSuchMatrixError(ValueError):
    """The matrix asked for has no time in this campaign."""


@dataclass(frozen=True)
class Chosen:
    """A matrix and an operation to look at, and why it was chosen."""

    label: str
    matrix: str
    why: str


def choose(view: View, matrix: str = "") -> Chosen | None:
    """What to look at: the matrix that was asked for, or the one on which the lead gains most.

    Raises:
        NoSuchMatrixError: No right answer on that matrix was timed.
    """
    if matrix:
        for label in view.labels:
            if any(row.matrix == matrix and row.hot_us for row in view.everyone(label)):
                return Chosen(label, matrix, "It was asked for by name.")
        known = ", ".join(sorted(view.matrices)[:5])
        raise NoSuchMatrixError(
            f"no time on a matrix {matrix!r} in this campaign; it has {known}, …"
        )
    for label in view.labels:
        lead = view.lead(label)
        ratios = view.by_problem(label, lead) if lead else {}
        if ratios:
            best = max(ratios, key=ratios.__getitem__)
            middle = float(np.median(list(ratios.values())))
            return Chosen(
                label,
                best,
                f"It was chosen because `{lead}` gains most on it: {number(ratios[best])} times the"
                f" speed of `{MAIN}`, where the median over {len(ratios)} matrices is"
                f" {number(middle)}.",
            )
    return None


def section(view: View, theme: Theme, chosen: Chosen, program: Callable[[Row], str]) -> Section:
    """The page on one matrix.

    Args:
        view: The campaign.
        theme: Looks of authors.
        chosen: Which matrix.
        program: Fetches the text of a row's program; empty where it is not kept.
    """
    rows = [row for row in view.everyone(chosen.label) if row.matrix == chosen.matrix]
    about = view.matrices[chosen.matrix]
    every = sorted((row for row in rows if time_us(row, "hot")), key=lambda row: row.hot_us or 0)
    timed = list({row.author: row for row in reversed(every)}.values())[::-1]  # the fastest of each
    timed.sort(key=lambda row: row.hot_us or 0)
    blocks: list[Block] = [Paragraph(_about(about, chosen, len(rows), len(every)))]
    blocks.append(Plot("closeup", _caption(chosen), _drawing(about, timed, theme)))
    blocks.append(_table(view, chosen, timed))
    models = [row for row in timed if row.kind is Kind.MODEL]
    written = models or [row for row in timed if row.kind is not Kind.LIBRARY]
    if written:
        blocks.append(_listing(written[0], program(written[0])))
    return Section(f"One matrix up close: {chosen.matrix}", blocks)


def _about(row: Row, chosen: Chosen, asked: int, timed: int) -> str:
    size = f"{row.rows or 0:,} × {row.cols or 0:,} with {row.nnz or 0:,} entries"
    recipe = f" Its recipe is `{row.matrix_source}`." if row.matrix_source else ""
    return (
        f"`{row.matrix}` ({row.family}): {size}. {chosen.why}{recipe} {titled(chosen.label)}:"
        f" {timed} of {several(asked, 'answer')} were right and timed."
    )


def _caption(chosen: Chosen) -> str:
    return (
        f"`{chosen.matrix}`, {titled(chosen.label)}. Left: where its entries are, and how long its"
        f" rows are. Right: the shortest times, hot, with their 95 % intervals; cuSPARSE's are"
        " hatched."
    )


def _drawing(about: Row, timed: list[Row], theme: Theme) -> Drawing:
    shown = timed[:BARS]
    shown += [row for row in timed[BARS:] if row.author in REFERENCES]
    height = max(2.7, 0.75 + 0.15 * len(shown))
    drawing = Drawing(figsize=(WIDTH, height), layout="constrained")
    axes = drawing.subplot_mosaic(
        [["spy", "bars"], ["lengths", "bars"]], width_ratios=(1, 2.6), height_ratios=(1.9, 1)
    )
    matrix = build(about)
    if matrix is None:
        for name in ("spy", "lengths"):
            axes[name].set_axis_off()
        axes["spy"].text(
            0.5, 0.5, "not built here:\ntoo large, or a file", ha="center", va="center"
        )
    else:
        draw(axes["spy"], matrix, 160)
        _lengths(axes["lengths"], matrix)
    bars = axes["bars"]
    for at, row in enumerate(reversed(shown)):
        known = row.author in theme.looks
        colour = theme[row.author].colour if known else "#9db4c8"
        hatch = "////" if row.kind is Kind.LIBRARY else None
        time = row.hot_us or 0.0
        bars.barh(at, time, 0.68, color="white" if hatch else colour, edgecolor=colour, hatch=hatch)
        low, high = row.hot_low_us or time, row.hot_high_us or time
        bars.plot([low, high], [at, at], color=INK, linewidth=1.0)
        bars.text(max(time, high), at, f"  {microseconds(time)}", va="center", fontsize=6.5)
    bars.set_yticks(range(len(shown)), [_who(row) for row in reversed(shown)])
    bars.set_xlabel("µs, hot")
    bars.set_xlim(0, max((row.hot_us or 0 for row in shown), default=1) * 1.14)
    bars.grid(visible=False, axis="y")
    return drawing


def _lengths(axis: object, matrix: sparse.csr_array) -> None:
    lengths = np.diff(matrix.indptr)
    top = max(int(lengths.max(initial=1)), 1)
    edges = (
        np.arange(-0.5, top + 1)
        if top <= 40
        else np.unique(np.concatenate([[0], np.geomspace(1, top + 1, 24).round()]))
    )
    axis.hist(lengths, bins=edges, color="#6b6b6b")  # type: ignore[attr-defined]
    if top > 40:
        axis.set_xscale("symlog", linthresh=1)  # type: ignore[attr-defined]
    axis.set_yscale("log")  # type: ignore[attr-defined]
    axis.set_xlabel("entries in a row")  # type: ignore[attr-defined]
    axis.set_ylabel("rows")  # type: ignore[attr-defined]


def _table(view: View, chosen: Chosen, timed: list[Row]) -> Table:
    reference = view.reference(chosen.label).times
    lines = []
    for row in timed:
        base = reference.get(row.problem_key)
        speeds = [bandwidth_gbps(row, cache) for cache in ("hot", "cold")]
        lines.append(
            (
                f"`{_who(row)}`",
                row.format or row.detail,
                f"{microseconds(row.hot_us)} [{microseconds(row.hot_low_us)},"
                f" {microseconds(row.hot_high_us)}]",
                microseconds(row.cold_us),
                number(base / row.hot_us) if base and row.hot_us else "",
                *("" if speed is None else f"{speed:,.0f}" for speed in speeds),
                "" if row.registers is None else str(row.registers),
                "" if row.spill_bytes is None else str(row.spill_bytes),
            )
        )
    return Table(
        "closeup",
        f"Everyone who was right on `{chosen.matrix}`, {titled(chosen.label)}, the fastest first.",
        (
            "author",
            "reads",
            "µs, hot",
            "cold",
            f"vs `{MAIN}`",
            "GB/s, hot",
            "cold",
            "registers",
            "spilled, B",
        ),
        tuple(lines),
        align="ll",
        runs=tuple(view.run(chosen.label, row.author) for row in timed),
        note="Of several answers of an author the fastest. Times with 95 % intervals of the"
        " median. Bandwidth is compulsory traffic over time; hot"
        " it may exceed what memory gives.",
    )


def _listing(row: Row, text: str) -> Block:
    who = f"`{_who(row)}` (program `{row.program_digest}`)"
    if not text:
        return Paragraph(f"The text of the fastest program, {who}, is not in the store.")
    generated = "generated" if row.kind is Kind.MODEL else "right"
    caption = f"The fastest {generated} program, by {who}."
    return Listing("program", caption, text.rstrip("\n") + "\n", "cuda")


def _who(row: Row) -> str:
    return (
        f"{row.author} #{row.sample}" if row.kind is Kind.MODEL and row.answers > 1 else row.author
    )
