"""Generates, judges and stores a model's answers; goes on where an earlier call stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from suite.harness.files import replacing
from suite.matrices import sets
from suite.matrices.base import MatrixError, MatrixSpec
from suite.program import KernelProgram
from training import seen
from training.answers import Question, evaluator, judge, write
from training.errors import ConfigError
from training.pace import TimeBox
from training.pairs import read_pairs
from training.rates import Answer, answer, plain, shown, statuses, strategies, table
from training.rates_config import RatesConfig
from training.settled import settle

PROGRAMS, ANSWERS, SUMMARY = "programs.parquet", "answers.parquet", "summary.json"
SEEN, DONE = "seen.parquet", "judged"
SESSION_ONLY = frozenset({"out", "pairs", "judge", "device", "workers", "minutes", "tracking"})
ROWS = {"cuda": 1024, "cpu": 8}


def rates(
    config: RatesConfig, say: Callable[[str], None], box: TimeBox | None = None
) -> dict[str, Any] | None:
    """Answers every question and sums up.

    Args:
        config: What is asked for.
        say: Gets a line of progress now and then.
        box: When to stop; by default the configuration's minutes.

    Returns:
        The summary; None where the session stopped before the end.

    Raises:
        ConfigError: Mistakes in the configuration, or another run lies in the folder.
        TrainingError: What must be put right first.
    """
    config.check()
    box = box or TimeBox(config.minutes)
    try:
        specs = sets.select(config.matrices)
    except MatrixError as error:
        raise ConfigError(str(error).splitlines()) from error
    config.out.mkdir(parents=True, exist_ok=True)
    mine = {k: str(v) for k, v in vars(config).items() if k not in SESSION_ONLY}
    settle(config.out, mine)
    known = _known(config.pairs)
    with evaluator(config.judge) as judging:
        questions = _questions(config, specs)
        written = _written(config, questions, judging.facts.arch, say)
        by_matrix: dict[str, list[tuple[Question, Sequence[KernelProgram]]]] = {}
        for question, programs in zip(questions, written, strict=True):
            by_matrix.setdefault(question.matrix.matrix, []).append((question, programs))
        todo = [s for s in specs if not _part(config, s.name).exists()]
        began = time.monotonic()
        for spec, found in judge(judging, todo, by_matrix.__getitem__):
            answers = [
                answer(question, program, verdict)
                for (question, programs), verdicts in found
                for program, verdict in zip(programs, verdicts, strict=True)
            ]
            with replacing(_part(config, spec.name)) as draft:
                pq.write_table(pa.Table.from_pylist(plain(answers)), draft)
            right, many = sum(one.ok for one in answers), len(answers)
            say(f"{spec.name}: {right} of {many} right")
            box.saved(time.monotonic() - began)  # the next matrix may take as long
            began = time.monotonic()
            if box.over:
                break
    if any(not _part(config, spec.name).exists() for spec in specs):
        return None
    return _sum_up(config, specs, known, say)


def _sum_up(
    config: RatesConfig,
    specs: Sequence[MatrixSpec],
    known: frozenset[str] | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    parts = [pq.read_table(_part(config, spec.name)) for spec in specs]
    answers = [Answer(**row) for row in pa.concat_tables(parts).to_pylist()]
    with replacing(config.out / ANSWERS) as draft:
        pq.write_table(pa.concat_tables(parts), draft)
    summary = {
        "config": {name: str(value) for name, value in vars(config).items()},
        "rates": table(answers, known),
        "strategies": strategies(answers),
        "statuses": statuses(answers),
    }
    with replacing(config.out / SUMMARY) as draft:
        draft.write_text(f"{json.dumps(summary, indent=1)}\n", encoding="utf-8")
    for line in shown(summary["rates"]):  # type: ignore[arg-type]
        say(line)
    return summary


def _questions(config: RatesConfig, specs: Sequence[MatrixSpec]) -> list[Question]:
    path = config.out / SEEN
    by_name = {s.matrix: s for s in seen.read(path).values()} if path.exists() else {}
    if by_name.keys() != {spec.name for spec in specs}:
        found = list(seen.look_at(specs, config.workers))
        seen.write(path, found)
        by_name = {s.matrix: s for s in found}
    return [
        Question(by_name[spec.name], op, columns)
        for spec in specs
        for op, columns in config.asked()
    ]


def _written(
    config: RatesConfig, questions: Sequence[Question], arch: str, say: Callable[[str], None]
) -> list[list[KernelProgram]]:
    """Programs for each question: of an earlier call, or new ones."""
    path = config.out / PROGRAMS
    if not path.exists():
        who = config.load()
        rows = config.rows or ROWS[who.model.device.type]
        say(f"writing {len(questions) * config.samples:,} programs for {arch}")
        written = write(
            who,
            questions,
            config.samples,
            config.temperature,
            arch,
            rows,
            config.seed,
            config.limit,
        )
        flat = [program for programs in written for program in programs]
        columns = {
            "text": [program.text for program in flat],
            "unfinished": [program.unfinished for program in flat],
        }
        with replacing(path) as draft:
            pq.write_table(pa.table(columns), draft)
    found = [
        KernelProgram("model", row["text"], turn % config.samples, row["unfinished"])
        for turn, row in enumerate(pq.read_table(path).to_pylist())
    ]
    return [found[at : at + config.samples] for at in range(0, len(found), config.samples)]


def _part(config: RatesConfig, matrix: str) -> Path:
    return config.out / DONE / f"{matrix}.parquet"


def _known(pairs: Sequence[Path]) -> frozenset[str] | None:
    return frozenset(read_pairs(*pairs)["normal_digest"].to_pylist()) if pairs else None
