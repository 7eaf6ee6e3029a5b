"""Reads campaigns and training runs from MLflow; nothing else in the reports touches the store."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.metrics import BEST
from suite.mlstore import EXPERIMENT, failures, masked, open_store, sqlite_path
from suite.record import RecordError, Row
from suite.tracking import PROGRAM

if TYPE_CHECKING:
    from mlflow.entities import Run

TRAINING = "sparserl-training"
TRAINING_RUNS = 8  # the newest ones; more lines than that nobody can follow
_PAGE = 1000
_UNREAD = re.compile(r"strategy\.(?!all\.)|(validation\.)?(seconds|share|cache|variety)\.")


class SourceError(RuntimeError):
    """What was asked for is not in the store; the message is one line."""


@dataclass(frozen=True)
class Campaign:
    """A campaign as MLflow has it.

    Attributes:
        name: Its name.
        run: Id of its parent run.
        rows: All rows; none where nothing was logged.
        facts: What ``campaign.json`` says: command, commit, device, versions.
        status: Of the parent run: ``FINISHED``, ``FAILED``, ``KILLED``, ``RUNNING``.
        complete: Whether everything that was measured has been logged.
        runs: The run of each operation and author.
        store: The store's address without passwords.
        experiment: Id of its experiment.
    """

    name: str
    run: str
    rows: Sequence[Row]
    facts: Mapping[str, Any]
    status: str = "FINISHED"
    complete: bool = True
    runs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    store: str = ""
    experiment: str = ""


@dataclass(frozen=True)
class TrainingRun:
    """A training run: its learning curves.

    Attributes:
        name: Its name.
        run: Its id.
        status: As MLflow has it.
        seconds: From its start to its end, pauses included; None where it has not ended.
        params: Its configuration.
        curves: Steps and values of each figure.
    """

    name: str
    run: str
    status: str
    seconds: float | None
    params: Mapping[str, str]
    curves: Mapping[str, Sequence[tuple[int, float]]]


class Store:
    """A tracking store to read from.

    Args:
        uri: Its address.
        experiment: Name of the experiment that campaigns are in.

    Raises:
        SourceError: No such store or experiment.
        TrackingError: The store cannot be used.
    """

    def __init__(self, uri: str, experiment: str = EXPERIMENT) -> None:
        self.uri = uri
        file = sqlite_path(uri)
        if file is not None and not file.exists():
            raise SourceError(
                f"no results here: {file} is missing; run the suite first, or set"
                " MLFLOW_TRACKING_URI to the store that has them"
            )
        self._client, _ = open_store(uri)
        with failures(uri):
            found = self._client.get_experiment_by_name(experiment)
        if found is None:
            raise SourceError(f"no experiment {experiment!r} in {masked(uri)}")
        self._experiment = str(found.experiment_id)

    def campaign(self, name: str) -> Campaign:
        """The campaign of that name.

        Raises:
            SourceError: There is none.
        """
        runs = self._search(f"tags.`suite.campaign` = '{_plain(name)}' and {_PARENT}", 1)
        if not runs:
            raise SourceError(
                f"no campaign {name!r} in {masked(self.uri)}; its name is what the suite printed"
                " last"
            )
        return self._read(runs[0])

    def newest(self) -> Campaign:
        """The campaign that was started last.

        Raises:
            SourceError: There is none.
        """
        runs = self._search(_PARENT, 1)
        if not runs:
            raise SourceError(f"no campaign in {masked(self.uri)}; run the suite first")
        return self._read(runs[0])

    def of_run(self, run: str) -> Campaign:
        """The campaign that a run, parent or child, belongs to.

        Raises:
            SourceError: There is no such run, or it belongs to no campaign.
        """
        from mlflow.exceptions import MlflowException

        try:
            tags = self._client.get_run(run).data.tags
        except MlflowException as error:
            raise SourceError(f"no run {run!r} in {masked(self.uri)}") from error
        if "suite.campaign" not in tags:
            raise SourceError(f"run {run!r} belongs to no campaign of the suite")
        return self.campaign(tags["suite.campaign"])

    def program(self, campaign: Campaign, row: Row) -> str:
        """The text of a row's program; empty where the store does not have it."""
        run = campaign.runs.get((row.label, row.author))
        if not run or not row.program_digest:
            return ""
        with tempfile.TemporaryDirectory() as folder:
            names = (f"programs/{row.program_digest}{end}" for end in (PROGRAM, ".cu"))
            path = next(filter(None, (self._file(run, name, Path(folder)) for name in names)), None)
            return path.read_text(encoding="utf-8", errors="replace") if path else ""

    def attach(self, campaign: Campaign, folder: Path) -> None:
        """Puts a folder's files beside a campaign's, as its artifacts under ``report``.

        Raises:
            TrackingError: The store failed.
        """
        with failures(self.uri):
            self._client.log_artifacts(campaign.run, str(folder), "report")

    def training(self) -> list[TrainingRun]:
        """The newest training runs, newest first; none where nothing was trained."""
        with failures(self.uri):
            experiment = self._client.get_experiment_by_name(TRAINING)
            if experiment is None:
                return []
            runs = self._client.search_runs(
                [experiment.experiment_id], max_results=TRAINING_RUNS, order_by=[_NEWEST]
            )
            return [self._training_run(run) for run in runs]

    def _training_run(self, run: Run) -> TrainingRun:
        info = run.info
        curves = {
            key: sorted(
                (point.step, point.value)
                for point in self._client.get_metric_history(info.run_id, key)
            )
            for key in run.data.metrics
            if not _UNREAD.match(key)
        }
        seconds = (info.end_time - info.start_time) / 1e3 if info.end_time else None
        name = info.run_name or info.run_id
        return TrainingRun(name, info.run_id, info.status, seconds, run.data.params, curves)

    def _read(self, parent: Run) -> Campaign:
        run, tags = str(parent.info.run_id), parent.data.tags
        children: dict[tuple[str, str], str] = {}
        with failures(self.uri):
            for child in self._pages(f"tags.`mlflow.parentRunId` = '{run}'"):
                about = child.data.tags
                if about.get("suite.role") == "author":
                    key = about.get("suite.label", ""), about.get("suite.author", "")
                    children[key] = str(child.info.run_id)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            whole = self._file(run, "rows.json", folder)
            facts = self._file(run, "campaign.json", folder)
            rows = _rows(whole, run) if whole else self._pieces(children, folder)
            return Campaign(
                tags["suite.campaign"],
                run,
                rows,
                json.loads(facts.read_text()) if facts else _facts(tags, parent.data.params),
                parent.info.status,
                tags.get("suite.complete") == "true",
                children,
                masked(self.uri),
                str(parent.info.experiment_id),
            )

    def _pieces(self, children: Mapping[tuple[str, str], str], folder: Path) -> list[Row]:
        """What an attempt that was cut off has logged: the rows of each author that is there."""
        rows: list[Row] = []
        for (_, author), run in children.items():
            target = folder / run
            target.mkdir()
            path = self._file(run, "rows.json", target) if author != BEST else None
            rows += _rows(path, run) if path else []
        return rows

    def _file(self, run: str, path: str, folder: Path) -> Path | None:
        """A run's artifact, brought here; None where it has none of that name."""
        try:
            return Path(self._client.download_artifacts(run, path, str(folder)))
        except Exception:  # artifact stores raise their own errors for what is not there
            return None

    def _search(self, query: str, most: int) -> list[Run]:
        with failures(self.uri):
            found = self._client.search_runs(
                [self._experiment], query, max_results=most, order_by=[_NEWEST]
            )
            return list(found)

    def _pages(self, query: str) -> list[Run]:
        runs: list[Run] = []
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment], query, max_results=_PAGE, page_token=token
            )
            runs += page
            token = page.token
            if not token:
                return runs


_PARENT = "tags.`suite.role` = 'campaign'"
_NEWEST = "attributes.start_time DESC"


def _plain(name: str) -> str:
    """A name to put into a query.

    Raises:
        SourceError: No campaign can have that name.
    """
    if "'" in name or "\\" in name:
        raise SourceError(f"no campaign {name!r}: names have letters, digits, '.', '_' and '-'")
    return name


def _rows(path: Path, run: str) -> list[Row]:
    try:
        return [Row.from_dict(row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, RecordError) as error:
        raise SourceError(f"run {run}: its rows.json cannot be read: {error}") from error


def _facts(tags: Mapping[str, str], params: Mapping[str, str]) -> dict[str, Any]:
    """What the parent's tags say where it has no ``campaign.json``."""
    facts: dict[str, Any] = {"options": dict(params), "device": {}}
    for name, value in tags.items():
        if name.startswith(("mlflow.", "suite.")):
            continue
        if name.startswith("device."):
            facts["device"][name.removeprefix("device.")] = value
        else:
            facts[name] = json.loads(value) if value[:1] in "[{" else value
    return facts


__all__ = ["Campaign", "SourceError", "Store", "TrainingRun"]
