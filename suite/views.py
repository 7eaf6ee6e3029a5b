"""What a person finds when the experiment opens in MLflow: named views, descriptions, a summary.

MLflow keeps a view (filter, order, columns, charts) as a tag of the experiment and offers it under
"Views"; in versions that do not know them the tags do nothing. Pure: texts of what is measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

NOTE = "mlflow.note.content"
_PREFIX = "mlflow.sharedViewState.suite-"
_MOST = 10  # operations with a view of their own; a store takes 40 views in all
_BORN = 1_700_000_000_000  # views are listed by the time of their making, the newest first
_AUTHOR = "tags.`suite.role` = 'author'"
_SPEED = "speedup_vs_cusparse_best.hot"
_FAST = (
    _SPEED,
    "speedup_vs_cusparse_best.cold",
    "problems",
    "fastest.hot",
    "correct_rate",
    "speedup_vs_cusparse.hot",
)
_RATES = ("asked", "problems", "compile_rate", "correct_rate", "not_applicable", "unanswered")
_COUNTS = ("infrastructure_errors", "disturbed", "error_ratio_max", "compile_ms_median")
_ABOUT = """**Views** (above, right) answer: who is fastest, what is right, how campaigns differ.

Each campaign is one run; below it lies one run for each operation and author, named
`<operation>.<author>`.

- A speedup is a geometric mean over matrices of the reference's time over the author's; a failure
  counts as a tenth. `hot` is back to back, `cold` with a flushed L2 cache.
- `cusparse` is the library's default, `cusparse_best` the fastest of its algorithms, formats and
  layouts on each matrix; `best_of_baselines` is an oracle over the hand-written programs.
- An author is compared on the problems where it applies: look at `problems` beside a speedup.
- A campaign's artifacts have `summary.md` and every row; an author's have its programs.
"""


def experiment_tags(labels: Sequence[str]) -> dict[str, str]:
    """Tags of the experiment: its description and its views.

    Args:
        labels: Operations that have been measured: ``spmv``, ``spmm32``.
    """
    return {NOTE: _ABOUT, **dict(_views(labels))}


def _views(labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    found = [
        _view(f"Fastest: {label}", f"{_AUTHOR} and tags.`suite.label` = '{label}'", _SPEED, _FAST)
        for label in labels[:_MOST]
    ]
    found += [
        _view("Right: rates of every author", _AUTHOR, "correct_rate", (*_RATES, *_COUNTS)),
        _view("Models: variants side by side", f"{_AUTHOR} and params.kind = 'model'", *_MODELS),
        _view("Campaigns: what they differ in", "tags.`suite.role` = 'campaign'", "", (), _FACTS),
    ]
    for rank, (name, state) in enumerate(found):
        kept = {"name": name, "createdAt": _BORN - rank, "updatedAt": _BORN - rank}
        key = name.partition(":")[0].lower()
        key = f"fastest-{name.partition(': ')[2]}" if key == "fastest" else key
        yield f"{_PREFIX}{key}", json.dumps({**kept, "state": json.dumps(state)})


_FIRST = ("attributes.`Run Name`", "runDateAndNestInfo")
_MODELS = (_SPEED, (*_RATES, _SPEED, "speedup_vs_cusparse_best_if_correct.hot"))
_FACTS = (
    "tags.`device.name`",
    "tags.`commit`",
    "tags.`started`",
    "params.`matrices`",
    "params.`ops`",
    "params.`columns`",
    "params.`dtype`",
    "metrics.`asked`",
    "metrics.`unanswered`",
)


def _view(
    name: str, where: str, order: str, metrics: Sequence[str], facts: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """A view by its name: filter, order, columns, and charts of the metrics."""
    chosen = [f"metrics.`{metric}`" for metric in metrics]
    about = [] if facts else ["params.`author`", "params.`kind`", "params.`campaign`"]
    return name, {
        "searchFilter": where,
        "orderByKey": f"metrics.`{order}`" if order else "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": [*about, *chosen, *facts],
        "columnOrder": [*_FIRST, *chosen, *facts, *about, "duration"],
        "columnWidths": {
            _FIRST[0]: 260,
            **{name: 220 if "speedup" in name else 120 for name in chosen},
        },
        "runsHiddenMode": "SHOW_ALL",
        "hideEmptyCharts": True,
        "compareRunSections": [
            {"uuid": "suite", "name": name, "display": True, "isReordered": False}
        ],
        "compareRunCharts": list(_charts(metrics)),
    }


def _charts(metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Of the first metrics: parallel coordinates, and a bar chart of each."""
    shared = {"metricSectionId": "suite", "deleted": False, "isGenerated": False}
    if len(metrics) > 1:
        yield {
            **shared,
            "type": "PARALLEL",
            "uuid": "suite-parallel",
            "selectedParams": [],
            "selectedMetrics": list(metrics[:4]),
            "showAllRuns": True,
        }
    for metric in metrics[:4]:
        yield {
            **shared,
            "type": "BAR",
            "uuid": f"suite-bar-{metric}",
            "metricKey": metric,
            "dataAccessKey": metric,
        }
