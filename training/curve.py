"""The learning curve: a file beside the checkpoint, and MLflow where it can be had.

The file is what counts. Lines past the last checkpoint are cut when a run goes on, since those
steps are done again. MLflow gets what is covered by a checkpoint, so nothing is logged twice; when
it cannot be reached, training goes on and a later session logs what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from suite.harness.files import replacing
from training.errors import TrainingError

FILE = "curve.jsonl"


@dataclass(frozen=True)
class Point:
    """Figures after ``step`` steps."""

    step: int
    figures: Mapping[str, float]


class Curve:
    """Appends points to a file.

    Args:
        folder: Of the run.
        done: Steps that the checkpoint has; later points are cut.
    """

    def __init__(self, folder: Path, done: int) -> None:
        self._path = folder / FILE
        kept = [point for point in _read(self._path) if point.step <= done]
        with replacing(self._path) as draft:
            draft.write_text("".join(map(_line, kept)), encoding="utf-8")
        self.points = kept

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds a point; the file has it at once."""
        point = Point(step, dict(figures))
        self.points.append(point)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(_line(point))

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)


def _line(point: Point) -> str:
    return f"{json.dumps({'step': point.step, **point.figures})}\n"


def _read(path: Path) -> list[Point]:
    if not path.exists():
        return []
    points = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            data = json.loads(line)
            points.append(Point(int(data.pop("step")), data))
        except (ValueError, KeyError, AttributeError) as error:
            if number == len(lines):  # a kill in the middle of a line; that step is done again
                continue
            raise TrainingError(
                f"{path}:{number}: not a point of a curve; delete the file"
            ) from error
    return points
