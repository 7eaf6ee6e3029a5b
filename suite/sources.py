"""Where the names in the options are looked up: the project's matrices, baselines and libraries.

Imported modules pull in mesh and graph libraries, so they are imported when a name is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from suite.author import Author
from suite.config import DeviceKind, Sources, detect_device
from suite.matrices.base import MatrixSpec


def sources(more: Callable[[DeviceKind], Sequence[Author]]) -> Sources:
    """The project's own, and ``more`` authors for the device."""
    return Sources(
        _select, lambda device: [*_own(device), *more(device)], _from_path, detect_device
    )


def _select(text: str) -> Sequence[MatrixSpec]:
    from suite.matrices.sets import select

    return select(text)


def _own(device: DeviceKind) -> list[Author]:
    from suite.baselines import files, heuristic, vendor

    library = vendor.authors() if device == "cuda" else []
    return [*library, *files.baselines(), *heuristic.authors()]


def _from_path(path: Path) -> Author:
    from suite.baselines.files import from_path

    return from_path(path)
