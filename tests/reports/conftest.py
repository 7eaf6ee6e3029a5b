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
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    copyfile(empty_store, tmp_path / "mlflow.db")

    def keep(name: str, rows: list[Row], programs: dict[str, str] | None = None) -> str:
        facts = {"campaign": name, "commit": "abc", "host": "secret-host", "command": ["pytest"]}
        mine = tuple(replace(row, campaign=name) for row in rows)
        missing = sum(row.unanswered for row in mine)
        record = Record(name, facts, (), mine, missing, programs or {})
        return import_record(record, tracking_uri(Path.cwd())) or ""

    return keep
