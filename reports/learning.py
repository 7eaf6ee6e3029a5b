"""Learning curves and the cost of training, where the store has training runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.document import Plot, Table
from reports.source import TrainingRun
from reports.theme import panels

POINTS = 400  # of a curve; more cannot be seen
_LOSS = ("loss", "validation_loss")
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#332288", "#882255")


def curves(runs: Sequence[TrainingRun]) -> Plot | None:
    """Losses of every run, and the parts of the reward of each that was rewarded."""
    lossy = [run for run in runs if any(_drawable(run, key) for key in _LOSS)]
    rewarded = [run for run in runs if _parts(run)][:2]
    count = bool(lossy) + len(rewarded)
    if not count:
        return None
    drawing, axes = panels(count, 2.6)
    rest = list(axes)
    if lossy:
        axis = rest.pop(0)
        for run, colour in zip(lossy, _COLOURS, strict=False):
            for key, dash in zip(_LOSS, _DASHES, strict=False):
                if _drawable(run, key):
                    name = f"{run.name}, {key.replace('_', ' ')}"
                    x, y = _smooth(run.curves[key])
                    axis.plot(x, y, color=colour, linestyle=dash, label=name)
        axis.set_title("loss")
        axis.set_xlabel("step")
        axis.legend(fontsize=6.5)
    for run, axis in zip(rewarded, rest, strict=True):
        for at, key in enumerate(_parts(run)):
            look = {"color": _COLOURS[at % 8], "linestyle": _DASHES[at % 4]}
            x, y = _smooth(run.curves[key])
            axis.plot(x, y, label=key, **look)
        axis.set_title(f"reward: {run.name}")
        axis.set_xlabel("step")
        axis.legend(fontsize=6.5)
    return Plot(
        "learning",
        f"Learning curves of the newest training runs. Curves of more than {POINTS} points are"
        " means over equal stretches.",
        drawing,
    )


def costs(runs: Sequence[TrainingRun]) -> Table | None:
    """What each training run took; None where nothing was trained."""
    if not runs:
        return None
    lines = []
    for run in runs:
        steps = max((points[-1][0] for points in run.curves.values() if points), default=0)
        tokens = run.curves.get("tokens") or [(0, 0.0)]
        last = {key: points[-1][1] for key, points in run.curves.items() if points}
        shown = last.get("validation_loss", last.get("loss"))
        lines.append(
            (
                run.name,
                run.status.lower(),
                "" if run.seconds is None else f"{run.seconds / 3600:.2f}",
                f"{steps:,}",
                f"{tokens[-1][1] / 1e6:,.1f}" if "tokens" in run.curves else "",
                "" if shown is None else f"{shown:.3f}",
                f"`{run.run}`",
            )
        )
    return Table(
        "training",
        "What training took.",
        ("run", "status", "hours", "steps", "M tokens", "loss at the end", "MLflow run"),
        tuple(lines),
        align="ll",
        note="Hours from the first start to the last end, pauses between sessions included. The"
        " loss is that on held-out text where there is one.",
    )


def _parts(run: TrainingRun) -> list[str]:
    return [key for key in sorted(run.curves) if "reward" in key and _drawable(run, key)]


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
