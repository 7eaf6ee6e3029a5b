"""Pairs of a matrix and a right program, for stage two: draws, compiled and verified.

Each file of draws becomes a file of verdicts, written whole or not at all, so that the workers of a
command share the files and the same command goes on with those that are missing. What is not ``ok``
is kept with its status and left out by ``read_pairs``.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, product
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suite.evaluation import Status
from suite.harness.evaluate import DeviceUnavailable, Evaluator, Settings
from suite.harness.files import replacing
from suite.harness.processes import die_with_parent
from suite.matrices.base import Matrix, MatrixSpec
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from training import draws
from training.errors import TrainingError
from training.pairs_config import PairsConfig
from training.teacher.describe import describe, digest, normalised

AUTHOR = "teacher"
OTHER = "other_matrix"  # with these packages the recipe makes another one than it was drawn for


@dataclass
class Counts:
    """What became of the draws.

    Attributes:
        statuses: Verdicts.
        kept_of: Right programs by strategy.
        matrices: Those with a right program.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    kept_of: Counter[str] = field(default_factory=Counter)
    matrices: int = 0

    @property
    def kept(self) -> int:
        """Right programs."""
        return self.statuses[Status.OK.value]


def make(config: PairsConfig, say: Callable[[str], None] = print) -> Counts:
    """Verifies all draws of a folder; goes on where an earlier call stopped.

    Raises:
        ConfigError: Mistakes in the configuration.
        TrainingError: There are no draws, pairs of others are in the folder, there is no such
            device, or the machine failed (a full disk, a worker that was killed), so that nothing
            can be said of a program.
    """
    config.check()
    sources = draws.shards(config.draws)
    missing = [path for path in sources if not _target(config, path).exists()]
    for path in sorted(config.out.glob("pairs-*.parquet")):
        _check_origin(path, config.draws)
    say(f"{len(sources) - len(missing)} of {len(sources)} shards are there")
    for done, path in enumerate(_verified(config, missing), len(sources) - len(missing) + 1):
        say(f"{done} of {len(sources)}: {path.name}")
    return count(read_verdicts(config.out))


def _verified(config: PairsConfig, missing: list[Path]) -> Iterator[Path]:
    """Verifies files of draws, in this process or in several; yields what has been written."""
    if not missing:
        return
    if config.workers == 1:
        with _Verifier(config) as verifier:
            yield from map(verifier.verify, missing)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(config.workers, context, _open) as processes:
        try:
            tasks = [processes.submit(_verify, config, path) for path in missing]
            for one in as_completed(tasks):
                yield one.result()
        except BrokenProcessPool as error:
            raise TrainingError(
                "a worker was killed, perhaps for want of memory; the same command goes on, and"
                " fewer --workers need less"
            ) from error
        except BaseException:  # each would finish its file, and another that it was given already
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            raise


