"""What a person reads at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from suite.author import Kind
from suite.harness.device import DeviceFacts
from suite.journal import Record
from suite.metrics import BEST, best_of, collect, drawn_answers, oracle
from suite.record import Row

_HEADINGS = ("asked", "n/a", "compiled", "correct")
_GPU_HEADINGS = ("vs cusparse", "vs best", "vs best, cold", "fastest")
_GPU_METRICS = (  # a speedup, and how many problems it is over
    ("speedup_vs_cusparse.hot", "speedup_vs_cusparse_problems"),
    ("speedup_vs_cusparse_best.hot", "speedup_vs_cusparse_best_problems"),
    ("speedup_vs_cusparse_best.cold", "speedup_vs_cusparse_best_problems"),
)
_NO_GPU = (
    "Emulated: this says what is right, not what is fast. With an NVIDIA GPU the same command adds"
    " device times, bandwidth and speedups over cuSPARSE."
)


def closing(record: Record, device: DeviceFacts | None, where: str) -> list[str]:
    """The table, what the device and the gaps mean for it, and where the results are."""
    lines = [*table(record.rows), ""]
    if device is not None and device.kind != "cuda":
        lines.append(_NO_GPU)
    disturbed = sum(row.disturbed != "" for row in record.rows)
    if disturbed:
        lines.append(
            f"{disturbed} of {len(record.rows)} were measured on a disturbed GPU, also when"
            " repeated: see `disturbed` in their rows"
        )
    if record.unanswered:
        lines.append(f"{record.unanswered} of {len(record.rows)} were not measured")
    return [*lines, f"Results: {where}"]


def table(rows: Sequence[Row]) -> list[str]:
    """The closing table, a block for each operation, as lines without a trailing blank."""
    lines: list[str] = []
    for cells in blocks(rows):
        lines += ["", *_aligned(cells)]
    return lines[1:]


def markdown(rows: Sequence[Row], everybody: bool = True) -> str:
    """The same as Markdown.

    Args:
        rows: Of a campaign.
        everybody: Baselines too, rather than only the oracle over them and all others.
    """
    lines: list[str] = []
    baselines = {row.author for row in rows if row.kind is Kind.BASELINE}
    for head, *rest in blocks(rows):
        kept = [line for line in rest if everybody or line[0] not in baselines]
        rule = ["---", *["---:"] * (len(head) - 1)]
        named = [[f"`{line[0]}`", *line[1:]] for line in kept]
        table = (["author", *head[1:]], rule, *named)
        lines += ["", f"## {head[0]}", "", *(f"| {' | '.join(line)} |" for line in table)]
    return "\n".join(lines[1:]) + "\n"


def blocks(rows: Sequence[Row]) -> Iterator[list[list[str]]]:
    """For each operation the cells: headings, then a line for each author."""
    gpu = any(row.hot_us is not None for row in rows)
    gaps = any(row.unanswered for row in rows)
    headings = (*_HEADINGS, *(("unanswered",) if gaps else ()), *(_GPU_HEADINGS if gpu else ()))
    for label in dict.fromkeys(row.label for row in rows):
        everyone = [row for row in rows if row.label == label]
        problems = len({row.problem_key for row in everyone})
        title = f"{label}, {problems} problem{'' if problems == 1 else 's'}"
        cells = [[title, *headings]]
        authors = {
            author: [r for r in everyone if r.author == author] for author in _order(everyone)
        }
        for author, mine in authors.items():
            cells.append([author, *_line(collect(mine, everyone), gpu, gaps)])
            most = max(map(len, drawn_answers(mine)), default=1)
            if gpu and most > 1:
                best = collect(best_of(mine, author), everyone)
                cells.append([f"{author}, best of {most}", *_line(best, gpu, gaps)])
        if known := oracle(everyone):
            cells.append([BEST, *_line(collect(known, everyone), gpu, gaps)])
        yield cells


def described(metrics: Mapping[str, float]) -> str:
    """An author's metrics in one sentence."""
    asked = metrics["asked"] - metrics["not_applicable"]
    said = f"{metrics['correct']:.0f} of {asked:.0f} answers that applied were right"
    speeds = {
        "cusparse_best": "speedup_vs_cusparse_best.hot",
        "cusparse": "speedup_vs_cusparse.hot",
    }
    known = [f"{metrics[m]:.2f} of `{name}`" for name, m in speeds.items() if m in metrics]
    return f"{said}; speed, hot: {', '.join(known)}." if known else f"{said}."


def _order(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.author for row in rows))


def _line(metrics: Mapping[str, float], gpu: bool, gaps: bool) -> list[str]:
    cells = [
        f"{metrics['asked']:.0f}",
        f"{metrics['not_applicable']:.0f}",
        _percent(metrics.get("compile_rate")),
        _percent(metrics.get("correct_rate")),
    ]
    if gaps:
        cells.append(f"{metrics['unanswered']:.0f}")
    if gpu:
        cells += [_speedup(metrics, *names) for names in _GPU_METRICS]
        cells.append(f"{metrics['fastest.hot']:.0f}" if "fastest.hot" in metrics else "-")
    return cells


def _speedup(metrics: Mapping[str, float], name: str, problems: str) -> str:
    if name not in metrics:
        return "-"
    n = metrics["problems"]
    k = metrics.get(problems, n)
    return f"{metrics[name]:.2f}x" + (f" ({k:.0f} of {n:.0f})" if k < n else "")


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        first, *rest = row
        padded = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *padded]))
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _percent(share: float | None) -> str:
    """Whole per cent, rounded so that only all reads as 100 % and only none as 0 %."""
    if share is None:
        return "-"
    rounded = round(share * 100)
    if rounded == 100 and share < 1:
        return "99%"
    return "1%" if rounded == 0 and share > 0 else f"{rounded}%"
