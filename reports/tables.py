"""Tables of a campaign's baselines: by family, by matrix, and when a conversion is repaid."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from reports.document import Table
from reports.text import titled
from suite.author import Kind
from suite.harness.storage import device_format, device_formats
from suite.metrics import (
    BEST,
    bandwidth_fraction,
    bandwidth_gbps,
    best_of,
    judged,
    ratios,
    reference_times,
    speedup,
    time_us,
)
from suite.record import Row

REFERENCE = "cusparse_best"
PLAIN_FORMAT = "csr"


def baselines(rows: Sequence[Row], label: str) -> list[Row]:
    """The rows of hand-tuned programs for one operation."""
    return [row for row in rows if row.label == label and row.kind is Kind.BASELINE]


def by_family(rows: Sequence[Row], label: str) -> Table:
    """The oracle over the baselines against the reference, family by family.

    A row has the geometric means hot and cold, the family's worst matrix, and which baselines are
    fastest there. A matrix on which no baseline is right counts as a failure, as everywhere.
    """
    best = best_of(baselines(rows, label), BEST)
    hot, cold = (reference_times(rows, REFERENCE, cache) for cache in ("hot", "cold"))
    lines = []
    for family in dict.fromkeys(row.family for row in best):
        mine = judged(row for row in best if row.family == family)
        compared = {row.matrix: ratio for row in mine for ratio in ratios([row], hot, "hot")}
        lowest = min(compared, key=compared.__getitem__, default="")
        worst = f"{compared[lowest]:.2f} (`{lowest}`)" if lowest else ""
        fastest = dict.fromkeys(_winner(row) for row in mine if row.ok)
        winners = ", ".join(f"`{name}`" for name in fastest)
        means = [_cell(speedup(mine, hot, "hot")), _cell(speedup(mine, cold, "cold"))]
        lines.append((family, str(len(mine)), *means, worst, winners))
    return Table(
        f"family-{label}",
        f"The best baseline on each matrix against `{REFERENCE}`, by family: {titled(label)}.",
        (
            "family",
            "matrices",
            f"vs `{REFERENCE}`, hot",
            "cold",
            "lowest, hot",
            "fastest baselines",
        ),
        tuple(lines),
        align="lrrrll",
        note="Geometric means; a failure counts as a tenth.",
    )


def by_matrix(rows: Sequence[Row], label: str) -> Table:
    """The fastest baseline on each matrix.

    Args:
        rows: Of a campaign.
        label: The operation.
    """
    mine = {(row.problem_key, row.author): row for row in baselines(rows, label)}
    best = [mine.get((row.problem_key, _winner(row)), row) for row in best_of(mine.values(), BEST)]
    hot = reference_times(rows, REFERENCE, "hot")
    lines: list[tuple[str, ...]] = []
    for row in best:
        if not row.ok or not row.hot_us or not row.cold_us:
            lines.append((row.matrix, f"{row.nnz or 0:,}", "none is right", *[""] * 6))
            continue
        speeds = [bandwidth_gbps(row, "hot") or 0.0, bandwidth_gbps(row, "cold") or 0.0]
        share = "" if (found := bandwidth_fraction(row, "cold")) is None else f"{found:.0%}"
        lines.append(
            (
                row.matrix,
                f"{row.nnz or 0:,}",
                f"`{row.author}`",
                f"{row.hot_us:.2f}",
                f"{row.cold_us:.2f}",
                _cell(next(iter(ratios([row], hot, "hot")), None)),
                *(f"{speed:,.0f}" for speed in speeds),
                share,
            )
        )
    return Table(
        f"matrix-{label}",
        f"The fastest baseline on each matrix: {titled(label)}.",
        (
            "matrix",
            "entries",
            "fastest baseline",
            "µs, hot",
            "cold",
            f"vs `{REFERENCE}`, hot",
            "GB/s, hot",
            "cold",
            "cold, of copy bandwidth",
        ),
        tuple(lines),
        align="lrl",
    )


def repaid(rows: Sequence[Row], label: str) -> dict[str, list[float]]:
    """After how many multiplications each baseline has paid for its own storage.

    Args:
        rows: Of a campaign.
        label: The operation.

    Returns:
        By author, one number for each matrix on which it is right and reads more than plain CSR:
        conversion and preparation over what one multiplication saves against the fastest program
        on plain CSR; infinite where it saves nothing.
    """
    mine = baselines(rows, label)
    plain: dict[str, float] = {}
    for row in mine:
        time = time_us(row, "hot")
        if time and row.format == PLAIN_FORMAT and not row.derived_bytes:
            plain[row.problem_key] = min(time, plain.get(row.problem_key, math.inf))
    found: dict[str, list[float]] = {}
    for row in mine:
        time = time_us(row, "hot")
        if not time or row.problem_key not in plain:
            continue
        if row.format == PLAIN_FORMAT and not row.derived_bytes:
            continue
        saved = plain[row.problem_key] - time
        cost = preparation_us(row)
        found.setdefault(row.author, []).append(cost / saved if saved > 0 else math.inf)
    return found


def preparation_us(row: Row) -> float:
    """Host conversion and device preparation of a program's storage, microseconds."""
    of_host, _ = _made_of(row)
    converted = 0.0 if of_host == PLAIN_FORMAT else (row.conversion_ms or 0.0) * 1e3
    return converted + (row.prepare_us or 0.0)


def repayment(rows: Sequence[Row], label: str) -> Table:
    """``repaid`` as a table, with the median cost."""
    lines = []
    for author, counts in sorted(repaid(rows, label).items()):
        mine = [row for row in baselines(rows, label) if row.author == author and row.ok]
        _, of_device = _made_of(mine[0])
        derives = mine[0].derived_bytes and not of_device
        reads = mine[0].format + (" + derived" if derives else "")
        cost = statistics.median(preparation_us(row) for row in mine)
        finite = [count for count in counts if math.isfinite(count)]
        after = f"{math.ceil(statistics.median(finite)):,}" if finite else "never"
        share = f"{len(finite)} of {len(counts)}"
        lines.append((f"`{author}`", reads, f"{cost:,.0f}", share, after))
    return Table(
        f"repaid-{label}",
        f"After how many multiplications a program has paid for its own storage: {titled(label)}.",
        ("baseline", "reads", "made in, median µs", "saves time on", "repaid after, median there"),
        tuple(lines),
        align="ll",
        note="Conversion and preparation over what a multiplication saves, hot, against the fastest"
        " program on plain CSR. `reads`: the stored format with its parameters; `derived` is what"
        " the program makes of it on the device.",
    )


def _made_of(row: Row) -> tuple[str, str]:
    """The host format of a program, and its device format if it names one."""
    name = row.format.partition(" ")[0]
    return (device_format(name).base, name) if name in device_formats() else (name, "")


def _winner(best: Row) -> str:
    """Whose hot time the oracle's is."""
    return best.detail.partition(";")[0]


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"
