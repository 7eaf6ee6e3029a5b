"""Searches the teacher's space for each problem and keeps every measurement.

Each problem has a file, written when its search is done. A search that was stopped is proposed
again by the next call, and what was measured before is known by then, so it goes on where it was.
For the fastest after 1, 8, 64 and 1,000 measurements the time is taken once more: the fastest of
many is partly the luckiest.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from suite.harness.evaluate import DeviceUnavailable, Evaluator, Settings
from suite.harness.files import replacing
from suite.harness.timing import Precision
from suite.matrices.base import Matrix, MatrixError, MatrixSpec
from suite.matrices.sets import select
from suite.problem import Op, Problem, label_of
from suite.program import KernelProgram
from training.autotune_config import BUDGETS, AutotuneConfig
from training.errors import ConfigError, TrainingError
from training.judging import Evaluates, Judge, Judged
from training.measured import Measurements, device_key
from training.outcome import Outcome, outcome_of
from training.pace import TimeBox, clock_text
from training.recover import nearest
from training.search import SEARCHES
from training.teacher.space import Asked, Program

KNOWN = "known.sqlite"
AUTHOR = "autotune"


class Device(Evaluates, Protocol):
    """What a search needs of an evaluator."""

    settings: Settings

    def close(self) -> None:
        """Ends its processes."""
        ...


@dataclass
class Progress:
    """What one problem's search has found so far.

    Attributes:
        rows: A row for each measurement.
        seconds: Wall time of the search.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def open_device(config: AutotuneConfig) -> Device:
    """The evaluator that a configuration asks for.

    Raises:
        TrainingError: There is no such device.
    """
    precision = Precision(relative=0.02, least=5, most=30, budget_ms=config.budget_ms)
    try:
        return Evaluator(config.device, Settings(precision, run_s=config.run_s, compilers=0))
    except DeviceUnavailable as error:
        raise TrainingError(f"--device {config.device}: {error}") from error


def autotune(
    config: AutotuneConfig,
    say: Callable[[str], None],
    box: TimeBox | None = None,
    opened: Callable[[AutotuneConfig], Device] = open_device,
) -> bool:
    """Searches for every problem that has no file yet.

    Args:
        config: What to do.
        say: Gets a line for each problem.
        box: When to stop; by default the configuration's minutes.
        opened: Opens what judges programs.

    Returns:
        Whether all are done.

    Raises:
        ConfigError: Lists every mistake of the configuration.
        TrainingError: The device cannot be used, or fails.
    """
    config.check()
    try:
        specs = select(config.matrices)
    except MatrixError as error:
        raise ConfigError([f"--matrices: {line}" for line in str(error).splitlines()]) from error
    box = box or TimeBox(config.minutes)
    left = [
        (spec, labels)
        for spec in specs
        if (labels := [one for one in asked_of(config) if not path_of(config, spec, one).exists()])
    ]
    if not left:
        return True
    with ExitStack() as closing:
        device = opened(config)
        closing.callback(device.close)
        known = Measurements(
            config.known or config.out / KNOWN, device_key(device.facts, device.settings)
        )
        closing.callback(known.close)
        ahead = closing.enter_context(ThreadPoolExecutor(1, "matrix"))
        builds = [ahead.submit(spec.build) for spec, _ in left[:1]]
        for number, (spec, labels) in enumerate(left):
            if number + 1 < len(left):
                builds.append(ahead.submit(left[number + 1][0].build))
            matrix = builds.pop(0).result()
            done = _matrix(config, device, known, box, (spec, matrix), labels, say)
            device.release(matrix)
            if not done:
                ahead.shutdown(wait=False, cancel_futures=True)
                return False
    return True


def asked_of(config: AutotuneConfig) -> list[tuple[Op, int]]:
    """Operations with their dense columns."""
    found: list[tuple[Op, int]] = []
    for op in map(Op, config.ops.split(",")):
        widths = [1] if op is Op.SPMV else [int(part) for part in config.columns.split(",")]
        found += [(op, columns) for columns in widths]
    return found


def path_of(config: AutotuneConfig, spec: MatrixSpec, asked: tuple[Op, int]) -> Path:
    """The file of a problem's results."""
    return results_in(config) / f"{label_of(*asked)}--{spec.name}.parquet"


def results_in(config: AutotuneConfig) -> Path:
    """The folder of the results of one way of searching."""
    seeded = f"-from-{config.start.stem}" if config.start else ""
    return config.out / f"{config.search}-{config.measurements}-seed{config.seed}{seeded}"


def _matrix(
    config: AutotuneConfig,
    device: Device,
    known: Measurements,
    box: TimeBox,
    of: tuple[MatrixSpec, Matrix],
    labels: Sequence[tuple[Op, int]],
    say: Callable[[str], None],
) -> bool:
    spec, matrix = of
    asked: Asked | None = None
    for op, columns in labels:
        problem = Problem(op, matrix, columns)
        asked = Asked(problem, asked)
        judge = Judge(device, known)
        found = search(config, asked, judge, box)
        if found is None:
            return False
        reference = judge.reference(problem)
        _confirm(found.rows, problem, device)
        if config.baselines == "on":
            found.rows += list(_baselines(problem, judge))
        for row in found.rows:
            row |= _about(config, problem, reference, device)
        with replacing(path_of(config, spec, (op, columns))) as draft:
            pq.write_table(pa.Table.from_pylist(found.rows), draft)
        say(_line(problem, found, reference))
    return True


