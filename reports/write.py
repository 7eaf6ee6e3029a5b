"""Writes a report: HTML, PDF, LaTeX tables and figures, all from the same document."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from reports import html, latex, pdf
from reports.document import Document, Plot, Table
from reports.render import rendered


def write(document: Document, folder: Path) -> list[Path]:
    """Writes every form of a report; files of an earlier one there are replaced.

    Returns:
        The files that a person opens first.

    Raises:
        OSError: The folder cannot be written.
    """
    tables = [block for block in document.blocks() if isinstance(block, Table)]
    for name in ("tables", "figures"):
        _emptied(folder / name)
    for table in tables:
        _write(folder / "tables" / f"{table.name}.tex", latex.table(table))
    figures = write_pages(document, folder)
    for name, page in figures.items():
        (folder / "figures" / f"{name}.pdf").write_bytes(page)
    plain = [asdict(table) for table in tables]
    _write(folder / "tables.json", json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    _write(folder / "evaluation.tex", latex.document(document))
    return [folder / name for name in ("report.html", "report.pdf", "evaluation.tex")]


def write_pages(document: Document, folder: Path) -> dict[str, bytes]:
    """Writes ``report.html`` and ``report.pdf`` alone; returns each figure as a PDF page.

    Raises:
        OSError: The folder cannot be written.
    """
    plots = [block for block in document.blocks() if isinstance(block, Plot)]
    figures = {plot.name: rendered(plot.drawing, "pdf") for plot in plots}
    _write(folder / "report.html", html.document(document))
    (folder / "report.pdf").write_bytes(pdf.document(document, figures))
    return figures


def write_shown(document: Document, folder: Path) -> None:
    """Writes what MLflow shows of a report: ``report.html`` and each figure as PNG.

    Raises:
        OSError: The folder cannot be written.
    """
    _write(folder / "report.html", html.document(document))
    for block in document.blocks():
        if isinstance(block, Plot):
            (folder / f"{block.name}.png").write_bytes(rendered(block.drawing, "png"))


def _emptied(folder: Path) -> None:
    """A folder without the files that an earlier report left there."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in [*folder.glob("*.tex"), *folder.glob("*.pdf")]:
        file.unlink()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")
