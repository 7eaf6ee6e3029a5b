"""Two campaigns side by side: two commits, or two GPUs. Noise is not called a difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.claims import ENOUGH
from reports.document import Block, Document, Paragraph, Plot, Points, Section, Table, Warned
from reports.intervals import Figure, geometric
from reports.noise import THRESHOLDS, Verdict, counts, judge
from reports.setting import environment, gaps
from reports.source import Campaign
from reports.text import interval, microseconds, number, percent, quoted, several, titled
from reports.theme import FAINT, INK, legend_below, panels, styled
from reports.view import MAIN, View
from suite.metrics import BEST, CACHES, REFERENCES, Cache, time_us
from suite.record import Row

NAMED = 4  # authors that a sentence names
MOST = 15  # single answers that a table of changes lists in each direction
_COLOURS = {
    Verdict.FASTER: ("#0072b2", "^"),
    Verdict.SLOWER: ("#d55e00", "v"),
    Verdict.UNCLEAR: ("#009e73", "x"),
    Verdict.SAME: ("#9a9a9a", "."),
}


@dataclass(frozen=True)
class Change:
    """One answer in both campaigns.

    Attributes:
        before: In the first.
        after: In the second.
        speed: Of the second over the first: time before over time after.
        verdict: Whether that is more than noise.
    """

    before: Row
    after: Row
    speed: float
    verdict: Verdict


def changes(first: Sequence[Row], second: Sequence[Row], cache: Cache) -> list[Change]:
    """Every answer that has a time in both, in the first one's order."""
    later = {row.key: row for row in second}
    found = []
    for row in first:
        other = later.get(row.key)
        verdict = judge(row, other, cache) if other else None
        if other and verdict:
            speed = (time_us(row, cache) or 0.0) / (time_us(other, cache) or 1.0)
            found.append(Change(row, other, speed, verdict))
    return found


def comparison(first: Campaign, second: Campaign) -> Document:
    """The report on how the second campaign differs from the first."""
    a, b = View(first), View(second)
    labels = [label for label in a.labels if label in b.labels]
    timed = a.timed and b.timed
    with styled():
        sections = [_summary(a, b, labels)]
        if timed:
            sections.append(_speed(a, b, labels))
        sections.append(_verdicts(a, b))
        sections.append(_where(a, b))
    return Document(
        f"Campaigns {first.name} and {second.name}",
        f"A: {_about(first)}; B: {_about(second)}",
        sections,
    )


def _summary(a: View, b: View, labels: list[str]) -> Section:
    blocks: list[Block] = []
    warned = [
        f"{name}: {gap}" for name, view in (("A", a), ("B", b)) for gap in gaps(view) if "**" in gap
    ]
    devices = [str((v.campaign.facts.get("device") or {}).get("name", "?")) for v in (a, b)]
    if devices[0] != devices[1]:
        warned.append(
            f"The devices differ ({devices[0]} and {devices[1]}): ratios of times compare the"
            " devices as well as the programs. Speedups over each device's own reference are below."
        )
    if not (a.timed and b.timed):
        warned.append("Not both campaigns have device times: only verdicts are compared.")
    changed = _changed_matrices(a, b)
    if changed:
        warned.append(
            f"{several(len(changed), 'matrix', 'matrices')} of one name differ in their contents"
            f" and are compared all the same: {', '.join(f'`{name}`' for name in changed[:8])}."
        )
    blocks += [Warned(tuple(warned))] if warned else []
    keys = [{row.key for row in view.rows} for view in (a, b)]
    blocks.append(
        Paragraph(
            f"{several(len(keys[0] & keys[1]), 'answer')} are in both, {len(keys[0] - keys[1]):,}"
            f" only in A, {len(keys[1] - keys[0]):,} only in B. A time differs where it changed by"
            f" more than {percent(THRESHOLDS.change)} ({percent(THRESHOLDS.short_change)} below"
            f" {THRESHOLDS.short_us:.0f} µs, where two identical campaigns differ as much) and the"
            " 95 % intervals do not meet; where the GPU was disturbed or an interval is wide it is"
            " unclear."
        )
    )
    if a.timed and b.timed:
        blocks.append(Points(tuple(s for label in labels for s in _claims(a, b, label))))
    return Section("Summary", blocks)


