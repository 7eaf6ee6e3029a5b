"""A report as PDF: ReportLab sets the pages, and each figure goes in as matplotlib's own vectors.

There is room for a figure first; when all pages are set, pypdf lays the figure's page into it. So a
figure is the same file here and in a paper, with its type embedded and never as pixels.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject
from reportlab.lib.enums import TA_CENTER, TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    CondPageBreak,
    Flowable,
    Frame,
    PageTemplate,
    Spacer,
    XPreformatted,
)
from reportlab.platypus import Paragraph as Set
from reportlab.platypus import Table as Grid

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
from reports.pages import Broken, Pages, Together
from reports.theme import FONTS

MARGIN = 20 * mm
WIDTH = A4[0] - 2 * MARGIN
_CONTINUED = "    "
_LARGEST, _READABLE, _SMALLEST = 8.2, 6.0, 5.4  # points, of a table
_NARROWEST = 0.14  # share of the width that a wrapped text keeps at least
_FAMILIES = {
    "Report": ("STIXGeneral.ttf", "STIXGeneralBol.ttf", "STIXGeneralItalic.ttf"),
    "Program": ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf", "DejaVuSansMono-Oblique.ttf"),
}
_WHOLE = 24  # rows of a table that is not broken
_LINE = 94  # characters of a program before it is folded


@dataclass(frozen=True)
class _Spot:
    """Where a figure belongs."""

    page: int
    x: float
    y: float
    scale: float
    plot: Plot


class _Room(Flowable):
    """Empty room of a figure's size that remembers where it came to lie."""

    def __init__(self, plot: Plot, spots: list[_Spot]) -> None:
        super().__init__()
        self._plot, self._spots = plot, spots
        wide, high = (72 * float(side) for side in plot.drawing.get_size_inches())
        self._scale = min(1.0, WIDTH / wide)
        self.width, self.height = wide * self._scale, high * self._scale

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        """Its size."""
        return WIDTH, self.height

    def draw(self) -> None:
        """Remembers the place."""
        x, y = self.canv.absolutePosition((WIDTH - self.width) / 2, 0)
        page = self.canv.getPageNumber() - 1
        self._spots.append(_Spot(page, x, y, self._scale, self._plot))


class _Mark(Flowable):
    """An entry of the outline that readers of the PDF see beside it."""

    def __init__(self, title: str, key: str) -> None:
        super().__init__()
        self._title, self._key = title, key
        self.width = self.height = 0

    def draw(self) -> None:
        """Marks the place."""
        self.canv.bookmarkPage(self._key)
        self.canv.addOutlineEntry(self._title, self._key, 0)


def document(item: Document, figures: Mapping[str, bytes]) -> bytes:
    """The whole PDF.

    Args:
        item: What to set.
        figures: Each figure by name, as a PDF of one page.
    """
    _register()
    spots: list[_Spot] = []
    story: list[Any] = [
        _set(item.title, _style(17, 21, alignment=TA_CENTER, after=3)),
        _set(item.subtitle, _style(10, 13, alignment=TA_CENTER, after=8)),
    ]
    numbers = item.numbers()
    for at, section in enumerate(item.sections, 1):
        head = [
            _Mark(f"{at}  {unmarked(section.title)}", f"s{at}"),
            _set(section.title, _heading(), f"{at}&nbsp;&nbsp;&nbsp;"),
        ]
        first, *rest = [_block(block, numbers, spots) for block in section.blocks]
        story += [*_joined(head, first), *itertools.chain.from_iterable(rest)]
    stream = io.BytesIO()
    template = Pages(
        stream,
        pagesize=A4,
        title=unmarked(item.title),
        author="",
        invariant=1,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
    )
    frame = Frame(MARGIN, 19 * mm, WIDTH, A4[1] - 36 * mm, 0, 0, 0, 0)
    foot = unmarked(item.subtitle)
    template.addPageTemplates(PageTemplate("page", [frame], onPage=lambda c, d: _foot(c, foot)))
    template.build(story)
    return _with_figures(stream.getvalue(), spots, figures)