def _open() -> None:
    """Begins a process of several: it ends with its parent, who alone heeds a Ctrl-C."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def _verifier(config: PairsConfig) -> _Verifier:
    """That of this process. Made by its first task, so that what goes wrong is told."""
    verifier = _Verifier(config)
    Finalize(None, verifier.close, exitpriority=1)
    return verifier


def _verify(config: PairsConfig, path: Path) -> Path:
    return _verifier(config).verify(path)


class _Verifier:
    """Verifies files of draws on one evaluator, building and compiling ahead of it."""

    def __init__(self, config: PairsConfig) -> None:
        self._config = config
        meta = draws.read_meta(config.draws)
        self._specs = draws.specs(meta["smallest"], meta["largest"], meta["seed"])
        self._drawn: list[MatrixSpec] = []
        share = config.compilers
        settings = Settings(precision=None, compilers=share, converters=share)
        try:
            self._evaluator = Evaluator(config.device, settings)
        except DeviceUnavailable as error:
            raise TrainingError(f"--device {config.device}: {error}") from error

    def __enter__(self) -> _Verifier:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the evaluator."""
        self._evaluator.close()

    def verify(self, path: Path) -> Path:
        """Verifies the draws of a file and writes what became of them; returns that file."""
        table = pq.read_table(path)
        groups = [list(rows) for _, rows in groupby(table.to_pylist(), lambda row: row["turn"])]
        found: list[dict[str, Any]] = []
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self._prepare, groups[0]) if groups else None
            for group, following in zip(groups, [*groups[1:], None], strict=True):
                assert coming is not None
                matrix = coming.result()
                coming = ahead.submit(self._prepare, following) if following else None
                for op, dtype in product(Op, DType):
                    mine = [r for r in group if (r["op"], r["dtype"]) == (op.value, dtype.value)]
                    programs = [KernelProgram(AUTHOR, row["text"]) for row in mine]
                    self._evaluator.convert_ahead(Problem(op, matrix, 1, dtype), programs)
                found += [self._judged(matrix, row) for row in group]
                self._evaluator.release(matrix)
        target = _target(self._config, path)
        verdicts = pa.Table.from_pylist(found)
        origin = {**(verdicts.schema.metadata or {}), b"draws": _file_digest(path)}
        try:
            with replacing(target) as draft:
                pq.write_table(verdicts.replace_schema_metadata(origin), draft, compression="zstd")
        except OSError as error:
            raise TrainingError(f"{target}: {error}; the same command goes on") from error
        return target

    def _prepare(self, group: list[dict[str, Any]]) -> Matrix:
        """The matrix of some draws, whose programs are compiled by then."""
        turn = group[0]["turn"]
        while len(self._drawn) <= turn:
            self._drawn.append(next(self._specs))
        for dtype in DType:
            texts = [row["text"] for row in group if row["dtype"] == dtype.value]
            self._evaluator.compile_ahead([KernelProgram(AUTHOR, text) for text in texts], dtype)
        matrix: Matrix = self._drawn[turn].build()
        return matrix

    def _judged(self, matrix: Matrix, row: Mapping[str, Any]) -> dict[str, Any]:
        """A draw with its verdict."""
        if row["matrix_digest"] != matrix.digest:
            return with_verdict(row, OTHER)
        problem = Problem(Op(row["op"]), matrix, row["n"], DType(row["dtype"]))
        answer = KernelProgram(AUTHOR, row["text"])
        verdict = self._evaluator.evaluate(problem, answer)
        if verdict.status is Status.INFRASTRUCTURE_ERROR:
            raise TrainingError(f"{problem.key}: {verdict.error}; the same command goes on")
        binary = self._evaluator.binary(answer, problem.dtype) if verdict.ok else b""
        return with_verdict(row, verdict.status.value, verdict.error, binary)


def with_verdict(
    row: Mapping[str, Any], status: str, error: str = "", binary: bytes = b""
) -> dict[str, Any]:
    """A draw with what became of it, and what tells programs apart."""
    return {
        **row,
        "status": status,
        "error": error,
        "key": describe(row["text"]),
        "normal_digest": digest(normalised(row["text"])),
        "binary": hashlib.blake2b(binary, digest_size=8).hexdigest() if binary else "",
    }


def _target(config: PairsConfig, path: Path) -> Path:
    return config.out / path.name.replace("draws-", "pairs-")


def _check_origin(path: Path, folder: Path) -> None:
    """Holds a file of verdicts to the draws that it is of.

    Raises:
        TrainingError: It is of others, or cannot be read.
    """
    source = folder / path.name.replace("pairs-", "draws-")
    try:
        origin = (pq.read_schema(path).metadata or {}).get(b"draws")
    except (OSError, pa.ArrowException) as error:
        raise TrainingError(f"{path}: {error}; delete it, the same command goes on") from error
    if not source.exists() or origin != _file_digest(source):
        raise TrainingError(f"{path}: is of other draws than {source}; give another folder")


def _file_digest(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest().encode()


def read_verdicts(folder: Path) -> pa.Table:
    """All draws of a folder of pairs with their verdicts.

    Raises:
        TrainingError: There are none.
    """
    tables = [table for path in sorted(folder.glob("pairs-*.parquet")) if (table := _read(path))]
    if not tables:
        raise TrainingError(f"{folder}: has no pairs; make them with python -m training pairs")
    return pa.concat_tables(tables)


def _read(path: Path) -> pa.Table | None:
    table = pq.read_table(path)
    return table if table.num_rows else None


def read_pairs(*folders: Path) -> pa.Table:
    """All right programs of some folders with the matrices that they are for.

    Raises:
        TrainingError: One has none.
    """
    verdicts = pa.concat_tables(map(read_verdicts, folders))
    return verdicts.filter(pc.equal(verdicts["status"], Status.OK.value))


def count(verdicts: pa.Table) -> Counts:
    """What became of draws."""
    right = verdicts.filter(pc.equal(verdicts["status"], Status.OK.value))
    return Counts(
        Counter(verdicts["status"].to_pylist()),
        Counter(right["strategy"].to_pylist()),
        len(set(right["turn"].to_pylist())),
    )
