"""Drawings of speed: sorted speedups, performance profiles, fast_p curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from reports.document import Plot
from reports.text import titled
from reports.theme import INK, Theme, legend_below, panels
from reports.view import MAIN, View
from suite.metrics import BEST, time_us

LOW, HIGH = 0.1, 20.0  # drawn speedups; one far outlier would flatten everything else
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def sorted_speedups(view: View, theme: Theme) -> Plot:
    """Each matrix's speedups over the reference, in the order of the lead's or the oracle's."""
    drawing, axes = panels(len(view.labels), 2.4, sharey=True)
    for axis, label in zip(axes, view.labels, strict=True):
        of = {name: view.by_problem(label, name) for name in view.foremost(label) if name != MAIN}
        first = BEST if of.get(BEST) else view.lead(label)
        order = sorted(of.get(first, {}), key=lambda matrix: of[first][matrix])
        at = {matrix: rank for rank, matrix in enumerate(order, 1)}
        for name, ratios in of.items():
            known = sorted((at[m], ratio) for m, ratio in ratios.items() if m in at)
            if not known:
                continue
            x, exact = zip(*known, strict=True)
            y = np.clip(exact, LOW, HIGH)
            look = theme[name]
            if name == first:
                axis.plot(x, y, color=look.colour, linewidth=1.3, label=name, zorder=3)
            else:
                axis.plot(x, y, label=name, alpha=0.9, zorder=2, **look.dots)
        axis.axhline(1, color=INK, linewidth=0.7)
        _log(axis.yaxis)
        axis.set_title(titled(label))
        axis.set_xlabel("matrices, sorted")
        axis.set_xlim(0.5, max(len(order), 1) + 0.5)
        axis.grid(visible=False, axis="x")
    axes[0].set_ylabel(f"speedup over {MAIN}, hot")
    legend_below(drawing, axes)
    return Plot(
        "sorted-speedups",
        f"Speedup over `{MAIN}` on each matrix, hot, in the order of the line. Above 1 is faster;"
        f" what is below {LOW:g} or above {HIGH:g} lies on the edge."
        f" `{BEST}` is the oracle over the baselines; over several answers of a model the"
        " geometric mean is shown, with a failure as 0.1.",
        drawing,
    )


def profile(view: View, theme: Theme) -> Plot:
    """Performance profile (Dolan and Moré, 2002)."""
    drawing, axes = panels(len(view.labels), 2.35, sharey=True)
    for axis, label in zip(axes, view.labels, strict=True):
        best: dict[str, float] = {}
        of: dict[str, dict[str, float]] = {}
        for name in view.contenders(label):
            mine = of[name] = _times(view, label, name)
            for matrix, time in mine.items():
                best[matrix] = min(time, best.get(matrix, math.inf))
        for name, mine in of.items():
            factors = np.sort([time / best[matrix] for matrix, time in mine.items()])
            share = np.arange(1, factors.size + 1) / max(len(best), 1)
            x = np.concatenate([[1.0], factors, [1e3]])
            y = np.concatenate([[np.sum(factors <= 1) / max(len(best), 1)], share, share[-1:]])
            if factors.size:
                axis.step(x, y, where="post", label=name, **theme[name].line)
        axis.set_xlim(1, 10)
        _log(axis.xaxis)
        axis.set_ylim(0, 1.02)
        axis.set_title(titled(label))
        axis.set_xlabel("τ, times the shortest time")
    axes[0].set_ylabel("share of matrices")
    legend_below(drawing, axes)
    return Plot(
        "profile",
        "Performance profile (Dolan and Moré): the share of matrices on which an author takes at"
        " most τ times the shortest time of all who are shown, hot. At τ = 1 it is how often it is"
        " the fastest; where it does not apply or is wrong its time is infinite. Of several answers"
        " of a model the median time counts.",
        drawing,
    )


def fast_p(view: View, theme: Theme) -> Plot:
    """Share of answers that are right and at least p times as fast as the reference, over p."""
    drawing, axes = panels(len(view.labels), 2.35, sharey=True)
    for axis, label in zip(axes, view.labels, strict=True):
        for name in view.contenders(label):
            ratios = np.sort([ratio for _, ratio in view.compared(label, name)])
            if not ratios.size or name == MAIN:
                continue
            x = np.concatenate([[0.05], ratios, [100.0]])
            y = 1 - np.arange(ratios.size + 2) / ratios.size
            axis.step(x, np.clip([1.0, *y[:-2], 0.0], 0, 1), label=name, **theme[name].line)
        axis.axvline(1, color=INK, linewidth=0.7)
        axis.set_xlim(0.2, 8)
        _log(axis.xaxis)
        axis.set_ylim(0, 1.02)
        axis.set_title(titled(label))
        axis.set_xlabel(f"p, times the speed of {MAIN}")
    axes[0].set_ylabel("share of answers")
    legend_below(drawing, axes)
    return Plot(
        "fast-p",
        f"`fast_p`: share of answers that are right and at least p times as fast as `{MAIN}`, hot,"
        " where an author applies. Right of the line it is faster.",
        drawing,
    )


def _times(view: View, label: str, author: str) -> dict[str, float]:
    """An author's time on each matrix; of several answers the median, where most are right."""
    found: dict[str, list[float]] = {}
    for row in view.of(label, author):
        if not row.unanswered:
            found.setdefault(row.matrix, []).append(time_us(row, "hot") or math.inf)
    medians = {matrix: float(np.median(times)) for matrix, times in found.items()}
    return {matrix: time for matrix, time in medians.items() if math.isfinite(time)}


def _log(axis: Any) -> None:
    """A logarithmic axis with round numbers that a person reads at once."""
    owner = axis.axes
    (owner.set_xscale if axis is owner.xaxis else owner.set_yscale)("log")
    axis.set_major_locator(FixedLocator(_TICKS))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())
