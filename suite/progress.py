"""A line for each matrix that is done, so that a long run shows where it is.

Items of one matrix may run in several processes and in any order; only reports reach the terminal's
process.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Measured:
    """What became of one item, as far as progress needs it; made of plain values.

    Attributes:
        matrix: Name of the matrix.
        items: Items that ask about this matrix, in all.
        position: Which of the matrices it is, from 1.
        matrices: How many matrices there are.
        rows: M, None when the matrix could not be built.
        nnz: Z.
        programs: Answers that the item measured.
        seconds: Time that the item took.
    """

    matrix: str
    items: int
    position: int
    matrices: int
    rows: int | None
    nnz: int | None
    programs: int
    seconds: float


class Progress:
    """Says when all the items of a matrix have been measured, in whatever process and order."""

    def __init__(self) -> None:
        self._done: dict[str, list[Measured]] = {}

    def add(self, item: Measured) -> str | None:
        """A line when this was the matrix's last item."""
        done = self._done.setdefault(item.matrix, [])
        done.append(item)
        if len(done) != item.items:
            return None
        built = next((i for i in done if i.rows is not None and i.nnz is not None), None)
        size = f" {built.rows:,} rows {_short(built.nnz or 0)} nnz" if built else " not built"
        programs = _some(sum(i.programs for i in done), "program")
        seconds = sum(i.seconds for i in done)
        place = f"[{item.position}/{item.matrices}]"
        return f"{place} {item.matrix}{size}: {programs}, {seconds:.1f} s"


class ProgressLines:
    """A pytest plugin that writes the lines, whatever is captured and however quiet pytest is.

    Args:
        config: Whose terminal to write to.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._progress = Progress()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts what the report carries, if it is an item of the suite."""
        measured = getattr(report, "suite_measured", None)
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        line = self._progress.add(Measured(**measured)) if measured else None
        if line and terminal is not None:
            terminal.write_line(line)


def _short(number: int) -> str:
    for limit, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return str(number)


def _some(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
