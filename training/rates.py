"""How often a model's programs compile, are right, and are new: rows of answers to tables.

Pure functions. Every rate divides by what was asked. Intervals of rates over answers are clustered
by matrix, since answers on one matrix succeed and fail together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from suite.drawn import pass_at
from suite.evaluation import Evaluation, Status
from suite.harness.plan import ParseError
from suite.problem import label_of
from suite.program import KernelProgram
from training.answers import Question
from training.intervals import Share, clustered
from training.teacher.describe import describe, digest, normalised

ALL = "all"


@dataclass(frozen=True)
class Answer:
    """One program and its verdict, as it is stored.

    Attributes:
        matrix: Its name.
        family: Its structure.
        label: Operation with its columns.
        dtype: Precision.
        sample: Which of several.
        status: The verdict.
        error: Its message.
        key: What the program does; empty where it cannot be parsed.
        normal: Digest of the text with names normalised.
        text: The program.
    """

    matrix: str
    family: str
    label: str
    dtype: str
    sample: int
    status: str
    error: str
    key: str
    normal: str
    text: str

    @property
    def ok(self) -> bool:
        """Whether it is right."""
        return self.status == Status.OK

    @property
    def compiled(self) -> bool:
        """Whether the compiler accepted it."""
        return Status(self.status).compiled

    @property
    def problem(self) -> tuple[str, str, str]:
        """What it answers."""
        return self.matrix, self.label, self.dtype


def answer(question: Question, program: KernelProgram, verdict: Evaluation) -> Answer:
    """An answer of a question, a program and the verdict on it."""
    try:
        key, normal = describe(program.text), digest(normalised(program.text))
    except ParseError:
        key = normal = ""
    return Answer(
        question.matrix.matrix,
        question.matrix.family,
        label_of(question.op, question.columns),
        question.dtype.value,
        program.sample,
        verdict.status.value,
        verdict.error or "",
        key,
        normal,
        program.text,
    )


def table(answers: Sequence[Answer], known: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Rates by operation and family, with ``all`` for both.

    Args:
        answers: All of them.
        known: Digests of the training programs' normalised texts; no novelty where left out.

    Returns:
        A row for each operation and family: rates with ``_low`` and ``_high``, and counts.
    """
    rows = []
    for label in (ALL, *sorted({one.label for one in answers})):
        of_label = [one for one in answers if label in (ALL, one.label)]
        for family in (ALL, *sorted({one.family for one in of_label})):
            chosen = [one for one in of_label if family in (ALL, one.family)]
            rows.append({"op": label, "family": family, **_figures(chosen, known)})
    return rows


def _figures(answers: Sequence[Answer], known: Collection[str] | None) -> dict[str, Any]:
    found = {
        "compile_rate": _share(answers, lambda one: one.compiled),
        "correct_rate": _share(answers, lambda one: one.ok),
    }
    if known is not None:
        right = [one for one in answers if one.ok]
        found["novel_if_correct"] = _share(right, lambda one: one.normal not in known)
    found |= {f"pass_at_{k}": share for k, share in _passes(answers)}
    figures: dict[str, Any] = {
        "answers": len(answers),
        "matrices": len({one.matrix for one in answers}),
        "not_applicable": sum(one.status == Status.NOT_APPLICABLE for one in answers),
        "infrastructure_errors": sum(one.status == Status.INFRASTRUCTURE_ERROR for one in answers),
    }
    for name, share in found.items():
        if share is not None:
            figures |= {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}
    return figures


def _share(answers: Sequence[Answer], holds: Any) -> Share | None:
    return clustered([float(holds(one)) for one in answers], [one.matrix for one in answers])


def _passes(answers: Sequence[Answer]) -> Iterator[tuple[int, Share | None]]:
    """Chance that one of k answers to a problem is right, for k = 1, 2, 4, … and all samples."""
    problems: dict[tuple[str, str, str], list[bool]] = {}
    for one in answers:
        problems.setdefault(one.problem, []).append(one.ok)
    most = min((len(found) for found in problems.values()), default=0)
    for k in sorted({1 << power for power in range(most.bit_length())} | {most} - {0}):
        chances = [pass_at(k, sum(found), len(found)) for found in problems.values()]
        yield k, clustered(chances, [problem[0] for problem in problems])


def strategies(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """How often each format is used for each operation, and by how many different strategies."""
    rows = []
    for label in sorted({one.label for one in answers}):
        parsed = [one for one in answers if one.label == label and one.key]
        formats = Counter(format_of(one.key) for one in parsed)
        for name, many in formats.most_common():
            mine = [one for one in parsed if format_of(one.key) == name]
            rows.append(
                {
                    "op": label,
                    "format": name,
                    "share": many / len(parsed),
                    "correct_rate": sum(one.ok for one in mine) / many,
                    "keys": len({one.key for one in mine}),
                }
            )
    return rows


def format_of(key: str) -> str:
    """The format's name in a program's key."""
    return key.split(" | ")[0].split()[1]


def statuses(answers: Sequence[Answer]) -> dict[str, int]:
    """How many answers have each status."""
    return dict(Counter(one.status for one in answers).most_common())


def shown(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The table for a person."""
    yield (
        f"{'operation':10} {'family':18} {'answers':>7} {'compile':>20} {'correct':>20}"
        f" {'pass@k':>20} {'new':>20}"
    )
    for row in rows:
        passes = [name for name in row if name.startswith("pass_at_") and name.count("_") == 2]
        cells = ["compile_rate", "correct_rate", *passes[-1:], "novel_if_correct"]
        yield f"{row['op']:10} {row['family']:18} {row['answers']:7} " + " ".join(
            f"{_cell(row, name):>20}" for name in cells
        )


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name not in row:
        return "–"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:.3f} [{low:.3f},{high:.3f}]"


def plain(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Answers as rows of a file."""
    return [asdict(one) for one in answers]
