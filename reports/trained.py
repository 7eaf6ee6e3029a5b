"""Published training runs: a file of name, settings and curves for each, beside published rows.

``publish`` writes them from MLflow, ``restore`` puts them back, and a report can be made of them
without a store.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from reports.source import TRAINING, TrainingRun
from suite.harness.files import replacing
from suite.mlstore import failures, log_metrics, open_store

FOLDER = "training"
TAG = "sparserl.published"  # the digest of the file that a run was restored from
_STAGES = ("pretrain", "sft", "rl")  # in the order of training
_STATUSES = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")  # MLflow's


class TrainedError(RuntimeError):
    """A file holds no training run; the message is one line."""


def save(runs: Sequence[TrainingRun], published: Path) -> None:
    """Writes a file for each run, in place of the one of the same name.

    Args:
        runs: Newest first; of several with one name the newest stays.
        published: The folder.
    """
    folder = published / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for run in reversed(runs):
        name = re.sub(r"[^\w.-]+", "-", run.name).strip("-")
        curves = {key: [(s, _written(v)) for s, v in curve] for key, curve in run.curves.items()}
        text = json.dumps({**asdict(replace(run, run="")), "curves": curves}, allow_nan=False)
        with replacing(folder / f"{name}.json") as draft:
            draft.write_text(text + "\n", encoding="utf-8")


def load(published: Path) -> list[TrainingRun]:
    """The runs of a published folder, the last stage first; none where it has none.

    Raises:
        TrainedError: A file is not what ``save`` writes.
    """
    return sorted(map(_read, _files(published)), key=_stage, reverse=True)


def restore(published: Path, uri: str) -> dict[str, str | None]:
    """Logs every run that the store does not have.

    Args:
        published: The folder.
        uri: The tracking store.

    Returns:
        MLflow's id of each run by its name; None where the store has it already.

    Raises:
        TrainedError: A file is not what ``save`` writes.
        TrackingError: The store cannot be used.
    """
    runs = [(path, _read(path)) for path in _files(published)]  # all, before any is logged
    return {
        run.name: _log(run, hashlib.sha256(path.read_bytes()).hexdigest(), uri)
        for path, run in runs
    }


def _log(run: TrainingRun, digest: str, uri: str) -> str | None:
    from mlflow.entities import Metric, Param, RunTag

    with failures(uri):
        client, experiment = open_store(uri, TRAINING)
        if client.search_runs([experiment], f"tags.`{TAG}` = '{digest}'", max_results=1):
            return None
        end = int(time.time() * 1000)
        start = end - int((run.seconds or 0) * 1000)
        made = client.create_run(experiment, start_time=start, run_name=run.name)
        key = str(made.info.run_id)
        client.log_batch(key, params=[Param(name, value) for name, value in run.params.items()])
        points = [
            Metric(name, value, end, step)
            for name, curve in run.curves.items()
            for step, value in curve
        ]
        log_metrics(client, key, points)
        client.set_terminated(key, run.status, end)
        client.log_batch(key, tags=[RunTag(TAG, digest)])  # last: one cut off is logged anew
        return key


def _files(published: Path) -> list[Path]:
    return sorted((published / FOLDER).glob("*.json"))


def _stage(run: TrainingRun) -> int:
    stage = run.params.get("stage", "")
    return _STAGES.index(stage) if stage in _STAGES else len(_STAGES)


def _written(value: float) -> float | None:
    """JSON has no other numbers than finite ones."""
    return value if math.isfinite(value) else None


def _read(path: Path) -> TrainingRun:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        curves = {
            str(key): [(int(step), math.nan if v is None else float(v)) for step, v in points]
            for key, points in data["curves"].items()
        }
        run = TrainingRun(**{**data, "curves": curves})
        texts = (run.name, run.run, *run.params.keys(), *run.params.values())
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("name and parameters must be texts")
        if run.status not in _STATUSES:
            raise ValueError(f"status {run.status!r} is none of {', '.join(_STATUSES)}")
        if run.seconds is not None and not 0 <= run.seconds < math.inf:
            raise ValueError(f"{run.seconds} seconds")
        return run
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise TrainedError(f"{path}: no published training run ({error})") from error
