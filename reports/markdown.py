"""A table as lines of Markdown."""

from __future__ import annotations

from reports.document import Table


def markdown(table: Table) -> list[str]:
    """Heading, rule and one line a row."""
    return [
        _line(table.headings),
        "|" + " --- |" * len(table.headings),
        *map(_line, table.rows),
    ]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
