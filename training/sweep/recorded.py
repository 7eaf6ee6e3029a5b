"""What stands in for a GPU and a model in a dry study: programs, problems and recorded times.

Times are of training matrices alone; matrices of the test split are in no table that is read here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from suite.baselines.files import FileAuthor, baselines
from suite.evaluation import Status
from suite.matrices.named import smoke
from suite.problem import Op, Problem
from suite.program import KernelProgram
from training.errors import TrainingError
from training.judging import Judged
from training.outcome import Outcome

REFERENCE = "nnzsplit"  # applies to every matrix; stands in for cusparse
STAND_IN = "tridiagonal-1k"  # what the emulator tries programs on
FASTEST = 1  # programs of each problem that may be answered
COLUMNS = ["matrix", "family", "label", "author", "status", "hot_us", "cold_us"]


@dataclass(frozen=True, eq=False)
class Asked:
    """A recorded problem.

    Attributes:
        matrix: Its name.
        family: Of the matrix.
        reference: What stands in for the library.
        outcomes: By author.
    """

    matrix: str
    family: str
    reference: Outcome
    outcomes: Mapping[str, Outcome]


@dataclass(frozen=True)
class Arm:
    """A program that may be answered.

    Attributes:
        author: Whose it is.
        text: The program.
        spoilt: How it was made worse; "" where it was not.
        verdict: Of the emulator.
    """

    author: str
    text: str
    spoilt: str
    verdict: Outcome

    def outcome(self, asked: Asked) -> Outcome:
        """What becomes of it: the emulator says whether it is right, the table how fast it is."""
        decides = self.spoilt or self.verdict.status not in (Status.OK, Status.NOT_APPLICABLE)
        return self.verdict if decides else asked.outcomes[self.author]

    def right(self, asked: Asked) -> bool:
        """Whether it is."""
        return self.outcome(asked).ok


@dataclass(frozen=True)
class Recorded:
    """All of it.

    Attributes:
        name: Of the file.
        digest: Of its content and of the programs.
        arms: Programs.
        train: Problems to learn from.
        validation: Problems to look at.
    """

    name: str
    digest: str
    arms: Sequence[Arm]
    train: Sequence[Asked]
    validation: Sequence[Asked]
    families: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        found = sorted({one.family for one in (*self.train, *self.validation)})
        object.__setattr__(self, "families", found)


Judging = Callable[[Sequence[tuple[Problem, KernelProgram]]], Sequence[Judged]]


def load(path: Path, judge: Judging) -> Recorded:
    """Reads a table and has its programs judged.

    Args:
        path: Parquet with a row for each matrix, operation and baseline.
        judge: Says whether programs are right.

    Raises:
        TrainingError: The table cannot be read or used.
    """
    try:
        table = pq.read_table(path, columns=COLUMNS)
    except (OSError, pa.ArrowException, KeyError) as error:
        first = str(error).splitlines()[0]
        raise TrainingError(
            f"--recorded {path}: {first}; columns are {', '.join(COLUMNS)}"
        ) from error
    rows = [row for row in table.to_pylist() if row["label"] == Op.SPMV.value]
    problems = asked(rows)
    if not problems:
        raise TrainingError(f"--recorded {path}: no matrix on which {REFERENCE} was timed")
    wanted = {one for problem in problems for one in _fastest(problem)} | {REFERENCE}
    authors = [one for one in baselines() if one.name in wanted and one.answers(Op.SPMV.value)]
    texts = list(_texts(authors))
    matrix = next(spec for spec in smoke() if spec.name == STAND_IN).build()
    problem = Problem(Op.SPMV, matrix)
    pairs = [(problem, KernelProgram(author, text)) for author, text, _ in texts]
    arms = [
        Arm(author, text, spoilt, judged.outcome)
        for (author, text, spoilt), judged in zip(texts, judge(pairs), strict=True)
    ]
    train, validation = split(problems)
    whole = path.read_bytes() + "".join(arm.text for arm in arms).encode()
    digest = hashlib.blake2b(whole, digest_size=8).hexdigest()
    return Recorded(path.name, digest, arms, train, validation)


def asked(rows: Sequence[Mapping[str, Any]]) -> list[Asked]:
    """Problems whose reference was timed, by name."""
    by_matrix: dict[str, dict[str, Outcome]] = {}
    families = {row["matrix"]: row["family"] for row in rows}
    for row in rows:
        status = Status(row["status"])
        error = "" if status is Status.OK else "recorded"
        outcome = Outcome(status, error, row["hot_us"], row["cold_us"])
        by_matrix.setdefault(row["matrix"], {})[row["author"]] = outcome
    return [
        Asked(name, families[name], found[REFERENCE], found)
        for name, found in sorted(by_matrix.items())
        if REFERENCE in found and found[REFERENCE].ok
    ]


def split(problems: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """The last matrix of each family that has several is for looking at, the rest to learn from."""
    last = {one.family: one for one in problems}
    count = {name: sum(one.family == name for one in problems) for name in last}
    held = [one for one in problems if one is last[one.family] and count[one.family] > 1]
    return [one for one in problems if one not in held], held


def _fastest(problem: Asked) -> list[str]:
    timed = [(one.hot_us, name) for name, one in problem.outcomes.items() if one.ok and one.hot_us]
    return [name for _, name in sorted(timed)[:FASTEST]]


def _texts(authors: Sequence[FileAuthor]) -> list[tuple[str, str, str]]:
    """Author, text, how it was spoilt; each baseline as it is, and spoilt in one of four ways."""
    found = []
    for at, author in enumerate(authors):
        text = author.texts[Op.SPMV.value]
        how = list(SPOILT)[at % len(SPOILT)]
        found += [(author.name, text, ""), (author.name, SPOILT[how](text), how)]
    return found


SPOILT: Mapping[str, Callable[[str], str]] = {
    "cut short": lambda text: text[: len(text) * 2 // 3],
    "an unknown name": lambda text: text.replace(" y", " result"),
    "a missing sign": lambda text: text[: text.rindex(";")] + text[text.rindex(";") + 1 :],
    "a wrong sum": lambda text: text.replace("+=", "-="),
}
