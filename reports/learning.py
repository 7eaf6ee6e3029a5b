"""Learning curves and the cost of training, where the store has training runs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import LogLocator, MaxNLocator

from reports.document import Plot, Table
from reports.source import TrainingRun
from reports.theme import WIDTH, panels

POINTS = 400  # of a curve; more cannot be seen
REWARDED = 2  # runs that have a figure of their own
MOST = 6  # curves of a panel
BESIDE = 3  # panels beside each other
_SMOOTH = f"Curves of more than {POINTS} points are means over equal stretches."
_LOSS = ("loss", "validation_loss")
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#332288", "#882255")


@dataclass(frozen=True)
class _Panel:
    """Curves that are drawn together.

    Attributes:
        title: Above it.
        unit: Of its values.
        keys: Pattern of the curves' names.
        prefix: What all names begin with, and a legend leaves out.
        zeros: Whether a curve that is zero throughout is drawn.
    """

    title: str
    unit: str
    keys: str
    prefix: str = ""
    zeros: bool = True

    def short(self, key: str) -> str:
        """A curve's name in the legend."""
        return key.removeprefix(self.prefix).replace("_", " ")


_PANELS = (
    _Panel("reward and its parts", "mean", r"reward(\.\w+)?", "reward."),
    _Panel("rates", "share of answers", r"(validation\.)?(compile|correct)_rate"),
    _Panel("outcomes", "share of answers", r"status\.\w+", "status.", zeros=False),
    _Panel("speed", "times that of cusparse", r"(validation\.)?speedup(_best)?"),
    _Panel("strategies", "share of right programs", r"strategy\.all\..+", "strategy.all.", False),
)


def losses(runs: Sequence[TrainingRun]) -> Plot | None:
    """Losses of the newest runs that learn to predict text, a panel each."""
    lossy = [run for run in runs if _supervised(run) and any(_drawable(run, k) for k in _LOSS)]
    if not lossy:
        return None
    lossy = lossy[:BESIDE][::-1]  # in the order of training
    drawing, axes = panels(len(lossy), 2.2)
    for run, axis in zip(lossy, axes, strict=True):
        for key, dash, colour in zip(_LOSS, _DASHES, _COLOURS, strict=False):
            if _drawable(run, key):
                name = key.replace("_", " ")
                axis.plot(*_smooth(run.curves[key]), color=colour, linestyle=dash, label=name)
        axis.set_title(run.name)
        axis.set_xlabel("step")
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.legend(fontsize=6.5)
    axes[0].set_ylabel("loss, nats a token")
    return Plot("learning", f"Losses of the newest training runs. {_SMOOTH}", drawing)


def _supervised(run: TrainingRun) -> bool:
    """Whether its loss says how well it predicts; that of a rewarded run does not."""
    return "reward" not in run.curves


def rewarded(runs: Sequence[TrainingRun]) -> list[Plot]:
    """For each of the newest rewarded runs its reward, outcomes, speed and strategies."""
    found = [run for run in runs if _chosen(run, _PANELS[0])][:REWARDED]
    return [_of_run(run, at) for at, run in enumerate(found)]


def _of_run(run: TrainingRun, at: int) -> Plot:
    shown = [(panel, keys) for panel in _PANELS if (keys := _chosen(run, panel))]
    columns = min(len(shown), 2)
    rows = -(-len(shown) // columns)
    drawing = Drawing(figsize=(WIDTH, 1.95 * rows), layout="constrained")
    axes = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for axis, (panel, keys) in zip(axes, shown, strict=False):
        for rank, key in enumerate(keys):
            look = {"color": _COLOURS[rank % 8], "linestyle": _DASHES[rank % 4]}
            axis.plot(*_smooth(run.curves[key]), label=panel.short(key), **look)
        axis.set_title(panel.title)
        axis.set_xlabel("step")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylabel(panel.unit)
        axis.legend(fontsize=6.2, ncols=2 if len(keys) > 4 else 1)
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    return Plot(
        f"reward-{at}",
        f"Learning of `{run.name}`, whose samples were measured and rewarded. A strategy is the"
        f" format and what threads do together, as a share of the right programs; of outcomes and"
        f" strategies the {MOST} most frequent are drawn. Speed is a geometric mean over `cusparse`"
        f" with a failure as a tenth; validation is on matrices that are not trained on. {_SMOOTH}",
        drawing,
    )


def _chosen(run: TrainingRun, panel: _Panel) -> list[str]:
    """The curves of a panel: of many the highest on the whole, by name."""
    keys = [k for k in run.curves if re.fullmatch(panel.keys, k) and _drawable(run, k)]
    highest = sorted(keys, key=lambda key: (-_mean(run.curves[key]), key))[:MOST]
    return sorted(key for key in highest if panel.zeros or _mean(run.curves[key]) > 0)


def _mean(points: Sequence[tuple[int, float]]) -> float:
    known = [value for _, value in points if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else 0.0


def costs(runs: Sequence[TrainingRun]) -> Table | None:
    """What each training run took; None where nothing was trained."""
    if not runs:
        return None
    lines = []
    for run in runs:
        steps = max((points[-1][0] for points in run.curves.values() if points), default=0)
        tokens = run.curves.get("tokens") or [(0, 0.0)]
        last = {key: points[-1][1] for key, points in run.curves.items() if points}
        shown = last.get("validation_loss", last.get("loss")) if _supervised(run) else None
        lines.append(
            (
                run.name,
                run.status.lower(),
                "" if run.seconds is None else f"{run.seconds / 60:.1f}",
                f"{steps:,}",
                f"{tokens[-1][1] / 1e6:,.1f}" if "tokens" in run.curves else "",
                "" if shown is None else f"{shown:.3f}",
                f"{last['reward']:.3f}" if "reward" in last else "",
                f"`{run.run}`" if run.run else "",
            )
        )
    return Table(
        "training",
        "What training took.",
        (
            "run",
            "status",
            "minutes",
            "steps",
            "M tokens",
            "loss at the end",
            "reward at the end",
            "MLflow run",
        ),
        tuple(lines),
        align="ll",
        note="Minutes from the first start to the last end, pauses between sessions included. The"
        " loss is that on held-out text where there is one.",
    ).pruned()


def _drawable(run: TrainingRun, key: str) -> bool:
    return len(run.curves.get(key, ())) > 1


def _smooth(points: Sequence[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    steps, values = (np.array(side, dtype=float) for side in zip(*points, strict=True))
    known = np.isfinite(values)
    steps, values = steps[known], values[known]
    if steps.size <= POINTS:
        return steps, values
    pieces = np.array_split(np.arange(steps.size), POINTS)
    means = [(steps[piece].mean(), values[piece].mean()) for piece in pieces]
    x, y = zip(*means, strict=True)
    return np.array(x), np.array(y)