def _joined(head: list[Any], block: list[Any]) -> list[Any]:
    """A heading and what follows it, never apart."""
    if isinstance(block[0], Together):
        return [Together([*head, *block[0].parts]), *block[1:]]
    return [CondPageBreak(60 * mm), *head, *block]


def _with_figures(pages: bytes, spots: list[_Spot], figures: Mapping[str, bytes]) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(pages))
    for number, spot in enumerate(spots):
        drawn = PdfReader(io.BytesIO(figures[spot.plot.name])).pages[0]
        _place(writer, spot, drawn, f"/Figure{number}")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _place(writer: PdfWriter, spot: _Spot, drawn: PageObject, name: str) -> None:
    """Puts a page into another as one object, as it is: parsing its content would take seconds."""
    form = StreamObject()
    form.set_data(drawn.get_contents().get_data())  # type: ignore[union-attr]  # it is not empty
    form[NameObject("/Type")] = NameObject("/XObject")
    form[NameObject("/Subtype")] = NameObject("/Form")
    form[NameObject("/BBox")] = drawn.mediabox
    form[NameObject("/Resources")] = drawn["/Resources"].clone(writer)
    call = StreamObject()
    place = f"{spot.scale:.5f} 0 0 {spot.scale:.5f} {spot.x:.3f} {spot.y:.3f}"
    call.set_data(f"q {place} cm {name} Do Q\n".encode())
    page = writer.pages[spot.page]
    resources = page["/Resources"].get_object()
    assert isinstance(resources, DictionaryObject)  # ReportLab gives every page its own
    objects = resources.setdefault(NameObject("/XObject"), DictionaryObject()).get_object()
    objects[NameObject(name)] = writer._add_object(form.flate_encode())
    before = page.raw_get("/Contents")
    parts = before.get_object() if isinstance(before.get_object(), ArrayObject) else [before]
    page[NameObject("/Contents")] = ArrayObject([*parts, writer._add_object(call)])


def _block(block: Block, numbers: dict[Block, int], spots: list[_Spot]) -> list[Any]:
    body = _style(9.5, 12.4, after=5)
    match block:
        case Table():
            return _table(block, numbers[block])
        case Plot():
            number = f"<b>Figure {numbers[block]}.</b> "
            caption = _set(block.caption, _style(8.5, 10.6, after=9), number)
            room = _Room(block, spots)
            return [Together([Spacer(1, 4), room, Spacer(1, 3), caption], "figure")]
        case Paragraph():
            return [_set(block.text, body)]
        case Points():
            return [_set(text, _bulleted(), bulletText="•") for text in block.items]
        case Warned():
            lines = [[_set(text, _style(9.5, 12.2))] for text in block.items]
            edge = [
                ("LINEBEFORE", (0, 0), (0, -1), 3, "#8a3b00"),
                ("BOX", (0, 0), (-1, -1), 0.5, "#8a3b00"),
            ]
            return [Grid(lines, [WIDTH], style=edge), Spacer(1, 7)]
        case Listing():
            return _listing(block)


def _listing(block: Listing) -> list[Any]:
    style = ParagraphStyle("program", fontName="Program", fontSize=6.6, leading=8.6)
    columns = int(WIDTH / pdfmetrics.stringWidth("0", style.fontName, style.fontSize))
    lines, room = [""], columns
    for piece, colour in coloured(block):
        for at, part in enumerate(piece.split("\n")):
            if at:
                lines.append("")
                room = columns
            left = part.expandtabs(2)
            while left:
                if not room:  # what is past the page's edge nobody could read
                    lines.append(_CONTINUED)
                    room = columns - len(_CONTINUED)
                shown, left = left[:room], left[room:]
                room -= len(shown)
                text = escape(shown)
                lines[-1] += f'<font color="{colour}">{text}</font>' if colour else text
    folded = [XPreformatted(line or " ", style) for line in lines]
    caption = [_set(block.caption, _style(8.5, 10.6, after=3))] if block.caption else []
    return [*caption, *folded, Spacer(1, 7)]


