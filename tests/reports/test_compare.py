"""Two campaigns are compared answer by answer, and noise is not called a difference."""

from dataclasses import replace

from reports.compare import comparison
from reports.document import Document, Paragraph, Points, Table, Warned
from reports.source import Campaign
from suite.evaluation import Status
from suite.record import Row
from tests.reports.campaigns import FACTS, campaign, emulated, on_gpu


def scaled(rows: list[Row], by: float, author: str = "") -> list[Row]:
    names = ("hot_us", "cold_us", "hot_low_us", "hot_high_us")
    return [
        replace(row, **{name: (getattr(row, name) or 0) * by for name in names})
        if author in ("", row.author)
        else row
        for row in rows
    ]


def table(document: Document, name: str) -> dict[str, tuple[str, ...]]:
    (found,) = (b for b in document.blocks() if isinstance(b, Table) and b.name == name)
    return {row[0] or row[1]: row for row in found.rows}


def said(document: Document) -> str:
    blocks = [b for b in document.blocks() if isinstance(b, Points | Warned)]
    texts = [text for block in blocks for text in block.items]
    return "\n".join([*texts, *(b.text for b in document.blocks() if isinstance(b, Paragraph))])


def compared(second: list[Row], **more: object) -> Document:
    return comparison(campaign(on_gpu()), campaign(second, "c2", **more))


def test_the_same_times_are_the_same() -> None:
    document = compared(scaled(on_gpu(), 1.01))
    assert "no difference beyond noise" in said(document)
    assert "No single answer's time changed beyond noise." in said(document)
    assert "beyond noise for" not in said(document)


def test_an_author_that_became_slower_is_found_with_its_matrices() -> None:
    document = compared(scaled(on_gpu(), 1.25, "fast"))
    line = table(document, "change-spmv")["`fast`"]
    assert line[2] == "0.80 [0.80, 0.80]"
    assert "beyond noise for `fast`, 0.80 (0.80 to 0.80)." in said(document)
    assert line[4:] == ("0", "0", "8", "0")  # faster, same, slower, unclear
    assert table(document, "change-spmv")["`slow`"][4:] == ("0", "8", "0", "0")
    assert "became slower" in next(
        b.caption for b in document.blocks() if isinstance(b, Table) and "extremes" in b.name
    )


def test_a_faster_device_leaves_speedups_over_its_own_reference_alone() -> None:
    second = Campaign(
        "c2", "r", scaled(on_gpu(), 0.5), {**FACTS, "device": {"name": "Other GPU"}}, runs={}
    )
    document = comparison(campaign(on_gpu()), second)
    assert "The devices differ (NVIDIA H200 and Other GPU)" in said(document)
    assert table(document, "change-spmv")["`slow`"][2].startswith("2.00")
    (found,) = (
        b for b in document.blocks() if isinstance(b, Table) and b.name == "change-speedups"
    )
    assert {row[-1] for row in found.rows} == {"1.00 [1.00, 1.00]"}


def test_a_verdict_that_changed_is_listed() -> None:
    second = [
        replace(row, status=Status.WRONG_RESULT, error="off by one", hot_us=None, cold_us=None)
        if (row.author, row.matrix) == ("fast", "m0")
        else row
        for row in on_gpu()
    ]
    (line,) = table(compared(second), "change-verdicts").values()
    assert line[1:] == ("`fast`", "`m0`", "ok", "wrong result", "off by one")


def test_emulated_times_are_not_compared() -> None:
    document = compared(emulated())
    assert "only verdicts are compared" in said(document)
    assert "777" not in str([b.rows for b in document.blocks() if isinstance(b, Table)])
    assert not any("change-spmv" in getattr(b, "name", "") for b in document.blocks())
