"""Stores with campaigns in them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import pytest

from suite.journal import Record
from suite.mlstore import tracking_uri
from suite.record import Row
from suite.tracking import import_record

Keep = Callable[..., str]


@pytest.fixture
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path) -> Keep:
    """Logs a campaign in a store of the test's own, which the commands then find."""
    enter(tmp_path, empty_store, monkeypatch)
    return log


def enter(folder: Path, empty_store: Path, patch: pytest.MonkeyPatch) -> None:
    """Goes into the folder, where the store then is."""
    patch.chdir(folder)
    patch.delenv("MLFLOW_TRACKING_URI", raising=False)
    copyfile(empty_store, folder / "mlflow.db")


def log(name: str, rows: list[Row], programs: dict[str, str] | None = None) -> str:
    """Logs a campaign in the store that is here."""
    facts = {"campaign": name, "commit": "abc", "host": "secret-host", "command": ["pytest"]}
    mine = tuple(replace(row, campaign=name) for row in rows)
    missing = sum(row.unanswered for row in mine)
    record = Record(name, facts, (), mine, missing, programs or {})
    return import_record(record, tracking_uri(Path.cwd())) or ""