def _claims(a: View, b: View, label: str) -> list[str]:
    found = changes(a.everyone(label), b.everyone(label), "hot")
    if not found:
        return []
    figure = _mean(found)
    seen = counts(change.verdict for change in found)
    matrices = len({change.before.matrix for change in found})
    name = f"{titled(label)}, hot, all authors"
    value = f"{quoted(figure)} over {several(len(found), 'answer')}"
    if matrices < ENOUGH:
        text = (
            f"{name}: the speed of B over A is {number(figure.value)} on only {matrices} matrices."
        )
    elif max(figure.value, 1 / figure.value) - 1 <= THRESHOLDS.change:
        text = f"{name}: no difference beyond noise in the mean; the speed of B over A is {value}."
    elif figure.low > 1 or figure.high < 1:
        way = "faster" if figure.low > 1 else "slower"
        text = f"{name}: B is {way}; its speed over that of A is {value}."
    else:
        text = f"{name}: the campaigns cannot be told apart in the mean; B over A is {value}."
    return [
        text,
        f"{titled(label)}, hot: of single answers {seen[Verdict.FASTER]:,} became faster,"
        f" {seen[Verdict.SLOWER]:,} slower, {seen[Verdict.SAME]:,} stayed the same,"
        f" {seen[Verdict.UNCLEAR]:,} are unclear.{_moved(found)}",
    ]


def _moved(found: Sequence[Change]) -> str:
    """Which authors a mean over all hides: those that changed by more than noise."""
    of: dict[str, list[Change]] = {}
    for change in found:
        of.setdefault(change.before.author, []).append(change)
    means = {author: _mean(mine) for author, mine in of.items()}
    far = {
        author: figure
        for author, figure in means.items()
        if max(figure.low, 1 / figure.high) > 1 + THRESHOLDS.change
    }
    ranked = sorted(far, key=lambda author: -abs(math.log(far[author].value)))
    if not ranked:
        return ""
    named = "; ".join(f"`{author}`, {quoted(far[author])}" for author in ranked[:NAMED])
    more = f"; and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    return f" The mean speed of B over A is beyond noise for {named}{more}."


def _speed(a: View, b: View, labels: list[str]) -> Section:
    blocks: list[Block] = [_plot(a, b, labels)]
    for label in labels:
        blocks.append(_by_author(a, b, label))
    blocks.append(_against_reference(a, b, labels))
    extremes = _extremes(a, b, labels)
    if extremes.rows:
        blocks.append(extremes)
    else:
        blocks.append(Paragraph("No single answer's time changed beyond noise."))
    return Section("How fast", blocks)


def _by_author(a: View, b: View, label: str) -> Table:
    lines, runs = [], []
    for author in [n for n in a.authors(label) if b.of(label, n)]:
        of = {cache: changes(a.of(label, author), b.of(label, author), cache) for cache in CACHES}
        if not of["hot"]:
            continue
        seen = counts(change.verdict for change in of["hot"])
        lines.append(
            (
                f"`{author}`",
                str(len(of["hot"])),
                *(interval(_mean(found)) if found else "" for found in of.values()),
                *(str(seen[verdict]) for verdict in Verdict),
            )
        )
        runs.append(b.run(label, author))
    return Table(
        f"change-{label}",
        f"Speed of B over A by author: {titled(label)}.",
        ("author", "answers", "B over A, hot", "cold", *(verdict.value for verdict in Verdict)),
        tuple(lines),
        note="Geometric means with 95 % intervals over the matrices; above 1 B is faster. Counts"
        f" are of single answers, hot. `{BEST}` compares the fastest baseline of each campaign.",
    )


def _against_reference(a: View, b: View, labels: list[str]) -> Table:
    lines: list[tuple[str, ...]] = []
    rules = []
    for label in labels:
        rules.append(len(lines))
        for author in a.contenders(label):
            if author in REFERENCES or not b.of(label, author):
                continue
            both = [view.by_problem(label, author) for view in (a, b)]
            common = [matrix for matrix in both[0] if matrix in both[1]]
            if not common:
                continue
            means = [geometric([of[m] for m in common], common) for of in both]
            ratio = geometric([both[1][m] / both[0][m] for m in common], common)
            first = titled(label) if rules[-1] == len(lines) else ""
            lines.append((first, f"`{author}`", str(len(common)), *map(interval, (*means, ratio))))
    return Table(
        "change-speedups",
        f"Speedups over `{MAIN}` of the same campaign, hot, on the matrices of both.",
        ("operation", "author", "matrices", "A", "B", "B over A, paired"),
        tuple(lines),
        align="ll",
        rules=tuple(rules),
        note="Each campaign against its own reference, so that this holds across devices too.",
    )


