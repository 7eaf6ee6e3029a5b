"""A campaign in MLflow: one parent run, one child run for each author and operation.

The parent is made when measuring starts and holds what makes the numbers reproducible; children,
metrics and artifacts follow when it ends, from the journal, so a campaign that was interrupted or
could not reach its server is logged by the same code later (``python -m suite import``). No metric
is ever infinite or NaN: what has no value is left out.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suite.journal import Record
from suite.metrics import collect, oracle
from suite.mlstore import TrackingError, failures, open_store
from suite.provenance import Process, this_process
from suite.record import Row
from suite.summary import described, markdown
from suite.views import NOTE, experiment_tags

if TYPE_CHECKING:
    from mlflow.entities import Param, Run
    from mlflow.tracking import MlflowClient

RunStatus = Literal["FINISHED", "FAILED", "KILLED"]
PROGRAM = ".cu.txt"  # MLflow shows what it takes for text
_TAG_LIMIT = 4000  # characters; stores allow 5000 or more


class Tracker:
    """The parent run of a campaign, open until ``end``.

    Attributes:
        uri: The store.
        run_id: The parent run.
        campaign: Its name.
        open: Whether some run may still be open.
    """

    def __init__(self, uri: str, campaign: str, facts: Mapping[str, Any]) -> None:
        """Opens the parent run, and closes runs that dead processes of this host left open.

        Where the campaign has a parent run, it goes on in it: its children, which belong to an
        attempt that did not come to its end, are deleted.

        Raises:
            TrackingError: The store cannot be used.
        """
        self.uri = uri
        self.campaign = campaign
        self.open = True
        self._client, self._experiment = open_store(uri)
        with self._closing():
            close_stale(self._client, self._experiment)
            self.run_id = self._reopened(facts) or self._create(
                campaign, {"suite.role": "campaign", **_tags(facts)}
            )
            self._client.log_batch(self.run_id, params=_params(facts.get("options", {})))

    def complete(self, record: Record, status: RunStatus) -> None:
        """Logs everything that was measured, and closes the parent run.

        Args:
            record: The campaign.
            status: How the parent ends, and the child of an author who was not asked everything.

        Raises:
            TrackingError: The store failed; the journal still holds it all.
        """
        with self._closing(), tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            for label in dict.fromkeys(row.label for row in record.rows):
                everyone = [row for row in record.rows if row.label == label]
                for rows in _by_author(everyone):
                    child = self._log_author(rows, everyone, record, folder / label)
                    gaps = any(row.unanswered for row in rows)
                    partly = "KILLED" if status == "FINISHED" else status
                    self._client.set_terminated(child, partly if gaps else "FINISHED")
            everything = folder / "campaign"
            everything.mkdir()
            (everything / "summary.md").write_text(_summary(record), encoding="utf-8")
            _write_rows(record.rows, everything)
            _write_json(everything / "campaign.json", record.facts)
            _write_json(everything / "matrices.json", _matrices(record.rows))
            self._client.log_artifacts(self.run_id, str(everything))
            for name, value in (("asked", len(record.rows)), ("unanswered", record.unanswered)):
                self._client.log_metric(self.run_id, name, value)
            self._client.set_tag(self.run_id, NOTE, _summary(record, everybody=False)[:_TAG_LIMIT])
            self._describe_experiment(record)
            self._client.set_tag(self.run_id, "suite.complete", "true")
            self._client.set_terminated(self.run_id, status)
        self.open = False

    def end(self, status: RunStatus) -> None:
        """Closes whatever runs of this campaign the process has left open.

        Raises:
            TrackingError: The store failed.
        """
        mine = (
            f"attributes.status = 'RUNNING' and tags.`suite.campaign` = '{self.campaign}'"
            f" and tags.`suite.process` = '{this_process().identity}'"
        )
        with failures(self.uri):
            for run in self._client.search_runs([self._experiment], mine):
                self._client.set_terminated(run.info.run_id, status)
        self.open = False

    def _describe_experiment(self, record: Record) -> None:
        """Gives the experiment its description and views; what is there already stays."""
        has = self._client.get_experiment(self._experiment).tags
        labels = list(dict.fromkeys(row.label for row in record.rows))
        for name, value in experiment_tags(labels).items():
            if name not in has:
                self._client.set_experiment_tag(self._experiment, name, value)

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Whatever goes wrong inside leaves no run open, if the store lets it."""
        try:
            with failures(self.uri):
                yield
        except BaseException as error:
            with suppress(TrackingError):
                self.end("FAILED" if isinstance(error, TrackingError) else "KILLED")
            raise

    def _log_author(
        self, rows: Sequence[Row], everyone: Sequence[Row], record: Record, folder: Path
    ) -> str:
        """Logs the child run of one author and operation, and leaves it open."""
        from mlflow.entities import Metric

        first = rows[0]
        tags = {
            "mlflow.parentRunId": self.run_id,
            "suite.role": "author",
            "suite.author": first.author,
            "suite.label": first.label,
        }
        run = self._create(f"{first.label}.{first.author}", tags)
        now = int(time.time() * 1000)
        found = collect(rows, everyone)
        metrics = [Metric(k, v, now, 0) for k, v in found.items()]
        params = {
            "author": first.author,
            "kind": first.kind.value,
            "campaign": self.campaign,
            "device": next((row.device for row in rows if row.device), ""),
            "commit": record.facts.get("commit") or "unknown",
            "op": first.op.value,
            "columns": first.columns,
            "dtype": first.dtype.value,
            "samples": max(row.sample for row in rows) + 1,
        }
        self._client.log_batch(run, metrics, _params(params))
        self._client.set_tag(run, NOTE, described(found))
        mine = folder / first.author
        (mine / "programs").mkdir(parents=True)
        _write_json(mine / "rows.json", [row.to_dict() for row in rows])
        for digest in {row.program_digest for row in rows} & set(record.programs):
            text = record.programs[digest].encode("utf-8", "surrogatepass")
            (mine / "programs" / f"{digest}{PROGRAM}").write_bytes(text)
        self._client.log_artifacts(run, str(mine))
        return run

    def _reopened(self, facts: Mapping[str, Any]) -> str | None:
        """The campaign's parent run, open and without children; None where there is none."""
        runs = _runs_of(self._client, self._experiment, self.campaign)
        if any(_is_alive(run) for run in runs):
            raise TrackingError(f"campaign {self.campaign} is still running; wait for its end")
        parents = [run for run in runs if run.data.tags.get("suite.role") == "campaign"]
        for run in runs:
            if run not in parents[:1]:
                self._client.delete_run(run.info.run_id)
        if not parents:
            return None
        run_id = str(parents[0].info.run_id)
        for name, value in {**self._owner(), **_tags(facts)}.items():
            self._client.set_tag(run_id, name, value)
        if "suite.complete" in parents[0].data.tags:
            self._client.delete_tag(run_id, "suite.complete")
        self._client.update_run(run_id, status="RUNNING")
        return run_id

    def _create(self, name: str, tags: Mapping[str, str]) -> str:
        owned = {**self._owner(), **tags}
        run = self._client.create_run(self._experiment, tags=owned, run_name=name)
        return str(run.info.run_id)

    def _owner(self) -> dict[str, str]:
        process = this_process()
        return {
            "suite.campaign": self.campaign,
            "suite.host": process.host,
            "suite.process": process.identity,
            "mlflow.user": os.environ.get("USER", "unknown"),
        }


