"""Opening an MLflow store so that it neither breaks, nor hangs, nor chatters.

MLflow creates the tables of a new SQLite file without a lock: of several processes that open it at
once most fail, and the file can stay broken. Here the first one initialises it under a file lock
and another name, so that a full disk or a signal leaves no half-made store. A server that does not
answer is found out within seconds rather than after MLflow's minutes of retries. MLflow takes
seconds to import, so it is imported when a store is opened and not before.
"""

from __future__ import annotations

import http.client
import logging
import os
import re
import socket
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from filelock import FileLock

if TYPE_CHECKING:
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

EXPERIMENT = "sparserl-bench"
_METRICS_AT_ONCE = 900
ANSWER_SECONDS = 4.0  # a server that takes longer to answer counts as unreachable
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # two lines a run, its password among them
}


_SECRET = re.compile(r"(?<=://)([^\s/:@]*):\S*@|([?&](?:password|token)=)[^\s&]*", re.IGNORECASE)


class TrackingError(RuntimeError):
    """The tracking store cannot be used; the message is one line."""


def tracking_uri(folder: Path) -> str:
    """``MLFLOW_TRACKING_URI``, or the SQLite file ``mlflow.db`` in ``folder``."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder.absolute() / 'mlflow.db'}"


def open_store(uri: str, experiment: str = EXPERIMENT) -> tuple[MlflowClient, str]:
    """A client and the id of the experiment, both ready; a missing experiment is made.

    Raises:
        TrackingError: The store cannot be reached, read or written.
    """
    database = sqlite_path(uri)
    with failures(uri):
        if database is None:
            _knock(uri)
            return _connect(uri, None, experiment)
        database.parent.mkdir(parents=True, exist_ok=True)
        artifacts = (database.parent / "mlartifacts").absolute().as_uri()
        with FileLock(database.with_name(database.name + ".lock"), timeout=60):
            if not (database.exists() and database.stat().st_size):
                _initialise(database.resolve(), artifacts, experiment)
            _try_writing(database)
            return _connect(uri, artifacts, experiment)


def sqlite_path(uri: str) -> Path | None:
    """The file of a SQLite store; None for every other kind.

    Raises:
        TrackingError: It names no file, so that nothing would be kept.
    """
    scheme, _, rest = uri.partition(":")
    if scheme.split("+")[0] != "sqlite":
        return None
    path = rest.removeprefix("///").partition("?")[0]
    if not rest.startswith("///") or not path or ":memory:" in path:
        raise TrackingError(f"tracking store {masked(uri)}: names no file; use sqlite:///mlflow.db")
    return Path(path)


def masked(text: str) -> str:
    """The text, with the passwords of the addresses in it as ``***``."""
    return _SECRET.sub(lambda m: f"{m[2]}***" if m[2] else f"{m[1]}:***@", text)


@contextmanager
def failures(uri: str) -> Iterator[None]:
    """Turns whatever a store raises into one line.

    Raises:
        TrackingError: For any exception inside.
    """
    try:
        yield
    except TrackingError:
        raise
    except Exception as error:  # stores raise their drivers' own errors
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise TrackingError(masked(f"tracking store {uri}: {lines[0]}")) from error


def _connect(uri: str, artifacts: str | None, experiment: str) -> tuple[MlflowClient, str]:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    for chatty in ("mlflow", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what MLflow uses of SQLAlchemy
        client = MlflowClient(uri)
        found = client.get_experiment_by_name(experiment)
    if found is not None:
        if found.lifecycle_stage != "active":
            raise TrackingError(
                f"tracking store {masked(uri)}: experiment {experiment} is deleted;"
                " restore it there"
            )
        return client, found.experiment_id
    try:
        tags = {"mlflow.experimentKind": "custom_model_development"}  # opens with its runs
        return client, client.create_experiment(experiment, artifacts, tags)
    except MlflowException:  # another process was quicker
        found = client.get_experiment_by_name(experiment)
        if found is None:
            raise
        return client, found.experiment_id


def _initialise(database: Path, artifacts: str, experiment: str) -> None:
    """Makes a new store, whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{database.name}.", dir=database.parent) as folder:
        draft = Path(folder) / database.name
        _try_writing(draft)
        _connect(f"sqlite:///{draft}", artifacts, experiment)
        os.replace(draft, database)


def _try_writing(database: Path) -> None:
    """Fails at once where MLflow would retry for minutes."""
    connection = sqlite3.connect(database, timeout=30, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def _knock(uri: str) -> None:
    parts = urlsplit(uri)
    if not parts.hostname:
        return
    if parts.scheme not in ("http", "https"):
        if parts.port:
            socket.create_connection((parts.hostname, parts.port), ANSWER_SECONDS).close()
        return
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/health")
        connection.getresponse()
    finally:
        connection.close()


def log_metrics(client: MlflowClient, run: str, metrics: Sequence[Metric]) -> None:
    """Logs any number of points; the store takes 1,000 in one request."""
    for first in range(0, len(metrics), _METRICS_AT_ONCE):
        client.log_batch(run, metrics=metrics[first : first + _METRICS_AT_ONCE])
