"""Pairs of a matrix and a right program, for stage two: drawn, compiled, verified, kept.

Training matrices come in their fixed order, a few programs for each: operation, dense columns and
precision by lot, of the strategies that apply those that have been drawn least so far, so that the
data is balanced over strategies and knows nothing of speed. What is not ``ok`` is dropped and
counted. A shard is written whole or not at all, with the counts that the next one goes on from; the
same command goes on after the last shard, and gives the same pairs as if it had not stopped.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from suite.evaluation import Status
from suite.harness.evaluate import DeviceUnavailable, Evaluator, Settings
from suite.harness.files import replacing
from suite.matrices.base import Matrix
from suite.matrices.splits import Split, sampled
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from training.errors import TrainingError
from training.pairs_config import PairsConfig
from training.teacher.describe import describe, digest, normalised
from training.teacher.space import STRATEGIES, Asked, Program, draw_from, of

FORMAT = 1  # of the shards
COLUMNS = (4, 8, 16, 32, 32, 64, 128, 128, 17, 33)  # of B, by lot
DOUBLES = 0.2  # of the problems
AUTHOR = "teacher"


@dataclass
class Counts:
    """How far a run has come.

    Attributes:
        shards: Written.
        kept: Right and distinct programs.
        repeated: Texts that were there.
        drawn: Programs by strategy, whatever became of them.
        kept_of: Those that were kept.
        statuses: Verdicts on all that were judged.
        matrices: Those with a pair.
    """

    shards: int = 0
    kept: int = 0
    repeated: int = 0
    drawn: Counter[str] = field(default_factory=Counter)
    kept_of: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    matrices: int = 0


@dataclass(frozen=True)
class Task:
    """Programs to be judged on one matrix."""

    matrix: Matrix
    asked: tuple[tuple[Problem, Program], ...]


def same(config: PairsConfig) -> dict[str, Any]:
    """What may not change when a run goes on."""
    kept = ("per_matrix", "largest", "smallest", "shard", "seed")
    return {"format": FORMAT, "space": space_digest(), **{k: getattr(config, k) for k in kept}}


def space_digest() -> str:
    """Tells versions of the program space apart."""
    names = {name: {k: list(v) for k, v in s.choices.items()} for name, s in STRATEGIES.items()}
    return digest(json.dumps(names, sort_keys=True))


def problems(matrix: Matrix, many: int, rng: random.Random) -> Iterator[Problem]:
    """What is asked of a matrix: both operations in turn."""
    for turn in range(many):
        op = (Op.SPMV, Op.SPMM)[turn % 2]
        columns = 1 if op is Op.SPMV else rng.choice(COLUMNS)
        dtype = DType.FLOAT64 if rng.random() < DOUBLES else DType.FLOAT32
        yield Problem(op, matrix, columns, dtype)


def balanced(rng: random.Random, asked: Asked, drawn: Mapping[str, int], used: set[str]) -> Program:
    """A program of the strategy that applies and was drawn least, but not one of those used.

    Raises:
        TrainingError: No strategy applies.
    """
    known = of(asked.problem.op)
    order = sorted(known, key=lambda s: (s.name in used, drawn.get(s.name, 0), rng.random()))
    for strategy in order:
        program = draw_from(rng, asked, strategy)
        if program is not None:
            return program
    raise TrainingError(f"{asked.problem.key}: no strategy applies; add one that always does")


def tasks(config: PairsConfig, first: int, drawn: Counter[str]) -> Iterator[Task]:
    """Matrices from the ``first`` on, each with its programs; counts in ``drawn``."""
    span = (config.smallest, config.largest)
    specs = islice(sampled(Split.TRAIN, span, config.seed), first, None)
    for turn, spec in zip(count(first), specs, strict=False):
        rng = random.Random(f"pairs {config.seed} {turn}")
        matrix = spec.build()
        used: set[str] = set()
        pairs = []
        asked: Asked | None = None
        for problem in problems(matrix, config.per_matrix, rng):
            asked = Asked(problem, asked)
            program = balanced(rng, asked, drawn, used)
            drawn[program.strategy] += 1
            used.add(program.strategy)
            pairs.append((problem, program))
        yield Task(matrix, tuple(pairs))


def make(config: PairsConfig, say: Callable[[str], None] = print) -> Counts:
    """Makes pairs until there are enough; goes on where an earlier call stopped.

    Raises:
        ConfigError: Mistakes in the configuration.
        TrainingError: The folder has pairs of another configuration, or there is no such device.
    """
    config.check()
    counts, texts = resume(config)
    if counts.kept >= config.programs:
        return counts
    try:
        evaluator = Evaluator(config.device, Settings(precision=None, compilers=0))
    except DeviceUnavailable as error:
        raise TrainingError(f"--device {config.device}: {error}") from error
    with evaluator, ThreadPoolExecutor(1) as ahead:
        stream = tasks(config, counts.shards * config.shard, counts.drawn)

        def prepare() -> tuple[Task, Counter[str]]:
            task = next(stream)
            for dtype in DType:
                texts = [p.text for problem, p in task.asked if problem.dtype is dtype]
                evaluator.compile_ahead([KernelProgram(AUTHOR, text) for text in texts], dtype)
            return task, counts.drawn.copy()

        coming = ahead.submit(prepare)
        rows: list[dict[str, Any]] = []
        for turn in count(1):
            task, drawn = coming.result()
            coming = ahead.submit(prepare)  # draws do not depend on verdicts
            found = judged(evaluator, task, counts, texts)
            evaluator.release(task.matrix)
            counts.matrices += bool(found)
            rows += found
            enough = counts.kept >= config.programs
            if turn % config.shard == 0 or enough:
                write(config, counts, drawn, rows)
                dropped = sum(counts.statuses.values()) - counts.statuses["ok"]
                say(
                    f"{counts.kept:,} of {config.programs:,} programs, {counts.matrices:,}"
                    f" matrices, {dropped:,} dropped"
                )
                rows = []
            if enough:
                coming.cancel()
                counts.drawn = drawn
                return counts
    raise AssertionError("the stream of matrices has no end")


def judged(
    evaluator: Evaluator, task: Task, counts: Counts, texts: set[str]
) -> list[dict[str, Any]]:
    """Rows of the programs of a task that are right and new; counts the others.

    Raises:
        TrainingError: The machine failed, so that nothing can be said of a program.
    """
    rows = []
    for problem, program in task.asked:
        answer = KernelProgram(AUTHOR, program.text)
        if answer.digest in texts:
            counts.repeated += 1
            continue
        verdict = evaluator.evaluate(problem, answer)
        if verdict.status is Status.INFRASTRUCTURE_ERROR:
            raise TrainingError(f"{problem.key}: {verdict.error}; the same command goes on")
        counts.statuses[verdict.status.value] += 1
        if not verdict.ok:
            continue
        texts.add(answer.digest)
        counts.kept += 1
        counts.kept_of[program.strategy] += 1
        binary = evaluator.binary(answer, problem.dtype)
        rows.append(row_of(problem, program, answer.digest, verdict.status.value, binary))
    return rows


def row_of(
    problem: Problem, program: Program, text_digest: str, status: str, binary: bytes
) -> dict[str, Any]:
    """A pair as it is stored."""
    matrix = problem.matrix
    return {
        "matrix": matrix.name,
        "family": matrix.family,
        "recipe": matrix.source,
        "matrix_digest": matrix.digest,
        "op": problem.op.value,
        "n": problem.columns,
        "dtype": problem.dtype.value,
        "strategy": program.strategy,
        "parameters": json.dumps(dict(program.parameters)),
        "writing": json.dumps(asdict(program.writing)),
        "text": program.text,
        "text_digest": text_digest,
        "key": describe(program.text),
        "normal_digest": digest(normalised(program.text)),
        "status": status,
        "binary": hashlib.blake2b(binary, digest_size=8).hexdigest(),
    }


def write(
    config: PairsConfig, counts: Counts, drawn: Counter[str], rows: list[dict[str, Any]]
) -> None:
    """Writes a shard and then the counts; a shard without counts is written anew."""
    with replacing(config.out / f"pairs-{counts.shards:05d}.parquet") as draft:
        pq.write_table(pa.Table.from_pylist(rows), draft)
    counts.shards += 1
    plain = {k: dict(v) if isinstance(v, Counter) else v for k, v in vars(counts).items()}
    state = {"same": same(config), "counts": plain | {"drawn": dict(drawn)}}
    with replacing(config.out / "counts.json") as draft:
        draft.write_text(json.dumps(state, indent=1), encoding="utf-8")


def resume(config: PairsConfig) -> tuple[Counts, set[str]]:
    """The counts of an earlier call and the digests of its texts, or nothing yet.

    Raises:
        TrainingError: It made other pairs, or a shard is missing.
    """
    path = config.out / "counts.json"
    if not path.exists():
        return Counts(), set()
    state = json.loads(path.read_text(encoding="utf-8"))
    for name, value in same(config).items():
        if state["same"].get(name) != value:
            raise TrainingError(
                f"{config.out}: has pairs with {name} {state['same'].get(name)}, not {value}; give"
                " another folder"
            )
    plain = state["counts"]
    counters = {k: Counter(plain[k]) for k in ("drawn", "kept_of", "statuses")}
    counts = Counts(**(plain | counters))
    texts: set[str] = set()
    for shard in range(counts.shards):
        part = config.out / f"pairs-{shard:05d}.parquet"
        try:
            texts.update(pq.read_table(part, columns=["text_digest"])["text_digest"].to_pylist())
        except (OSError, pa.ArrowException) as error:
            raise TrainingError(f"{part}: {error}; delete the folder and start anew") from error
    return counts, texts


def read_pairs(folder: Path) -> pa.Table:
    """All pairs of a folder.

    Raises:
        TrainingError: There are none.
    """
    shards = sorted(folder.glob("pairs-*.parquet"))
    tables = [table for table in map(pq.read_table, shards) if table.num_rows]
    if not tables:
        raise TrainingError(f"{folder}: has no pairs; make them with python -m training pairs")
    return pa.concat_tables(tables)
