"""A study in MLflow: one parent, a child for each trial, and the plots as the parent's artifacts.

What fails is said once and the study goes on; the database of the study has everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suite.mlstore import TrackingError, failures, masked, open_store, tracking_uri
from training.curve import Point
from training.tracking import EXPERIMENT, RunLog


class StudyLog:
    """The parent run of a study.

    Args:
        name: Of the study.
        run: The parent of an earlier session or another worker; made if empty.
        params: Of the study.
        tags: What makes it reproducible.
        on: Whether to log at all.

    Attributes:
        run: Id of the parent; empty when nothing is logged.
        failure: What went wrong, empty as long as nothing did.
    """

    def __init__(
        self,
        name: str,
        run: str,
        params: Mapping[str, Any],
        tags: Mapping[str, Any],
        on: bool = True,
    ) -> None:
        self._uri, self._on = tracking_uri(Path.cwd()), on
        self._tags = {k: str(v) for k, v in tags.items()}
        self.run, self.failure = "", ""
        if on:
            with self._said():
                self.run = self._open(name, run, params)

    @property
    def where(self) -> str:
        """Run and store, for a person; empty when nothing was logged."""
        return f"run {self.run} ({masked(self._uri)})" if self.run else ""

    def child(self, number: int, folder: Path, params: Mapping[str, Any], worker: str) -> RunLog:
        """The run of a trial.

        Args:
            number: Of the trial.
            folder: Of the trial.
            params: What it tries.
            worker: Who runs it.
        """
        tags = {**self._tags, "mlflow.parentRunId": self.run, "trial": number, "worker": worker}
        return RunLog(folder, f"trial {number}", params, tags, self._on and bool(self.run))

    def finish(
        self, figures: Mapping[str, float], tags: Mapping[str, str], plots: Path, status: str
    ) -> None:
        """Figures, tags and plots of the study as it is now."""
        if not self.run or self.failure:
            return
        with self._said():
            for name, value in figures.items():
                self._client.log_metric(self.run, name, value)
            for name, text in tags.items():
                self._client.set_tag(self.run, name, text)
            if plots.is_dir():
                self._client.log_artifacts(self.run, str(plots), "plots")
            self._client.set_terminated(self.run, status)

    def _open(self, name: str, run: str, params: Mapping[str, Any]) -> str:
        from mlflow.entities import Param, RunTag
        from mlflow.exceptions import MlflowException

        self._client, experiment = open_store(self._uri, EXPERIMENT)
        if run:
            try:
                self._client.update_run(run, status="RUNNING")
                return run
            except MlflowException:  # of another store
                pass
        made = self._client.create_run(experiment, run_name=f"sweep {name}")
        found = str(made.info.run_id)
        kept = [Param(key, str(value)) for key, value in params.items()]
        tags = [RunTag(key, value) for key, value in self._tags.items()]
        self._client.log_batch(found, params=kept, tags=tags)
        return found

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Keeps the first failure instead of raising it."""
        try:
            with failures(self._uri):
                yield
        except TrackingError as error:
            self.failure = self.failure or str(error)


def final(points: Sequence[Point], figures: Mapping[str, float]) -> list[Point]:
    """A curve with figures added to its last point."""
    if not points:
        return [Point(0, dict(figures))]
    return [*points[:-1], Point(points[-1].step, {**points[-1].figures, **figures})]
