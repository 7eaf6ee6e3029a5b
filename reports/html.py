"""A report as one HTML file that needs nothing else: type, style and figures are inside."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path
from urllib.parse import quote

from fontTools import subset
from fontTools.ttLib import TTFont

from reports.document import (
    Block,
    Document,
    Listing,
    Paragraph,
    Plot,
    Points,
    Table,
    Warned,
    marked,
    unmarked,
)
from reports.listing import coloured
from reports.render import rendered
from reports.theme import FONTS

_STYLE = Path(__file__).with_name("report.css")
_FACES = (
    ("Report", "STIXGeneral.ttf", "normal", "normal"),
    ("Report", "STIXGeneralBol.ttf", "bold", "normal"),
    ("Report", "STIXGeneralItalic.ttf", "normal", "italic"),
)
_SHORT = 36  # characters of a cell that stays on one line
_TAGS = {"plain": "{}", "code": "<code>{}</code>", "strong": "<strong>{}</strong>"}


def document(item: Document) -> str:
    """The whole page."""
    numbers = item.numbers()
    sections, contents = [], []
    for at, section in enumerate(item.sections, 1):
        contents.append(f'<li><a href="#s{at}">{inline(section.title)}</a></li>')
        blocks = "\n".join(_block(block, numbers) for block in section.blocks)
        sections.append(
            f'<section id="s{at}"><h2><span class="n">{at}</span>{inline(section.title)}</h2>\n'
            f"{blocks}</section>"
        )
    body = "\n".join(sections)
    style = _faces(item.title + item.subtitle + body) + _STYLE.read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(unmarked(item.title))}</title><style>\n{style}</style></head>\n<body>"
        f'<header><h1>{inline(item.title)}</h1><p class="sub">{inline(item.subtitle)}</p></header>'
        f"<nav><ol>{''.join(contents)}</ol></nav>\n<main>\n{body}\n</main></body></html>\n"
    )


def inline(text: str) -> str:
    """Marked text."""
    return "".join(_TAGS[style].format(escape(piece)) for style, piece in marked(text))


def _block(block: Block, numbers: dict[Block, int]) -> str:
    match block:
        case Table():
            return _table(block, numbers[block])
        case Plot():
            return (
                f'<figure id="{escape(block.name)}"><div class="scroll">'
                f'<img alt="{escape(unmarked(block.caption))}" src="{_image(block)}"></div>'
                f"<figcaption><b>Figure {numbers[block]}.</b>"
                f" {inline(block.caption)}</figcaption></figure>"
            )
        case Paragraph():
            return f"<p>{inline(block.text)}</p>"
        case Points():
            return f"<ul>{_items(block.items)}</ul>"
        case Warned():
            return f'<aside role="note"><ul>{_items(block.items)}</ul></aside>'
        case Listing():
            pieces = "".join(
                f'<span style="color:{colour}">{escape(piece)}</span>' if colour else escape(piece)
                for piece, colour in coloured(block)
            )
            caption = f"<p class='cap'>{inline(block.caption)}</p>" if block.caption else ""
            return f"{caption}<pre>{pieces}</pre>"


def _items(items: tuple[str, ...]) -> str:
    return "".join(f"<li>{inline(text)}</li>" for text in items)


def _table(table: Table, number: int) -> str:
    sides = table.sides
    heading = "".join(
        f'<th class="{side}" scope="col">{inline(text)}</th>'
        for side, text in zip(sides, table.headings, strict=True)
    )
    lines = []
    for at, row in enumerate(table.rows):
        run = table.runs[at] if table.runs else ""
        cells = []
        for place, (side, text) in enumerate(zip(sides, row, strict=True)):
            shown = inline(text)
            if run and place == table.named:
                shown = f'<a href="#run-{quote(run)}" title="MLflow run {escape(run)}">{shown}</a>'
            kept = f"{side} s" if side == "l" and len(text) <= _SHORT else side
            cells.append(f'<td class="{kept}">{shown}</td>')
        target = ' id="run-{}"'.format(quote(row[-1].strip("`"))) if table.name == "runs" else ""
        rule = ' class="rule"' if at in table.rules else ""
        lines.append(f"<tr{target}{rule}>{''.join(cells)}</tr>")
    note = f'<p class="note">{inline(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table" id="{escape(table.name)}"><p class="cap"><b>Table {number}.</b>'
        f' {inline(table.caption)}</p><div class="scroll"><table><thead><tr>{heading}</tr></thead>'
        f"<tbody>\n{chr(10).join(lines)}\n</tbody></table></div>{note}</div>"
    )


def _image(plot: Plot) -> str:
    data = base64.b64encode(rendered(plot.drawing, "svg")).decode()
    return f"data:image/svg+xml;base64,{data}"


def _faces(text: str) -> str:
    """The signs that the page needs, of the type that the figures are set in."""
    rules = []
    for family, file, weight, style in _FACES:
        font = TTFont(FONTS / file, recalcTimestamp=False)
        options = subset.Options(flavor="woff", notdef_outline=True)
        options.drop_tables += ["FFTM"]
        cutter = subset.Subsetter(options)
        cutter.populate(text="".join(sorted(set(text))) + "ABCabc0123456789")
        cutter.subset(font)
        stream = io.BytesIO()
        font.flavor = "woff"
        font.save(stream)
        data = base64.b64encode(stream.getvalue()).decode()
        rules.append(
            f"@font-face{{font-family:{family};font-weight:{weight};font-style:{style};"
            f'src:url(data:font/woff;base64,{data}) format("woff")}}\n'
        )
    return "".join(rules)
