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
    plots = [block for block in document.blocks() if isinstance(block, Plot)]
    for name in ("tables", "figures"):
        _emptied(folder / name)
    for table in tables:
        _write(folder / "tables" / f"{table.name}.tex", latex.table(table))
    figures = {plot.name: rendered(plot.drawing, "pdf") for plot in plots}
    for name, page in figures.items():
        (folder / "figures" / f"{name}.pdf").write_bytes(page)
    plain = [asdict(table) for table in tables]
    _write(folder / "tables.json", json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    _write(folder / "evaluation.tex", latex.document(document))
    _write(folder / "report.html", html.document(document))
    (folder / "report.pdf").write_bytes(pdf.document(document, figures))
    return [folder / name for name in ("report.html", "report.pdf", "evaluation.tex")]


def _emptied(folder: Path) -> None:
    """A folder without the files that an earlier report left there."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in [*folder.glob("*.tex"), *folder.glob("*.pdf")]:
        file.unlink()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")