def close_stale(client: MlflowClient, experiment: str) -> int:
    """Marks RUNNING runs KILLED whose process on this host is dead; returns how many."""
    host = this_process().host
    closed = 0
    while True:
        page = client.search_runs(
            [experiment],
            f"attributes.status = 'RUNNING' and tags.`suite.host` = '{host}'",
            max_results=1000,
        )
        dead = [
            run
            for run in page
            if Process(host, run.data.tags.get("suite.process", "")).alive is False
        ]
        for run in dead:
            client.set_terminated(run.info.run_id, "KILLED")
        closed += len(dead)
        if len(page) < 1000 or not dead:
            return closed


def import_record(record: Record, uri: str) -> str | None:
    """Logs a campaign from its journal; what an attempt before left half-logged is deleted.

    Returns:
        The parent run, or None when the store already has the whole campaign.

    Raises:
        TrackingError: The store cannot be used, or the campaign is being measured right now.
    """
    client, experiment = open_store(uri)
    with failures(uri):
        runs = _runs_of(client, experiment, record.campaign)
        if any(run.data.tags.get("suite.complete") == "true" for run in runs):
            return None
        if any(_is_alive(run) for run in runs):
            raise TrackingError(f"campaign {record.campaign} is still running; wait for its end")
        for run in runs:
            client.delete_run(run.info.run_id)
    tracker = Tracker(uri, record.campaign, {**record.facts, "imported": True})
    tracker.complete(record, "KILLED" if record.unanswered else "FINISHED")
    return tracker.run_id


