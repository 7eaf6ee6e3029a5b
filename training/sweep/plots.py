"""Optuna's own plots of a study, and how much each parameter matters."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.harness.files import replacing
from training.sweep.objective import Goal

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

CONTOURS = 3  # parameters in the plot of pairs, the most important ones
SIZE = (9.0, 6.0)  # inches


def importances(study: Study) -> dict[str, float]:
    """Share of each parameter in how fast trials are, largest first; empty with too few trials."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = optuna.importance.get_param_importances(study, target=_speedup)
        except (ValueError, RuntimeError):
            return {}
    return {name: float(value) for name, value in found.items()}


def draw(study: Study, goal: Goal, folder: Path) -> list[str]:
    """Writes the plots as PNG files, and ``importance.json``.

    Args:
        study: What is shown.
        goal: What it looks for.
        folder: Gets the files; those of earlier sessions are replaced.

    Returns:
        What could not be drawn, and why.
    """
    import matplotlib
    from optuna.trial import TrialState

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return ["anything: no trial is done"]
    weights = importances(study)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "importance.json") as draft:
        draft.write_text(f"{json.dumps(weights, indent=1)}\n", encoding="utf-8")
    missing = []
    for name, plot in _plots(study, goal, list(weights)).items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plot()
                figure = plt.gcf()
                width = SIZE[0] * (2 if name in ("slice", "contour") else 1)
                figure.set_size_inches(width, width * SIZE[1] / SIZE[0] / (1 + (name == "slice")))
                figure.suptitle(_title(study, name))
                with replacing(folder / f"{name}.png") as draft:
                    figure.savefig(draft, format="png", dpi=100, bbox_inches="tight")
        except (ValueError, RuntimeError) as error:  # Optuna's, where there are too few trials
            missing.append(f"{name}: {str(error).splitlines()[0]}")
        finally:
            plt.close("all")
    return missing


def _plots(study: Study, goal: Goal, ranked: list[str]) -> Mapping[str, Callable[[], Any]]:
    from optuna.visualization import matplotlib as own

    about: Mapping[str, Any] = {"target": _speedup, "target_name": "speedup"}
    found: dict[str, Callable[[], Any]] = {
        "history": lambda: own.plot_optimization_history(study, **about),
        "importance": lambda: own.plot_param_importances(study, **about),
        "slice": lambda: own.plot_slice(study, ranked[:8] or None, **about),
        "contour": lambda: own.plot_contour(study, ranked[:CONTOURS] or None, **about),
        "parallel": lambda: own.plot_parallel_coordinate(study, ranked[:8] or None, **about),
        "pareto": lambda: own.plot_pareto_front(
            study, targets=_both, target_names=["speedup", "correct rate"]
        ),
    }
    if len(goal.names) == 1:
        found["intermediate"] = lambda: own.plot_intermediate_values(study)
    return found


def _title(study: Study, name: str) -> str:
    dry = " (dry: no model, recorded times; no result)" if study.user_attrs.get("dry") else ""
    return f"{study.study_name}: {name}{dry}"


def _speedup(trial: FrozenTrial) -> float:
    assert trial.values is not None
    return float(trial.values[0])


def _both(trial: FrozenTrial) -> tuple[float, float]:
    return _speedup(trial), float(trial.user_attrs["correct"])
