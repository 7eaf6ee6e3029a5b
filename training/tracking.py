"""A training run in MLflow, across its sessions: one run, whatever stops and starts it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.harness.files import replacing
from suite.mlstore import TrackingError, failures, log_metrics, masked, open_store, tracking_uri
from training.curve import Point

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

EXPERIMENT = "sparserl-training"
STATE = "tracking.json"


class RunLog:
    """Logs one training run; what fails is said once, and training goes on.

    Args:
        folder: Of the run; keeps which MLflow run it is and what that has.
        name: Of the run.
        params: Its configuration.
        tags: What makes it reproducible.
        on: Whether to log at all.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        params: Mapping[str, Any],
        tags: Mapping[str, Any],
        on: bool = True,
    ) -> None:
        self._file = folder / STATE
        self._name, self._params, self._tags, self._on = name, params, tags, on
        self._uri = tracking_uri(Path.cwd())
        self._client: MlflowClient | None = None
        self._run = ""
        self.failure = ""

    @property
    def run(self) -> str:
        """Id of the run; empty when nothing was logged."""
        return self._run

    @property
    def where(self) -> str:
        """Run and store, for a person; empty when nothing was logged."""
        return f"run {self._run} ({masked(self._uri)})" if self._run else ""

    def log(self, points: Sequence[Point], status: str = "") -> None:
        """Logs the points that the store does not have yet.

        Args:
            points: All points so far.
            status: What the run becomes: ``FINISHED``, ``KILLED``, ``FAILED``; goes on if empty.
        """
        if not self._on or self.failure:
            return
        try:
            with failures(self._uri):
                self._log(points, status)
        except TrackingError as error:
            self.failure = str(error)

    def _log(self, points: Sequence[Point], status: str) -> None:
        from mlflow.entities import Metric, Param, RunTag

        if self._client is None:
            self._client, experiment = open_store(self._uri, EXPERIMENT)
            self._run = self._known_run(self._client)
            if not self._run:
                made = self._client.create_run(experiment, run_name=self._name)
                self._run = str(made.info.run_id)
                params = [Param(k, str(v)) for k, v in self._params.items()]
                tags = [RunTag(k, str(v)) for k, v in self._tags.items()]
                self._client.log_batch(self._run, params=params, tags=tags)
                self._remember(-1)
            self._client.update_run(self._run, status="RUNNING")
        logged = int(self._state().get("logged", -1))
        now = int(time.time() * 1000)
        new = [
            Metric(name, value, now, point.step)
            for point in points
            if point.step > logged
            for name, value in point.figures.items()
        ]
        log_metrics(self._client, self._run, new)
        if points:
            self._remember(points[-1].step)
        if status:
            self._client.set_terminated(self._run, status)

    def _known_run(self, client: MlflowClient) -> str:
        """The run of an earlier session, if this store has it."""
        from mlflow.exceptions import MlflowException

        state = self._state()
        if state.get("store") != masked(self._uri):
            return ""
        try:
            return str(client.get_run(str(state["run"])).info.run_id)
        except MlflowException:
            return ""

    def _state(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state

    def _remember(self, logged: int) -> None:
        state = {"store": masked(self._uri), "run": self._run, "logged": logged}
        with replacing(self._file) as draft:
            draft.write_text(json.dumps(state), encoding="utf-8")
