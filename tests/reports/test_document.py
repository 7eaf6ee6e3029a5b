"""One document, four forms: none changes a number, and none lets text become markup."""

import io
import re
from collections.abc import Sequence

import pytest
from matplotlib.figure import Figure as Drawing
from pypdf import PdfReader
from reportlab.pdfbase import pdfmetrics

from reports import html, latex, pdf
from reports.document import (
    Block,
    Document,
    Listing,
    Paragraph,
    Plot,
    Points,
    Section,
    Table,
    Warned,
)
from reports.markdown import markdown
from reports.render import rendered

TABLE = Table(
    "speed",
    "Speeds of `fast_one`.",
    ("author", "x", "none"),
    (("`fast_one`", "1.24 [1.13, 1.35]", ""), ("a & b <i>", "**2.00**", "")),
    runs=("run1", ""),
    rules=(1,),
    note="100 % of 5 µs.",
)


def drawing() -> Drawing:
    figure = Drawing(figsize=(4, 2), layout="constrained")
    axis = figure.subplots()
    axis.plot([1, 2], [3, 4])
    axis.set_title("A title in the figure")
    return figure


def whole() -> Document:
    blocks = [
        Warned(("Stopped early.",)),
        Paragraph("An <b>idea</b>."),
        TABLE,
        Plot("speed", "A plot.", drawing()),
        Points(("One.", "Two.")),
        Listing("code", "By `x`:", "int a = 1; // </pre><script>alert(1)</script>\n", "cuda"),
    ]
    return Document("Title & more", "sub", [Section("First", blocks)])


def test_a_row_must_fit_the_headings() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells under 2"):
        Table("t", "", ("a", "b"), (("1",),))


def test_columns_without_any_value_can_be_left_out() -> None:
    assert TABLE.pruned().headings == ("author", "x")
    assert TABLE.pruned().sides == "lr"


def test_tables_and_plots_are_numbered_each_from_one() -> None:
    numbers = whole().numbers()
    assert sorted(numbers.values()) == [1, 1]


def test_markdown_keeps_the_marks() -> None:
    assert markdown(TABLE)[2] == "| `fast_one` | 1.24 [1.13, 1.35] |  |"


def test_html_needs_nothing_else_and_runs_nothing() -> None:
    page = html.document(whole())
    assert "1.24 [1.13, 1.35]" in page
    assert not re.search(r"""(src|href)=["']?(https?:|//|file:)""", page)
    assert "<script" not in page
    assert "An &lt;b&gt;idea&lt;/b&gt;." in page
    assert "a &amp; b &lt;i&gt;" in page
    assert 'href="#run-run1"' in page
    assert page.count("data:image/svg+xml;base64,") == 1


def test_latex_is_booktabs_and_escapes_what_would_be_commands() -> None:
    text = latex.table(TABLE)
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\label{tab:speed}"):
        assert rule in text
    assert "|" not in text
    assert r"\texttt{fast\_one} & 1.24 [1.13, 1.35] &  \\" in text
    assert r"a \& b \textless{}i\textgreater{}" in text
    assert r"100 \% of 5 \textmu{}s." in text
    assert r"\input{tables/speed.tex}" in latex.document(whole())


def test_a_program_cannot_end_its_own_listing_in_latex() -> None:
    evil = Listing("x", "", "\\end{Verbatim}\\input{/etc/passwd}\n", "cuda")
    text = latex.document(Document("t", "s", [Section("a", [evil])]))
    assert text.count(r"\end{Verbatim}") == 1


def test_a_long_table_runs_over_pages_in_latex() -> None:
    long = Table("t", "c", ("a",), tuple((str(at),) for at in range(60)))
    assert r"\begin{longtable}" in latex.table(long)
    assert r"\begin{longtable}" not in latex.table(TABLE)


def test_the_pdf_has_the_text_and_the_figure_as_text() -> None:
    item = whole()
    figure = next(block for block in item.blocks() if isinstance(block, Plot))
    pages = PdfReader(io.BytesIO(pdf.document(item, {"speed": rendered(figure.drawing, "pdf")})))
    text = "".join(page.extract_text() for page in pages.pages).replace("\xa0", " ")
    assert "1.24 [1.13, 1.35]" in text
    assert "Stopped early." in text
    assert "An <b>idea</b>." in text
    objects = [page["/Resources"].get("/XObject", {}) for page in pages.pages]
    kinds = [item["/Subtype"] for found in objects for item in found.values()]
    assert kinds == ["/Form"]  # the figure, as vectors
    assert [entry.title for entry in pages.outline] == ["1  First"]


def test_no_table_is_wider_than_its_page() -> None:
    words = "word " * 60
    cells = tuple("1,234 [1,000, 2,000]" for _ in range(20))
    for headings, row in ((("a", "b", "c"), (words,) * 3), (tuple("abcdefghijklmnopqrst"), cells)):
        table = Table("t", "c", headings, (row,), align="l" * (len(headings) == 3) * 3)
        pdf.document(Document("t", "s", [Section("a", [table])]), {})
        _, widths = pdf.fitting(table)
        assert sum(widths) <= pdf.WIDTH + 0.01


def test_no_line_of_a_listing_is_cut_at_the_edge_of_its_page() -> None:
    (text,) = pages([Listing("x", "", f"pytest {'x' * 400}\nend\n", "")])
    lines = text.splitlines()
    assert text.count("x") == 400
    assert pdfmetrics.stringWidth(max(lines, key=len), "Program", 6.6) <= pdf.WIDTH
    assert "end" in lines


def test_a_table_that_is_broken_leaves_no_row_alone() -> None:
    for count in range(51, 59):
        rows = tuple((f"row{at}", "1") for at in range(count))
        texts = pages([Table("t", "c", ("a", "b"), rows)])
        left = len(re.findall(r"row\d+", texts[-1]))
        assert len(re.findall(r"row\d+", "".join(texts))) == count
        assert len(texts) == 1 or left >= 4


def test_a_figure_fills_the_page_that_a_table_has_no_room_on() -> None:
    tall = tuple((str(at),) for at in range(16))
    blocks = [
        *(Table(f"t{at}", f"Table-{at}", ("a",), tall) for at in range(3)),
        Plot("p1", "Plot-1", drawing()),
        Plot("p2", "Plot-2", drawing()),
    ]
    first, second = pages(blocks)
    assert [word for word in ("Table-0", "Table-1", "Plot-1", "Table-2") if word in first] == [
        "Table-0",
        "Table-1",
        "Plot-1",
    ]
    assert second.index("Table-2") < second.index("Plot-2")


def pages(blocks: Sequence[Block]) -> list[str]:
    """The text of each page of a PDF of one section."""
    item = Document("t", "s", [Section("a", blocks)])
    plots = {b.name: rendered(b.drawing, "pdf") for b in blocks if isinstance(b, Plot)}
    return [page.extract_text() for page in PdfReader(io.BytesIO(pdf.document(item, plots))).pages]


def test_the_same_drawing_is_the_same_bytes() -> None:
    assert rendered(drawing(), "svg") == rendered(drawing(), "svg")
    assert rendered(drawing(), "pdf") == rendered(drawing(), "pdf")