def _extremes(a: View, b: View, labels: list[str]) -> Table:
    found = [c for label in labels for c in changes(a.everyone(label), b.everyone(label), "hot")]
    slower = sorted((c for c in found if c.verdict is Verdict.SLOWER), key=lambda c: c.speed)
    faster = sorted((c for c in found if c.verdict is Verdict.FASTER), key=lambda c: -c.speed)
    shown = [*slower[:MOST], *faster[:MOST]]
    return Table(
        "change-extremes",
        f"The largest changes of single answers, hot: {len(slower):,} became slower,"
        f" {len(faster):,} faster.",
        ("operation", "author", "matrix", "A, µs", "B, µs", "B over A", ""),
        tuple(
            (
                titled(c.before.label),
                f"`{c.before.author}`",
                f"`{c.before.matrix}`",
                microseconds(c.before.hot_us),
                microseconds(c.after.hot_us),
                number(c.speed),
                c.verdict.value,
            )
            for c in shown
        ),
        align="lllrrrl",
        rules=(len(slower[:MOST]),) if slower and faster else (),
    )


def _verdicts(a: View, b: View) -> Section:
    later = {row.key: row for row in b.rows if not row.unanswered}
    moved = [
        (row, later[row.key])
        for row in a.rows
        if not row.unanswered and row.key in later and row.status is not later[row.key].status
    ]
    if not moved:
        return Section(
            "What was right", [Paragraph("Every answer that is in both has one verdict.")]
        )
    table = Table(
        "change-verdicts",
        f"Answers whose verdict changed: {len(moved):,}"
        f"{', of which the first 40 are shown' if len(moved) > 40 else ''}.",
        ("operation", "author", "matrix", "A", "B", "what B says"),
        tuple(
            (
                titled(x.label),
                f"`{x.author}`",
                f"`{x.matrix}`",
                x.status.value.replace("_", " "),
                y.status.value.replace("_", " "),
                y.error[:90].replace("`", "'"),
            )
            for x, y in moved[:40]
        ),
        align="llllll",
    )
    return Section("What was right", [table])


def _where(a: View, b: View) -> Section:
    of = [{row[0]: row[1] for row in environment(view.campaign).rows} for view in (a, b)]
    names = list(dict.fromkeys([*of[0], *of[1]]))
    lines = tuple(
        (
            f"**{name}**" if of[0].get(name) != of[1].get(name) else name,
            of[0].get(name, ""),
            of[1].get(name, ""),
        )
        for name in names
    )
    table = Table(
        "environment",
        "Where and with what they were measured; what differs is bold.",
        ("what", "A", "B"),
        lines,
        align="lll",
    )
    rest = [f"{name}: {gap}" for name, view in (("A", a), ("B", b)) for gap in gaps(view)]
    return Section(
        "With what, and what is missing", [table, *([Points(tuple(rest))] if rest else [])]
    )


def _plot(a: View, b: View, labels: list[str]) -> Plot:
    drawing, axes = panels(len(labels), 2.4, sharey=True)
    for axis, label in zip(axes, labels, strict=True):
        found = sorted(changes(a.everyone(label), b.everyone(label), "hot"), key=lambda c: c.speed)
        wide = 1 + THRESHOLDS.change
        axis.axhspan(1 / wide, wide, color=FAINT, alpha=0.5, linewidth=0)
        axis.axhline(1, color=INK, linewidth=0.7)
        for verdict, (colour, marker) in _COLOURS.items():
            at = [(x, c.speed) for x, c in enumerate(found, 1) if c.verdict is verdict]
            x, y = np.array(at).T if at else (np.array([]), np.array([]))
            axis.plot(x, y, marker, color=colour, markersize=3, label=verdict.value, alpha=0.8)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
        axis.tick_params(axis="y", which="minor", labelsize=6)
        axis.set_title(titled(label))
        axis.set_xlabel("answers, sorted")
    axes[0].set_ylabel("speed of B over A, hot")
    legend_below(drawing, axes)
    return Plot(
        "change",
        "Every answer that was timed in both campaigns. The band is"
        f" ±{percent(THRESHOLDS.change)}.",
        drawing,
    )


def _mean(found: Sequence[Change]) -> Figure:
    return geometric([c.speed for c in found], [c.before.problem_key for c in found])


def _changed_matrices(a: View, b: View) -> list[str]:
    return [
        name
        for name, row in a.matrices.items()
        if name in b.matrices
        and row.matrix_digest
        and b.matrices[name].matrix_digest
        and row.matrix_digest != b.matrices[name].matrix_digest
    ]


def _about(campaign: Campaign) -> str:
    device = (campaign.facts.get("device") or {}).get("name", "no device")
    return f"{device}, commit {str(campaign.facts.get('commit', 'unknown'))[:12]}"
