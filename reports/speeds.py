"""Tables of speedups. Only device times are in them; a campaign without any has none of these."""

from __future__ import annotations

import numpy as np

from reports.document import Table
from reports.figures import best_of
from reports.intervals import share
from reports.noise import Verdict, counts, judge_ratio
from reports.text import interval, number, percent, titled
from reports.view import MAIN, View
from suite.author import Kind
from suite.metrics import BEST, REFERENCES, Cache, draws

PS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 4.0)  # of fast_p
_FAILURE_NOTE = "A failure counts as a tenth of the reference."


def headline(view: View) -> Table:
    """Who a report is about, the oracle and the best single baseline, against both references."""
    lines: list[tuple[str, ...]] = []
    runs, rules = [], []
    for label in view.labels:
        rules.append(len(lines))
        models = [n for n in view.contenders(label) if n not in REFERENCES and n != BEST]
        chosen = [
            *(n for n in models if n not in view.single(label)),
            BEST,
            *view.single(label)[:1],
        ]
        for author in (name for name in chosen if view.of(label, name)):
            found = [
                view.speedup(label, author, reference, cache) for reference, cache in _COMPARISONS
            ]
            if not any(found):
                continue
            first = titled(label) if rules[-1] == len(lines) else ""
            over = len(view.by_problem(label, author)) or len(
                view.by_problem(label, author, "cusparse")
            )
            lines.append((first, _named(author), str(over), *map(interval, found)))
            runs.append(view.run(label, author))
    return Table(
        "headline",
        "Speedups: geometric means with 95 % bootstrap intervals over the matrices.",
        (
            "operation",
            "author",
            "matrices",
            "vs `cusparse`, hot",
            "vs `cusparse_best`, hot",
            "vs `cusparse_best`, cold",
        ),
        tuple(lines),
        align="ll",
        runs=tuple(runs),
        rules=tuple(rules),
        note=f"{_REFERENCES}{_chooses(view)} `{BEST}` is an oracle: the fastest baseline of each"
        " matrix, known by hindsight. Below it is the best single baseline of those that apply to"
        f" the most matrices. {_FAILURE_NOTE}",
    )


_REFERENCES = (
    "Above 1 is faster. `cusparse` is the library as it comes, `cusparse_best` the fastest of all"
    " that it offers on that matrix. Hot: back to back. Cold: with a flushed L2."
)


def _chooses(view: View) -> str:
    names = [f"`{name}`" for name, kind in view.kinds.items() if kind is Kind.CHOOSER]
    return "".join(f" {n} picks a baseline from a matrix's structure, unmeasured." for n in names)


_COMPARISONS: tuple[tuple[str, Cache], ...] = (
    ("cusparse", "hot"),
    ("cusparse_best", "hot"),
    ("cusparse_best", "cold"),
)


def spread(view: View, label: str, authors: list[str], name: str) -> Table:
    """How the speedups of these authors lie: means, quartiles, wins and losses, the lowest."""
    lines, runs = [], []
    for author in authors:
        against = "cusparse" if author == MAIN else MAIN
        figure = view.speedup(label, author, against)
        if figure is None:
            continue
        ratios = view.by_problem(label, author, against)
        quartiles = np.quantile(list(ratios.values()), (0.25, 0.5, 0.75))
        times = view.reference(label, against).times
        short = {key.split("/")[1]: us for key, us in times.items()}
        found = counts(judge_ratio(r, short.get(m, np.inf)) for m, r in ratios.items())
        lowest = min(ratios, key=ratios.__getitem__)
        lines.append(
            (
                _named(author),
                f"{len(ratios)}",
                interval(view.speedup(label, author, "cusparse")),
                interval(view.speedup(label, author, MAIN)),
                interval(view.speedup(label, author, MAIN, "cold")),
                " / ".join(number(float(q)) for q in quartiles),
                f"{found[Verdict.FASTER]} / {found[Verdict.SAME]} / {found[Verdict.SLOWER]}",
                f"{number(ratios[lowest])} (`{lowest}`)",
            )
        )
        runs.append(view.run(label, author))
    return Table(
        name,
        f"Speedups by author: {titled(label)}.",
        (
            "author",
            "matrices",
            "vs `cusparse`, hot",
            "vs `cusparse_best`, hot",
            "cold",
            "quartiles",
            "faster / same / slower",
            "lowest",
        ),
        tuple(lines),
        align="lrrrrrrl",
        runs=tuple(runs),
        note="Quartiles, counts and the lowest are over matrices and against `cusparse_best`, hot;"
        " for `cusparse_best` itself against `cusparse`. `same`: within 3 % (6 % below 10 µs),"
        f" about as far as times repeat. {_FAILURE_NOTE} Only where an author applies.",
    )


