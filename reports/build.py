"""A campaign's report: what is in it, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reports import ablation, claims, closeup, learning, places, plots, rates, setting, speeds, spy
from reports.document import Block, Document, Listing, Paragraph, Points, Section, Warned
from reports.source import Campaign, TrainingRun
from reports.tables import by_family, by_matrix, repaid, repayment
from reports.text import several, titled
from reports.theme import Theme, styled
from reports.view import View
from suite.author import Kind
from suite.record import Row

_METHOD = (
    "Every competitor goes through the same code: compiled by NVRTC, checked on three sets of"
    " inputs against a float64 reference within rounding error, and timed on the device from"
    " replays of a captured graph. Hot is back to back, cold with a flushed L2; a time is a median"
    " with its 95 % interval. `cusparse` is the library's default, `cusparse_best` the fastest of"
    " its algorithms, formats and layouts on that matrix, preprocessed. Intervals of means are 95 %"
    " percentile bootstrap intervals over the matrices; they say how a mean would move with other"
    " matrices of the same kind, not how one time repeats."
)
_NAMES = (
    "A baseline has the name of its program in `suite/baselines`, and behind it what the variant"
    " has chosen: `pieces-lanes8-piece64` is `pieces.cu` with `LANES` 8 and `PIECE` 64."
    " `docs/baselines.md` says what each program is for."
)
_RESTORED = (
    "In `rows.parquet` beside this report, with every sample. `python -m reports restore FOLDER`"
    " puts the rows into MLflow; the figures of an author are then in its run, named"
    " `<operation>.<author>`, below the campaign's."
)


def report(
    campaign: Campaign,
    training: Sequence[TrainingRun],
    program: Callable[[Row], str],
    matrix: str = "",
) -> Document:
    """The report of a campaign, whatever state it is in.

    Args:
        campaign: From the store.
        training: Training runs of the same store.
        program: Fetches the text of a row's program; empty where it is not kept.
        matrix: Name of the matrix that has a page; the lead's best one if empty.

    Raises:
        NoSuchMatrixError: Nothing was timed on that matrix.
    """
    view = View(campaign)
    theme = Theme.of(view.shown)
    with styled():
        sections = [
            _summary(view, theme),
            _set_up(view),
            *([_outcomes(view)] if view.rows else []),
            *(_speeds(view, theme) if view.timed else []),
            *_learned(view, training),
            *_closeup(view, theme, program, matrix),
            _missing(view, training),
            *_appendices(view),
        ]
    device = next((row.device for row in view.rows if row.device), "no device")
    return Document(
        f"Sparse matrix multiplication on one {device}" if view.timed else f"Results on: {device}",
        f"Campaign {campaign.name}, {str(campaign.facts.get('started', ''))[:10] or 'undated'},"
        f" commit {str(campaign.facts.get('commit', 'unknown'))[:12]}",
        [section for section in sections if section.blocks],
    )


def _summary(view: View, theme: Theme) -> Section:
    gaps = [gap for gap in setting.gaps(view) if gap.startswith("**")]
    blocks: list[Block] = [Warned(tuple(gaps))] if gaps else []
    if not view.rows:
        return Section("Summary", [Warned(tuple(setting.gaps(view)))])
    problems = len({row.problem_key for row in view.rows})
    operations = "; ".join(titled(label) for label in view.labels)
    blocks.append(
        Paragraph(
            f"**Compared:** {setting.compared(view)}. **On:**"
            f" {several(len(view.matrices), 'matrix', 'matrices')} of"
            f" {several(len(view.families), 'family', 'families')}. **Operations:** {operations}."
            f" That is {several(problems, 'problem')} in {view.rows[0].dtype} and"
            f" {several(len(view.rows), 'answer')}."
        )
    )
    if view.timed:
        headline = speeds.headline(view)
        blocks += [headline] if headline.rows else []
        blocks.append(plots.sorted_speedups(view, theme))
    blocks.append(Points(tuple(claims.claims(view))))
    return Section("Summary", blocks)


def _set_up(view: View) -> Section:
    blocks: list[Block] = [Paragraph(_METHOD)] if view.timed else []
    if any(row.kind is Kind.BASELINE for row in view.rows):
        blocks.append(Paragraph(_NAMES))
    if view.rows:
        blocks.append(setting.matrices(view))
        picture = spy.gallery(view.matrices)
        blocks += [picture] if picture else []
    blocks.append(setting.environment(view.campaign))
    typed = setting.repetition(view.campaign, view.timed)
    if typed:
        blocks.append(Listing("commands", "How to repeat it:", typed))
    return Section("What was measured, and how", blocks)


def _outcomes(view: View) -> Section:
    blocks: list[Block] = [rates.outcomes(view)]
    failures = rates.failures(view)
    if failures:
        blocks += [failures, *(rates.by_family(view, name) for name in rates.choosing(view))]
    else:
        blocks.append(Paragraph("No answer that applied failed, in no family."))
    return Section("What was right", blocks)


def _speeds(view: View, theme: Theme) -> list[Section]:
    fast: list[Block] = []
    for label in view.labels:
        table = speeds.spread(view, label, view.contenders(label), f"speed-{label}")
        fast += [table] if table.rows else []
    drawn = speeds.drawn(view)
    fast += [drawn] if drawn.rows else []
    fast += [plots.profile(view, theme), plots.fast_p(view, theme)]
    curve = speeds.fast_p(view)
    fast += [curve] if curve.rows else []

    where: list[Block] = []
    roof, fastest = places.roofline(view), places.fastest_by_family(view)
    where += [plot for plot in (fastest, roof) if plot]
    for label in view.labels:
        for author in view.foremost(label):
            if view.kinds[author] in (Kind.MODEL, Kind.CHOOSER):
                plot = places.choices(view, label, author)
                where += [plot] if plot else []
    for label in view.labels:
        table = by_family(view.rows, label)
        where += [table] if table.rows else []
    found = [Section("How fast", fast), Section("Where, and why", where)]
    pays = [repayment(view.rows, label) for label in view.labels if repaid(view.rows, label)]
    return [*found, Section("When a format pays", pays)] if pays else found


def _learned(view: View, training: Sequence[TrainingRun]) -> list[Section]:
    found = []
    table = ablation.ablation(view)
    if table:
        found.append(Section("What each part is worth", [table]))
    figures = [learning.losses(training), *learning.rewarded(training)]
    blocks = [block for block in (*figures, learning.costs(training)) if block]
    return [*found, Section("Training", blocks)] if blocks else found


def _closeup(view: View, theme: Theme, program: Callable[[Row], str], matrix: str) -> list[Section]:
    chosen = closeup.choose(view, matrix) if view.timed or matrix else None
    return [closeup.section(view, theme, chosen, program)] if chosen else []


def _missing(view: View, training: Sequence[TrainingRun]) -> Section:
    sentences = setting.gaps(view)
    if view.rows:
        sentences += setting.absent(view, bool(training))
    return Section("What is missing", [Points(tuple(sentences or ["Nothing that is known of."]))])


def _appendices(view: View) -> list[Section]:
    found = []
    if view.timed:
        everyone = [speeds.everyone(view, label) for label in view.labels]
        found.append(Section("Every author", [table for table in everyone if table.rows]))
        each = [by_matrix(view.rows, label) for label in view.labels]
        each = [table.pruned() for table in each if table.rows]
        found += [Section("Every matrix", each)] if each else []
    if view.rows:
        where = setting.runs(view) if view.campaign.runs else Paragraph(_RESTORED)
        found.append(Section("Where the numbers lie", [where]))
    return found
