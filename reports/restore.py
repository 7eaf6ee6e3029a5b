"""Puts published results back into MLflow, so that a bare clone can build their report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from suite.baselines.files import baselines
from suite.journal import Record
from suite.program import KernelProgram
from suite.record import RecordError, Row
from suite.tracking import import_record


class RestoreError(RuntimeError):
    """The folder does not hold published results; the message is one line."""


def restore(folder: Path, uri: str) -> dict[str, str | None]:
    """Logs every campaign of a published folder.

    Args:
        folder: With ``rows.parquet`` and ``summary.json``, as ``publish`` wrote them.
        uri: The tracking store.

    Returns:
        The parent run of each campaign by its name; None where the store has it already.

    Raises:
        RestoreError: The files are missing or are not what ``publish`` writes.
        TrackingError: The store cannot be used.
    """
    first_last = reversed(records(folder))  # the newest run is then the campaign, not a repetition
    return {record.campaign: import_record(record, uri) for record in first_last}


def records(folder: Path) -> list[Record]:
    """The campaigns of a published folder.

    Raises:
        RestoreError: The files are missing or are not what ``publish`` writes.
    """
    try:
        table = pd.read_parquet(folder / "rows.parquet")
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        facts = {str(item["campaign"]): item for item in summary["campaigns"]}
        rows = [Row.from_dict(_plain(row)) for row in table.to_dict("records")]
        texts = folder / "programs.json"
        kept = json.loads(texts.read_text(encoding="utf-8")) if texts.exists() else {}
        programs = {**_baselines(), **kept}
    except (OSError, ValueError, KeyError, TypeError, RecordError) as error:
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RestoreError(f"{folder}: no published results: {line}") from error
    found = []
    for name, about in facts.items():
        mine = tuple(row for row in rows if row.campaign == name)
        unanswered = sum(row.unanswered for row in mine)
        found.append(Record(name, about, (), mine, unanswered, programs))
    return found


def _baselines() -> dict[str, str]:
    """The hand-written programs by digest: many are as they were when they were published."""
    texts = [text for author in baselines() for text in author.texts.values()]
    return {KernelProgram("", text).digest: text for text in texts}


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of a data frame as JSON would have it: no NaN, whole numbers whole, lists as lists."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, float):
            if math.isnan(value):
                value = None
            elif value.is_integer() and name in _WHOLE:
                value = int(value)
        found[str(name)] = value
    return found


_WHOLE = {name for name, kind in Row.__annotations__.items() if str(kind) in ("int", "int | None")}
