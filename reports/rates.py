"""What compiled and what was right: by author, and by family. Emulated campaigns have these too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reports.document import Table
from reports.intervals import Figure, share
from reports.text import interval, titled
from reports.view import View
from suite.author import Kind
from suite.drawn import KS
from suite.evaluation import Status
from suite.metrics import BEST, judged, pass_at
from suite.record import Row

BASELINES = "baselines"
_ALONE = (Kind.MODEL, Kind.CHOOSER, Kind.FILE)


def compiled(rows: Iterable[Row]) -> Figure | None:
    """Share of answers that the compiler accepted; None for library calls, which are no texts."""
    texts = [row for row in judged(rows) if row.kind is not Kind.LIBRARY]
    return _share(texts, [row.status.compiled for row in texts])


def right(rows: Iterable[Row]) -> Figure | None:
    """Share of answers that were right."""
    asked = judged(rows)
    return _share(asked, [row.ok for row in asked])


def passed(rows: Iterable[Row], k: int) -> Figure | None:
    """pass@k over the problems with at least k answers; None where there are none."""
    found = pass_at(rows, k)
    return share(list(found.values()), list(found)) if found else None


def outcomes(view: View) -> Table:
    """A row for each model, chooser and file, and one for all baselines and libraries together."""
    ks = [k for k in KS if any(_most(view, name) >= k > 1 for name in view.models)]
    headings = ["operation", "author", "asked", "n/a", "unanswered", "compiled", "right"]
    headings += [f"pass@{k}" for k in ks]
    lines: list[tuple[str, ...]] = []
    runs, rules = [], []
    for label in view.labels:
        rules.append(len(lines))
        for name, rows in _groups(view, label):
            line = [titled(label) if rules[-1] == len(lines) else "", name, f"{len(rows):,}"]
            na = sum(row.status is Status.NOT_APPLICABLE for row in rows)
            line += [f"{na:,}", f"{sum(row.unanswered for row in rows):,}"]
            line += [interval(compiled(rows)), interval(right(rows))]
            model = rows[0].kind is Kind.MODEL
            line += [interval(passed(rows, k)) if model else "" for k in ks]
            lines.append(tuple(line))
            runs.append(view.run(label, name.strip("`")))
    return Table(
        "outcomes",
        "What was asked, what compiled, and what was right, with 95 % intervals over the problems.",
        tuple(headings),
        tuple(lines),
        align="ll",
        runs=tuple(runs),
        rules=tuple(rules),
        note="Shares are over what was asked and answered. What is not applicable (n/a) is left out"
        " for hand-written programs and counts against models and choosers, who could have answered"
        " otherwise. Library calls are not compiled here.",
    )


def failures(view: View) -> Table | None:
    """How answers failed, by author; None where none did."""
    reasons = [s for s in Status if s not in (Status.OK, Status.NOT_APPLICABLE)]
    lines, runs = [], []
    total: Counter[Status] = Counter()
    for label in view.labels:
        for author in view.authors(label):
            found = Counter(row.status for row in judged(view.of(label, author)))
            if author == BEST or not any(found[reason] for reason in reasons):
                continue
            total += found
            lines.append((titled(label), f"`{author}`", found))
            runs.append(view.run(label, author))
    shown = [reason for reason in reasons if total[reason]]
    if not shown:
        return None
    return Table(
        "failures",
        "How answers failed.",
        ("operation", "author", *(reason.value.replace("_", " ") for reason in shown), "right"),
        tuple(
            (label, author, *(str(found[r] or "") for r in shown), str(found[Status.OK]))
            for label, author, found in lines
        ),
        align="ll",
        runs=tuple(runs),
    )


def choosing(view: View) -> list[str]:
    """Who has a table by family: models, choosers and files; the baselines where there is none."""
    alone = [name for name, kind in view.kinds.items() if kind in _ALONE]
    return alone or [BASELINES]


def by_family(view: View, author: str) -> Table:
    """What compiled and what was right by family, for an author or for ``BASELINES`` together."""
    together = author == BASELINES
    mine = [
        row
        for row in view.rows
        if (row.kind is Kind.BASELINE if together else row.author == author)
    ]
    ks = [k for k in KS if not together and _most(view, author) >= k > 1]
    lines = []
    for family in view.families:
        rows = [row for row in mine if row.family == family]
        figures = [compiled(rows), right(rows), *(passed(rows, k) for k in ks)]
        matrices, asked = len({row.matrix for row in rows}), len(judged(rows))
        lines.append((family, str(matrices), f"{asked:,}", *map(interval, figures)))
    whose = "the baselines" if together else f"`{author}`"
    return Table(
        f"right-{author}",
        f"What of the answers of {whose} compiled and was right, by family of matrices, over all"
        " operations, with 95 % intervals over the problems.",
        ("family", "matrices", "answers", "compiled", "right", *(f"pass@{k}" for k in ks)),
        tuple(lines),
    )


def _groups(view: View, label: str) -> list[tuple[str, list[Row]]]:
    found = []
    for kind in _ALONE:
        for author in view.authors(label):
            if view.kinds[author] is kind:
                found.append((f"`{author}`", view.of(label, author)))
    for kind, name in ((Kind.BASELINE, "baseline"), (Kind.LIBRARY, "library call")):
        rows = [row for row in view.everyone(label) if row.kind is kind]
        count = len({row.author for row in rows})
        if count:
            found.append((f"{count} {name}{'' if count == 1 else 's'}", rows))
    return found


def _share(rows: Sequence[Row], values: Sequence[bool]) -> Figure | None:
    return share(values, [row.problem_key for row in rows]) if rows else None


def _most(view: View, author: str) -> int:
    """Answers that the author gave at most to one problem."""
    return max(
        (row.sample + 1 for label in view.labels for row in view.of(label, author)), default=0
    )
