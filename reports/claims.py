"""Sentences made from the numbers, which say no more than their intervals support.

A comparison is claimed only where the whole 95 % interval lies on one side of 1 and there are at
least ``ENOUGH`` matrices: below, no two-sided test of signs could reach 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.intervals import Figure, geometric
from reports.noise import Verdict, counts, judge_ratio
from reports.rates import compiled, right
from reports.text import number, quoted, several, titled
from reports.view import MAIN, View
from suite.author import Kind
from suite.metrics import BEST, CACHES, judged, time_us

ENOUGH = 6


def claims(view: View) -> list[str]:
    """What a report may say in words."""
    found = list(_correctness(view))
    if view.timed:
        for label in view.labels:
            found += _speed(view, label)
    return found


def _correctness(view: View) -> Iterator[str]:
    for kind, who in ((Kind.BASELINE, "baseline"), (Kind.LIBRARY, "library call")):
        rows = judged(row for row in view.rows if row.kind is kind)
        if rows:
            good = sum(row.ok for row in rows)
            some = "All" if good == len(rows) else f"{good:,} of"
            authors = several(len({row.author for row in rows}), who)
            yield f"{some} {len(rows):,} answers of {authors} that applied and came were right."
    for author in view.models:
        rows = [row for row in view.rows if row.author == author]
        share, text = right(rows), compiled(rows)
        if share and text:
            yield (
                f"Of the {share.n:,} answers of `{author}`, {quoted(text)} compiled and"
                f" {quoted(share)} were right."
            )


def _speed(view: View, label: str) -> Iterator[str]:
    """What is known of the speed of who the report is about, and what a choice is worth at all."""
    lead = view.lead(label)
    if view.kinds.get(lead) is Kind.BASELINE and lead != BEST:
        return  # a single baseline stands for nothing
    who = f"`{lead}`" if lead != BEST else "the best baseline on each matrix, by hindsight,"
    sentences: list[str] = []
    for cache in CACHES:
        figure = view.speedup(label, lead, MAIN, cache)
        if figure is not None:
            n = len(view.by_problem(label, lead, MAIN, cache))
            name = who if cache == "hot" else "cold, it"
            sentences.append(compare(name, f"`{MAIN}`", figure, n))
    sentences += _places(view, label, lead)
    figure = against(view, label, lead, BEST) if lead != BEST else None
    if figure is not None:
        oracle = "the best baseline by hindsight"
        sentences.append(compare("hot, it", oracle, figure, figure.n))
    single = next(iter(view.single(label)), "")
    figure = worth(view, label, single)
    if figure is not None:
        oracle = "knowing the best baseline of each matrix"
        sentences.append(compare(oracle, f"always taking `{single}`", figure, figure.n))
    if sentences:
        first, *rest = sentences
        yield " ".join([f"**{titled(label)}, hot:** {first}", *map(_capital, rest)])


def compare(who: str, whom: str, figure: Figure, n: int) -> str:
    """A sentence on a ratio of speeds, as strong as its interval allows.

    Args:
        who: Whose speed is above the fraction line.
        whom: Whose is below.
        figure: The ratio.
        n: Matrices that it is over.
    """
    over = f"over {several(n, 'matrix', 'matrices')}"
    if n < ENOUGH:
        speed = f"{number(figure.value)} times the speed of {whom}"
        return f"{who} has {speed} {over}, too few for a claim."
    if figure.low > 1:
        return f"{who} is faster than {whom}, by a factor of {quoted(figure)} {over}."
    if figure.high < 1:
        return f"{who} is slower than {whom}, with {quoted(figure)} of its speed {over}."
    return (
        f"{who} cannot be told from {whom} in the mean, with {quoted(figure)} of its speed {over}."
    )


def against(view: View, label: str, author: str, other: str) -> Figure | None:
    """An author's speedups over another's, paired by matrix, hot; failures as a tenth."""
    ratios = view.paired(label, author, other)
    return geometric(list(ratios.values()), list(ratios)) if ratios else None


def worth(view: View, label: str, single: str) -> Figure | None:
    """How much faster the oracle is than one baseline, where that has a time."""
    best = {row.matrix: time_us(row, "hot") for row in view.of(label, BEST)}
    ratios = {
        row.matrix: mine / least
        for row in view.of(label, single)
        if (mine := time_us(row, "hot")) and (least := best.get(row.matrix))
    }
    return geometric(list(ratios.values()), list(ratios)) if ratios else None


def _places(view: View, label: str, author: str) -> Iterator[str]:
    """On how many matrices it wins and loses, hot, and where it is worst."""
    ratios = view.by_problem(label, author)
    if not ratios:
        return
    times = {key.split("/")[1]: us for key, us in view.reference(label).times.items()}
    found = counts(judge_ratio(r, times.get(m, float("inf"))) for m, r in ratios.items())
    lowest = min(ratios, key=ratios.__getitem__)
    yield (
        f"hot, it is faster on {found[Verdict.FASTER]} matrices, slower on"
        f" {found[Verdict.SLOWER]}, and within the noise of times on {found[Verdict.SAME]}; its"
        f" lowest ratio is {number(ratios[lowest])}, on `{lowest}`."
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