def everyone(view: View, label: str) -> Table:
    """``spread`` of every author, the fastest first."""
    means = {name: view.speedup(label, name) for name in view.authors(label)}
    known = {name: figure for name, figure in means.items() if figure}
    ranked = sorted(known, key=lambda name: (-_coverage(view, label, name), -known[name].value))
    return spread(view, label, ranked, f"authors-{label}")


def drawn(view: View) -> Table:
    """What the best of several answers of a model is worth, beside the mean of all."""
    lines: list[tuple[str, ...]] = []
    runs, rules = [], []
    asked = [(label, name) for label in view.labels for name in view.models]
    ks = max((draws(view.of(*at)) for at in asked), key=len, default=[])
    for label in view.labels:
        rules.append(len(lines))
        for author in (name for name in view.models if draws(view.of(label, name))):
            for against in REFERENCES:
                figure = view.speedup(label, author, against)
                if figure is None:
                    continue
                first = titled(label) if rules[-1] == len(lines) else ""
                named = _named(author) if against == REFERENCES[0] else ""
                mine, reference = view.of(label, author), view.reference(label, against)
                best = [best_of(mine, k, reference, "hot") for k in ks]
                lines.append((first, named, f"`{against}`", *map(interval, (figure, *best))))
                runs.append(view.run(label, author))
    return Table(
        "drawn",
        "Speedups of models that wrote several programs for a problem, hot.",
        ("operation", "author", "against", "mean", *(f"best of {k}" for k in ks)),
        tuple(lines),
        align="lll",
        runs=tuple(runs),
        rules=tuple(rules),
        note="Best of k: the fastest of k programs drawn from those of a problem, in the geometric"
        f" mean over all draws and then over matrices. {_FAILURE_NOTE}",
    )


def fast_p(view: View) -> Table:
    """Shares of answers that are right and at least p times as fast as the reference."""
    lines: list[tuple[str, ...]] = []
    runs, rules = [], []
    for label in view.labels:
        rules.append(len(lines))
        for author in view.contenders(label):
            found = view.compared(label, author)
            if not found or author == MAIN:
                continue
            problems = [row.problem_key for row, _ in found]
            line = [titled(label) if rules[-1] == len(lines) else "", _named(author)]
            for p in PS:
                figure = share([ratio >= p for _, ratio in found], problems)
                line.append(interval(figure) if p == 1 else percent(figure.value))
            lines.append(tuple(line))
            runs.append(view.run(label, author))
    return Table(
        "fast-p",
        "`fast_p`: share of answers that are right and at least p times as fast as"
        " `cusparse_best`, hot.",
        ("operation", "author", *(f"p = {p:g}" for p in PS)),
        tuple(lines),
        align="ll",
        runs=tuple(runs),
        rules=tuple(rules),
        note="Over the answers to problems where an author applies; p = 1 with its 95 % interval.",
    )


def _coverage(view: View, label: str, author: str) -> int:
    return len(view.by_problem(label, author))


def _named(author: str) -> str:
    return f"`{author}`"
