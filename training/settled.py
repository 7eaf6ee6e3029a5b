"""The settings of a run, written in its folder: its first session settles, the others keep them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from suite.harness.files import replacing
from training.errors import ConfigError, TrainingError

RUN = "run.json"


def settle(folder: Path, mine: Mapping[str, str]) -> None:
    """Writes the settings where the folder has none yet, and holds them to those it has.

    Raises:
        ConfigError: The folder is of other settings; lists what differs.
        TrainingError: Its settings cannot be read.
    """
    path = folder / RUN
    if not path.exists():
        with replacing(path) as draft:
            draft.write_text(json.dumps(mine, indent=1), encoding="utf-8")
        return
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TrainingError(f"{path}: cannot be read; delete the folder") from error
    hold(path, known, mine)


def hold(path: Path, known: Mapping[str, str], mine: Mapping[str, str]) -> None:
    """Refuses what was made with other settings.

    Raises:
        ConfigError: Lists what differs.
    """
    differ = [name for name in sorted({*known, *mine}) if known.get(name) != mine.get(name)]
    if differ:
        raise ConfigError(
            [
                f"{path}: was made with {name} {known.get(name)}, not {mine.get(name)}; give that,"
                " or another folder"
                for name in differ
            ]
        )
