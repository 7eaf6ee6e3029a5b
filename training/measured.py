"""What is known already of programs on problems, so that a repeat costs nothing.

A file of SQLite beside the run, or nothing but memory. Writes are appended and whole; processes of
one host may share a file, also with one that is killed. What the machine is to blame for, and what
was timed on a disturbed GPU, is not kept.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from suite.evaluation import Status
from suite.harness.device import DeviceFacts
from suite.harness.settings import Settings
from suite.problem import Problem
from training.errors import TrainingError
from training.outcome import Outcome

SCHEMA = 1
WAIT_S = 60.0  # for another process that writes

_TABLE = """
create table if not exists measured (
    key text primary key, device text not null, problem text not null, program text not null,
    op text not null, columns integer not null, dtype text not null, matrix text not null,
    family text not null, recipe text not null, matrix_digest text not null,
    status text not null, hot_us real, outcome text not null, text text not null
) without rowid
"""
_FIELDS = (
    *("key", "device", "problem", "program", "op", "columns", "dtype", "matrix", "family"),
    *("recipe", "matrix_digest", "status", "hot_us", "outcome", "text"),
)

_ABOUT = "op, columns, dtype, matrix, family, recipe, matrix_digest, hot_us, text"  # a ``Found``
_INDEX = "create index if not exists by_problem on measured (problem, device, hot_us)"


@dataclass(frozen=True)
class Entry:
    """A program on a problem, and what became of it.

    Attributes:
        program: Its identity; see ``training.identity``.
        problem: What was asked.
        text: A text of the program.
        outcome: The verdict.
    """

    program: str
    problem: Problem
    text: str
    outcome: Outcome


@dataclass(frozen=True)
class Found:
    """A right and timed program as the file has it, with all that its problem is made again of."""

    op: str
    columns: int
    dtype: str
    matrix: str
    family: str
    recipe: str
    matrix_digest: str
    hot_us: float
    text: str


def device_key(facts: DeviceFacts, settings: Settings) -> str:
    """What else a verdict depends on: the device, its limits and how precisely it times."""
    limits = (settings.precision, settings.run_s, settings.workspace_bytes)
    return f"{facts.kind}/{facts.name}/{facts.arch}/{limits!r}"


def problem_key(problem: Problem) -> str:
    """What a problem is, whatever its matrix is called."""
    return f"{problem.matrix.digest}/{problem.label}/{problem.dtype.short}"


class Measurements:
    """Outcomes by program and problem, of one device.

    Args:
        path: The file; None keeps them in memory alone.
        device: See ``device_key``.

    Attributes:
        hits: Questions that were answered.
        misses: Questions that were not.

    Raises:
        TrainingError: The file cannot be used.
    """

    def __init__(self, path: Path | None, device: str) -> None:
        self._path, self._device = path, device
        self._known: dict[str, Outcome] = {}
        self.hits = self.misses = 0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = sqlite3.connect(
                path or ":memory:", timeout=WAIT_S, isolation_level=None, check_same_thread=False
            )
            self._file.execute("pragma journal_mode=wal")
            self._file.execute("pragma synchronous=normal")
            (version,) = self._file.execute("pragma user_version").fetchone()
            if version not in (0, SCHEMA):
                raise sqlite3.DatabaseError(f"written by another version ({version})")
            self._file.execute(_TABLE)
            self._file.execute(_INDEX)
            self._file.execute(f"pragma user_version={SCHEMA}")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def get(self, program: str, problem: Problem) -> Outcome | None:
        """What is known of a program on a problem."""
        key = self._key(program, problem)
        found = self._known.get(key)
        if found is None:
            row = self._run("select outcome from measured where key = ?", (key,))
            if row:
                found = self._known[key] = _outcome(row[0][0])
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, entries: Iterable[Entry]) -> None:
        """Keeps outcomes; what is there already stays."""
        rows = []
        for entry in entries:
            outcome, problem = entry.outcome, entry.problem
            if not outcome.judged or outcome.disturbed:
                continue
            key = self._key(entry.program, problem)
            self._known[key] = outcome
            matrix = problem.matrix
            about = (problem.op.value, problem.columns, problem.dtype.value, matrix.name)
            source = (matrix.family, matrix.source, matrix.digest)
            said = (outcome.status.value, outcome.hot_us, json.dumps(asdict(outcome)), entry.text)
            whole = (key, self._device, problem_key(problem), entry.program)
            rows.append((*whole, *about, *source, *said))
        if not rows:
            return
        marks = ", ".join("?" * len(_FIELDS))
        statement = f"insert or ignore into measured ({', '.join(_FIELDS)}) values ({marks})"
        try:
            self._file.execute("begin immediate")
            self._file.executemany(statement, rows)
            self._file.execute("commit")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def __len__(self) -> int:
        (count,) = self._run("select count(*) from measured", ())[0]
        return int(count)

    def fastest(self, problem: Problem) -> Found | None:
        """The fastest right program of a problem on this device; the library's own is none."""
        rows = self._run(
            f"select {_ABOUT} from measured where status = 'ok' and hot_us is not null"
            " and device = ? and problem = ? and text != '' order by hot_us, key limit 1",
            (self._device, problem_key(problem)),
        )
        return Found(*rows[0]) if rows else None

    def best(self, within: float = 1.0, most: int = 8) -> Iterator[Found]:
        """The fastest right programs of each problem, fastest first, of every device by itself.

        Args:
            within: Times the fastest one's time, up to which others come too.
            most: Programs of a problem.
        """
        columns = f"{_ABOUT}, problem, device"
        ranked = (
            f"select {columns}, row_number() over w as place, min(hot_us) over w as fastest"
            " from measured where status = 'ok' and hot_us is not null and text != ''"
            " window w as (partition by problem, device order by hot_us, key)"
        )
        chosen = (
            f"select {columns} from ({ranked}) where place <= ? and hot_us <= fastest * ?"
            " order by problem, device, place"
        )
        for row in self._run(chosen, (most, within)):
            yield Found(*row[:-2])

    def _key(self, program: str, problem: Problem) -> str:
        whole = f"{self._device}\0{problem_key(problem)}\0{program}"
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()

    def _run(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            return self._file.execute(statement, tuple(values)).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> TrainingError:
        return TrainingError(f"{self._path}: {error}; give another file, or delete this one")


def _outcome(text: object) -> Outcome:
    plain = json.loads(str(text))
    return Outcome(**{**plain, "status": Status(plain["status"])})
