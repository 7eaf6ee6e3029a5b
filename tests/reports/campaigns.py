"""Small campaigns to report on: a GPU's with and without models, an emulator's, a cut-off one."""

from dataclasses import replace

from reports.source import Campaign
from suite.author import Kind
from suite.evaluation import Status
from suite.record import Row
from tests.suite.rows import failed, right, unanswered

MATRICES = tuple(f"m{at}" for at in range(8))
FACTS = {
    "commit": "0123456789abcdef",
    "started": "2026-12-01T08:00:00+00:00",
    "command": ["pytest", "suite", "--suite-matrices", "a b"],
    "device": {"name": "NVIDIA H200", "arch": "sm_90", "details": {"driver": "580.1"}},
    "options": {"samples": "4"},
}


def campaign(rows: list[Row], name: str = "c1", **more: object) -> Campaign:
    runs = {(row.label, row.author): f"run-{row.label}-{row.author}" for row in rows}
    return Campaign(name, "parent", rows, FACTS, runs=runs, **more)  # type: ignore[arg-type]


def on_gpu() -> list[Row]:
    """Two libraries and two baselines; ``fast`` is twice, ``slow`` half as fast as the best."""
    times = (("cusparse", 40.0), ("cusparse_best", 20.0), ("fast", 10.0), ("slow", 40.0))
    return [
        replace(
            right(author, us * (1 + at / 10), matrix, _kind(author)),
            family=("band", "graph")[at % 2],
            device="NVIDIA H200",
            nnz=1000,
            rows=100,
            cols=100,
            flops=2000,
            hot_low_us=us * (1 + at / 10) * 0.999,
            hot_high_us=us * (1 + at / 10) * 1.001,
            hot_settled=True,
            cold_settled=True,
            program_digest=f"of-{author}",
            format="csr",
            registers=32,
            copy_gbps=4000.0,
        )
        for author, us in times
        for at, matrix in enumerate(MATRICES)
    ]


def with_models() -> list[Row]:
    """Two variants of four answers each: ``sparserl`` is right thrice, ``sft_only`` once."""
    base = {row.matrix: row for row in on_gpu() if row.author == "cusparse_best"}
    found = on_gpu()
    for name, good, speed in (("sparserl", 3, 1.5), ("sft_only", 1, 1.2)):
        for row in base.values():
            for sample in range(4):
                mine = replace(row, author=name, kind=Kind.MODEL, sample=sample, answers=4)
                if sample < good:
                    us = (row.hot_us or 0) / speed
                    found.append(replace(mine, hot_us=us, cold_us=us, program_digest="written"))
                else:
                    bad = failed(Status.WRONG_RESULT, row.matrix, Kind.MODEL, name)
                    found.append(replace(bad, sample=sample, answers=4, family=row.family))
    return found


def emulated() -> list[Row]:
    """What an emulator leaves: verdicts, and times that mean nothing."""
    nothing = {"hot_us": None, "cold_us": None, "hot_low_us": None, "hot_high_us": None}
    return [
        replace(row, **nothing, emulated_us=777.0, device="emulator", copy_gbps=None)
        for row in on_gpu()
        if row.kind is Kind.BASELINE
    ]


def cut_off() -> list[Row]:
    """Half of the matrices were never measured."""
    rows = on_gpu()
    return [
        replace(unanswered(row.matrix, row.author), kind=row.kind, family=row.family)
        if row.matrix > "m3"
        else row
        for row in rows
    ]


def _kind(author: str) -> Kind:
    return Kind.LIBRARY if author.startswith("cusparse") else Kind.BASELINE