def _table(table: Table, number: int) -> list[Any]:
    size, widths = fitting(table)
    left = _style(size, size * 1.22)
    right = _style(size, size * 1.22, alignment=TA_RIGHT)
    styles = [left if side == "l" else right for side in table.sides]
    cells = [
        [_cell(text, style) for text, style in zip(row, styles, strict=True)]
        for row in (table.headings, *table.rows)
    ]
    lines: list[tuple[Any, ...]] = [
        ("LINEABOVE", (0, 0), (-1, 0), 0.9, "#1a1a1a"),
        ("LINEBELOW", (0, 0), (-1, 0), 0.5, "#1a1a1a"),
        ("LINEBELOW", (0, -1), (-1, -1), 0.9, "#1a1a1a"),
        ("VALIGN", (0, 0), (-1, 0), "BOTTOM"),
        ("VALIGN", (0, 1), (-1, -1), "TOP"),
        ("TOPPADDING", (0, 0), (-1, -1), 0.9),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 0.9),
        ("BOTTOMPADDING", (0, 0), (-1, 0), 2.2),
        ("TOPPADDING", (0, 1), (-1, 1), 2.2),
        ("LEFTPADDING", (0, 0), (-1, -1), _PAD),
        ("RIGHTPADDING", (0, 0), (-1, -1), _PAD),
    ]
    lines += [("LINEABOVE", (0, at + 1), (-1, at + 1), 0.3, "#b0b0b0") for at in table.rules if at]
    grid = Broken(cells, widths, repeatRows=1, style=lines, hAlign="CENTER")
    head = _set(table.caption, _style(8.5, 10.6, after=3), f"<b>Table {number}.</b> ")
    note = [_set(table.note, _style(7.8, 9.6, after=8))] if table.note else []
    grid.spaceAfter = 2 if note else 10
    parts = [Spacer(1, 3), head, grid, *note]
    if len(table.rows) <= _WHOLE:
        return [Together(parts, "table")]
    return [CondPageBreak(45 * mm), *parts]


def _cell(text: str, style: ParagraphStyle) -> Set:
    """A cell; a space of the ordinary type keeps smaller type on the others' line."""
    if style.alignment == TA_RIGHT:
        return _set(text, style, "&nbsp;")
    return Set("".join(_pieces(text, style.fontSize * _CODE)) + "&nbsp;", style)


_PAD = 2.6  # points on either side of a cell


def fitting(table: Table) -> tuple[float, list[float]]:
    """The type, in points, and the columns with which a table fits.

    Smaller type comes first, then texts that wrap, then the smallest type and breaking words.
    """
    columns = list(zip(table.headings, *table.rows, strict=True))
    texts = [max(map(_length, column)) for column in columns]
    if sum(_widths(texts, _LARGEST)) > WIDTH:  # headings break before type gets smaller
        texts = [max(_folded(heading), *map(_length, column), 0.0) for heading, *column in columns]
    words = [max(_length(word) for text in column for word in _split(text)) for column in columns]
    sizes = np.arange(_LARGEST, _SMALLEST - 0.01, -0.2)
    for size in sizes[sizes >= _READABLE]:
        widths = _widths(texts, size)
        if sum(widths) <= WIDTH:
            return float(size), widths
    for size in sizes:
        wrapped = _wrapped(_widths(texts, size), table.sides, _widths(words, size))
        if wrapped is not None:
            return float(size), wrapped
    widths = _widths(texts, _SMALLEST)
    return _SMALLEST, [width * WIDTH / sum(widths) for width in widths]


