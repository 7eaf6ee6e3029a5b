"""Draws of programs for training matrices, for stage two: before any device is needed.

Training matrices come in their fixed order, a few programs for each: operation, dense columns and
precision by lot, of the strategies that apply those that have been drawn least so far, so that the
data is balanced over strategies and knows nothing of speed. No text is drawn twice. A shard is
written whole or not at all; the same command goes on after the last one, with the same draws as if
it had not stopped.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from suite.harness.files import replacing
from suite.matrices.base import Matrix, MatrixSpec
from suite.matrices.splits import Split, sampled
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from training.draws_config import DrawsConfig
from training.errors import TrainingError
from training.teacher.describe import digest
from training.teacher.space import STRATEGIES, Asked, Program, draw_from, of

FORMAT = 1  # of the shards
COLUMNS = (4, 8, 16, 32, 32, 64, 128, 128, 17, 33)  # of B, by lot
DOUBLES = 0.2  # of the problems
META = "draws.json"


def problems(matrix: Matrix, many: int, rng: random.Random) -> Iterator[Problem]:
    """What is asked of a matrix: both operations in turn."""
    for turn in range(many):
        op = (Op.SPMV, Op.SPMM)[turn % 2]
        columns = 1 if op is Op.SPMV else rng.choice(COLUMNS)
        dtype = DType.FLOAT64 if rng.random() < DOUBLES else DType.FLOAT32
        yield Problem(op, matrix, columns, dtype)


def balanced(
    rng: random.Random, asked: Asked, drawn: Mapping[str, int], used: set[str]
) -> Program | None:
    """A program of the strategy that applies and was drawn least, but not one of those used.

    None applies where a row of SpMM is longer than 65,536 and the columns are no multiple of 4.
    """
    known = of(asked.problem.op)
    order = sorted(known, key=lambda s: (s.name in used, drawn.get(s.name, 0), rng.random()))
    for strategy in order:
        program = draw_from(rng, asked, strategy)
        if program is not None:
            return program
    return None


def rows_of(
    turn: int, matrix: Matrix, config: DrawsConfig, drawn: Counter[str], texts: set[str]
) -> list[dict[str, Any]]:
    """The draws for one matrix as rows; counts in ``drawn`` and ``texts``."""
    rng = random.Random(f"pairs {config.seed} {turn}")
    used: set[str] = set()
    rows = []
    asked: Asked | None = None
    for problem in problems(matrix, config.per_matrix, rng):
        asked = Asked(problem, asked)
        program = balanced(rng, asked, drawn, used)
        if program is None:
            continue
        text_digest = KernelProgram("teacher", program.text).digest
        if text_digest in texts:
            continue
        texts.add(text_digest)
        drawn[program.strategy] += 1
        used.add(program.strategy)
        rows.append(_row(turn, problem, program, text_digest))
    return rows


def _row(turn: int, problem: Problem, program: Program, text_digest: str) -> dict[str, Any]:
    matrix = problem.matrix
    return {
        "turn": turn,
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
    }


def make(config: DrawsConfig, say: Callable[[str], None] = print) -> Counter[str]:
    """Draws for so many matrices; goes on where an earlier call stopped.

    Returns:
        Draws by strategy.

    Raises:
        ConfigError: Mistakes in the configuration.
        TrainingError: The folder has draws of another configuration, or cannot be written to.
    """
    config.check()
    drawn, texts, done = _resume(config)
    stream = islice(specs(config.smallest, config.largest, config.seed), done, None)
    for first in range(done, config.matrices, config.shard):
        many = min(config.shard, config.matrices - first)
        rows = []
        for turn, spec in enumerate(islice(stream, many), first):
            rows += rows_of(turn, spec.build(), config, drawn, texts)
        path = config.out / f"draws-{first // config.shard:05d}.parquet"
        try:
            with replacing(path) as draft:
                pq.write_table(pa.Table.from_pylist(rows), draft, compression="zstd")
        except OSError as error:
            raise TrainingError(f"{path}: {error}; the same command goes on") from error
        say(f"{first + many:,} of {config.matrices:,} matrices, {drawn.total():,} programs")
    return drawn


def specs(smallest: float, largest: float, seed: int) -> Iterator[MatrixSpec]:
    """The training matrices that draws are for, in their order."""
    return sampled(Split.TRAIN, (smallest, largest), seed)


def shards(folder: Path) -> list[Path]:
    """The files of draws of a folder.

    Raises:
        TrainingError: There are none.
    """
    found = sorted(folder.glob("draws-*.parquet"))
    if not found:
        raise TrainingError(f"{folder}: has no draws; make them with python -m training draws")
    return found


def read_meta(folder: Path) -> dict[str, Any]:
    """What decided the draws of a folder: span of sizes, seed, space.

    Raises:
        TrainingError: There are none.
    """
    try:
        meta: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingError(
            f"{folder / META}: {error}; make draws with python -m training draws"
        ) from error
    return meta


def space_digest() -> str:
    """Tells versions of the program space apart."""
    names = {name: {k: list(v) for k, v in s.choices.items()} for name, s in STRATEGIES.items()}
    return digest(json.dumps(names, sort_keys=True))


def _resume(config: DrawsConfig) -> tuple[Counter[str], set[str], int]:
    """Draws by strategy, digests of texts and number of matrices of the whole shards there."""
    kept = ("per_matrix", "largest", "smallest", "shard", "seed")
    same = {"format": FORMAT, "space": space_digest(), **{k: getattr(config, k) for k in kept}}
    if not (config.out / META).exists():
        with replacing(config.out / META) as draft:
            draft.write_text(json.dumps(same, indent=1), encoding="utf-8")
        return Counter(), set(), 0
    found = read_meta(config.out)
    for name, value in same.items():
        if found.get(name) != value:
            raise TrainingError(
                f"{config.out}: has draws with {name} {found.get(name)}, not {value}; give another"
                " folder"
            )
    drawn: Counter[str] = Counter()
    texts: set[str] = set()
    matrices = 0
    for path in sorted(config.out.glob("draws-*.parquet")):
        try:
            table = pq.read_table(path, columns=["turn", "strategy", "text_digest"])
        except (OSError, pa.ArrowException) as error:
            raise TrainingError(f"{path}: {error}; delete the folder and start anew") from error
        drawn.update(table["strategy"].to_pylist())
        texts.update(table["text_digest"].to_pylist())
        matrices = max(matrices, *(turn + 1 for turn in table["turn"].to_pylist()))
    if matrices % config.shard and matrices < config.matrices:
        raise TrainingError(
            f"{config.out}: is finished with {matrices:,} matrices; give another folder for more"
        )
    return drawn, texts, matrices