def search(config: AutotuneConfig, asked: Asked, judge: Judge, box: TimeBox) -> Progress | None:
    """Proposes and judges until the measurements are used up, or nothing new is found.

    Returns:
        None where the session had to stop before.
    """
    problem = asked.problem
    reference = judge.reference(problem)
    fixed = (reference and reference.hot_us) or 1.0
    start = starts(config.start, problem)
    searching = SEARCHES[config.search](asked, f"{config.seed} {problem.key}", start)
    found = Progress()
    started = time.perf_counter()
    while len(found.rows) < config.measurements:
        if box.over:
            return None
        wanted = min(config.batch, config.measurements - len(found.rows))
        proposed = [one for _ in range(wanted) if (one := searching.ask()) is not None]
        if not proposed:
            break
        pairs = [(problem, KernelProgram(AUTHOR, program.text)) for program in proposed]
        judge.compile(pairs)
        for program, (_, text), judged in zip(proposed, pairs, judge.judge(pairs), strict=True):
            searching.tell(program, _logarithm(judged.outcome, fixed))
            elapsed = time.perf_counter() - started
            found.rows.append(_row(len(found.rows), program, text, judged, elapsed))
    found.seconds = time.perf_counter() - started
    return found


def starts(path: Path | None, problem: Problem) -> list[Program]:
    """Points of the space near the programs that a file has for a problem, none twice.

    Raises:
        TrainingError: The file cannot be read.
    """
    if path is None:
        return []
    wanted = [("matrix", problem.matrix.name), ("op", problem.op.value), ("n", problem.columns)]
    filters = [(name, "==", value) for name, value in wanted]
    try:
        texts = pq.read_table(path, columns=["text"], filters=filters)["text"].to_pylist()
    except (OSError, pa.ArrowException) as error:
        first = str(error).splitlines()[0]
        raise TrainingError(f"--start {path}: {first}; columns are matrix, op, n, text") from error
    found = (nearest(text) for text in dict.fromkeys(texts))
    return list(dict.fromkeys(one for one in found if one is not None))


def _logarithm(outcome: Outcome, fixed: float) -> float | None:
    if not outcome.ok:
        return None
    return 0.0 if outcome.hot_us is None else math.log(outcome.hot_us / fixed)


def _row(
    order: int, program: Program, text: KernelProgram, judged: Judged, elapsed: float
) -> dict[str, Any]:
    return {
        "author": AUTHOR,
        "order": order,
        "strategy": program.strategy,
        "parameters": json.dumps(dict(program.parameters)),
        "text": text.text,
        "elapsed_s": elapsed,
        **_outcome(judged.outcome),
        "identity": judged.identity,
        "known": judged.known,
        "again_us": None,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "status": outcome.status.value,
        "error": outcome.error,
        "format": outcome.format,
        "hot_us": outcome.hot_us,
        "cold_us": outcome.cold_us,
        "prepare_us": outcome.prepare_us,
        "disturbed": outcome.disturbed,
    }


def _confirm(rows: list[dict[str, Any]], problem: Problem, device: Device) -> None:
    """Times those again that were the fastest after some budget."""
    for budget in BUDGETS:
        timed = [row for row in rows[:budget] if row["hot_us"] is not None]
        best = min(timed, key=lambda row: float(row["hot_us"]), default=None)
        if best is not None and best["again_us"] is None:
            again = outcome_of(device.evaluate(problem, KernelProgram(AUTHOR, best["text"])))
            best["again_us"] = again.hot_us


def _baselines(problem: Problem, judge: Judge) -> Iterator[dict[str, Any]]:
    """The suite's hand-tuned programs on the same problem, in the same session."""
    from suite.baselines.files import baselines

    authors = [author for author in baselines() if author.answers(problem.op.value)]
    answers = [(author.name, one) for author in authors for one in author.write(problem, 1)]
    pairs = [(problem, answer) for _, answer in answers]
    judge.compile(pairs)
    for (name, answer), judged in zip(answers, judge.judge(pairs), strict=True):
        plain = _row(-1, Program("", ()), answer, judged, 0.0)
        yield plain | {"author": name}


def _about(
    config: AutotuneConfig, problem: Problem, reference: Outcome | None, device: Device
) -> dict[str, Any]:
    return {
        "matrix": problem.matrix.name,
        "family": problem.matrix.family,
        "recipe": problem.matrix.source,
        "matrix_digest": problem.matrix.digest,
        "op": problem.op.value,
        "n": problem.columns,
        "dtype": problem.dtype.value,
        "search": config.search,
        "seed": config.seed,
        "device": device.facts.name,
        "cusparse_us": reference.hot_us if reference else None,
        "cusparse_cold_us": reference.cold_us if reference else None,
    }


def _line(problem: Problem, found: Progress, reference: Outcome | None) -> str:
    rows = [row for row in found.rows if row["author"] == AUTHOR]
    right = [row for row in rows if row["status"] == "ok"]
    timed = [row for row in right if row["hot_us"] is not None]
    said = f"{problem.key}: {len(right)} of {len(rows)} right"
    said += f", {sum(row['known'] for row in rows)} known, {clock_text(found.seconds)}"
    if timed and reference and reference.hot_us:
        best = min(timed, key=lambda row: float(row["hot_us"]))
        said += f", best {reference.hot_us / best['hot_us']:.2f} × cusparse ({best['strategy']})"
    return said