def _folded(heading: str) -> float:
    """How wide a heading is at 1 point when it is broken once, where that makes it narrowest."""
    words = heading.split(" ")
    lines = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))
    return min((max(map(_length, pair)) for pair in lines), default=_length(heading))


def _widths(lengths: list[float], size: float) -> list[float]:
    """Columns for texts of these lengths at 1 point, with their padding."""
    return [length * size + 2 * _PAD + size * 0.3 for length in lengths]


def _wrapped(widths: list[float], sides: str, words: list[float]) -> list[float] | None:
    """Widths that fit, for which texts share what room there is beyond their longest words.

    Returns:
        None where words would have to be broken.
    """
    least = [
        max(word, min(width, WIDTH * _NARROWEST)) if side == "l" else width
        for width, side, word in zip(widths, sides, words, strict=True)
    ]
    room = WIDTH - sum(least)
    if room < 0:
        return None
    wanted = sorted(width - low for width, low in zip(widths, least, strict=True) if width > low)
    limit = 0.0
    for rank, more in enumerate(wanted):  # who wants little leaves the rest to the others
        limit = room / (len(wanted) - rank)
        if more > limit:
            break
        room -= more
    return [
        min(width, low + limit) if width > low else low
        for width, low in zip(widths, least, strict=True)
    ]


def _split(text: str) -> Iterator[str]:
    """The words of a marked text, with their marks."""
    signs = {"plain": "", "code": "`", "strong": "**"}
    for style, piece in marked(text):
        yield from (f"{signs[style]}{word}{signs[style]}" for word in piece.split(" ") if word)
    yield " "


def _length(text: str) -> float:
    """How long a marked text is at 1 point."""
    fonts = {"plain": ("Report", 1.0), "code": ("Program", _CODE), "strong": ("Report-Bold", 1.0)}
    return sum(
        float(pdfmetrics.stringWidth(piece, fonts[style][0], fonts[style][1]))
        for style, piece in marked(text)
    )


_CODE = 0.82  # the fixed type is wide beside the other


def _set(text: str, style: ParagraphStyle, before: str = "", **more: Any) -> Set:
    """Marked text as a paragraph; ``before`` is ReportLab's markup."""
    return Set(before + "".join(_pieces(text, style.fontSize * _CODE)), style, **more)


def _pieces(text: str, code_size: float) -> Iterator[str]:
    for style, piece in marked(text):
        shown = escape(piece, quote=False)
        if style == "code":
            yield f'<font name="Program" size="{code_size:.2f}">{shown}</font>'
        else:
            yield f"<b>{shown}</b>" if style == "strong" else shown


def _style(size: float, leading: float, after: float = 0, **more: Any) -> ParagraphStyle:
    return ParagraphStyle(
        "text",
        fontName="Report",
        fontSize=size,
        leading=leading,
        spaceAfter=after,
        textColor="#1a1a1a",
        **more,
    )


def _heading() -> ParagraphStyle:
    return _style(13, 16, after=5, spaceBefore=10)


def _bulleted() -> ParagraphStyle:
    return _style(9.5, 12.4, after=3, leftIndent=11, bulletIndent=2, bulletFontName="Report")


def _foot(canvas: Any, text: str) -> None:
    canvas.saveState()
    canvas.setFont("Report", 7.5)
    canvas.setFillColor("#555555")
    canvas.drawString(MARGIN, 11 * mm, text)
    canvas.drawRightString(A4[0] - MARGIN, 11 * mm, str(canvas.getPageNumber()))
    canvas.restoreState()


def _register() -> None:
    for family, files in _FAMILIES.items():
        names = (family, f"{family}-Bold", f"{family}-Italic")
        for name, file in zip(names, files, strict=True):
            if name not in pdfmetrics.getRegisteredFontNames():
                pdfmetrics.registerFont(TTFont(name, str(FONTS / file)))
        normal, bold, italic = names
        pdfmetrics.registerFontFamily(
            family, normal=normal, bold=bold, italic=italic, boldItalic=bold
        )