def _runs_of(client: MlflowClient, experiment: str, campaign: str) -> list[Run]:
    """The campaign's parent and children."""
    found = client.search_runs(
        [experiment], f"tags.`suite.campaign` = '{campaign}'", max_results=10_000
    )
    return list(found)


def _is_alive(run: Run) -> bool:
    """Whether another process on this host has the run open."""
    tags = run.data.tags
    owner = Process(tags.get("suite.host", ""), tags.get("suite.process", ""))
    return run.info.status == "RUNNING" and owner != this_process() and owner.alive is True


def _by_author(rows: Sequence[Row]) -> Iterator[list[Row]]:
    for author in dict.fromkeys(row.author for row in rows):
        yield [row for row in rows if row.author == author]
    if best := oracle(rows):
        yield best


def _params(values: Mapping[str, Any]) -> list[Param]:
    from mlflow.entities import Param

    return [Param(name, str(value)[:_TAG_LIMIT]) for name, value in values.items()]


def _tags(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as flat tags: ``device.name``, ``packages`` as one JSON text, and so on."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if name == "device":
            flat.update((f"device.{k}", v) for k, v in value.items() if k != "details")
            flat.update((f"device.{k}", v) for k, v in value.get("details", {}).items())
        elif name not in ("host", "process", "options"):
            flat[name] = value
    return {
        name: (value if isinstance(value, str) else json.dumps(value))[:_TAG_LIMIT]
        for name, value in flat.items()
        if value is not None
    }


def _matrices(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    return {
        row.matrix: {
            "digest": row.matrix_digest,
            "family": row.family,
            "rows": row.rows,
            "cols": row.cols,
            "nnz": row.nnz,
            "source": row.matrix_source,
        }
        for row in rows
        if row.matrix_digest
    }


def _summary(record: Record, everybody: bool = True) -> str:
    facts = record.facts
    matrices = len({row.matrix for row in record.rows})
    device = (facts.get("device") or {}).get("name", "no device")
    about = f"Campaign `{record.campaign}` on {device}: {matrices} matrices, commit"
    note = (
        "" if everybody else "\nBaselines one by one, and where numbers come from: `summary.md`.\n"
    )
    table = markdown(record.rows, everybody)
    return f"{about} `{str(facts.get('commit') or 'unknown')[:12]}`.\n\n{table}{note}"


def _write_rows(rows: Sequence[Row], folder: Path) -> None:
    """``rows.json`` always, ``rows.csv`` to look at, ``rows.parquet`` where there is pyarrow."""
    plain = [row.to_dict() for row in rows]
    _write_json(folder / "rows.json", plain)
    lists = ("hot_samples_us", "cold_samples_us", "log")
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8", errors="replace") as file:
        names = [name for name in (plain[0] if plain else {}) if name not in lists]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(plain)
    try:
        import pyarrow  # noqa: F401  # optional: pandas writes Parquet with it
    except ImportError:
        return
    import pandas as pd

    pd.DataFrame(plain).to_parquet(folder / "rows.parquet", index=False)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


__all__ = ["PROGRAM", "RunStatus", "Tracker", "TrackingError", "close_stale", "import_record"]
