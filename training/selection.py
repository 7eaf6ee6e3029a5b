"""Which candidate of a fine-tuning run to keep: whose sampled programs are right most often.

Loss does not tell: at the same loss one seed compiled 0.86 and another 0.59 of its programs.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.harness.files import replacing
from suite.matrices.base import MatrixSpec
from suite.matrices.splits import Split, sampled
from suite.problem import Op
from training import seen
from training.answers import Question, evaluator, judge, write
from training.policies import load
from training.sft import SftConfig

TEMPERATURE = 0.8
ENTRIES = (3e3, 1e5)  # of a matrix: its structure decides what is written, its size takes time
MATRICES = 64  # at most
COLUMNS = 32  # of B
ROWS = {"cuda": 512, "cpu": 8}


def choose(
    config: SftConfig,
    candidates: Mapping[int, Path],
    device: str,
    path: Path,
    say: Callable[[str], None],
    over: Callable[[], bool] = lambda: False,
) -> int | None:
    """The step of the best candidate: by right programs, then by those that compile, then the last.

    Args:
        config: Of the run; ``select`` programs are sampled of each candidate.
        candidates: Folders of adapters by step.
        device: Where the model runs.
        path: Keeps what was found, so that a stopped session does not find it again.
        say: Gets a line for each candidate.
        over: Whether the session must stop.

    Returns:
        The step; None where the session stopped before all were judged.

    Raises:
        TrainingError: Nothing verifies, or an adapter cannot be loaded.
    """
    known: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    todo = {step: folder for step, folder in candidates.items() if str(step) not in known}
    if todo:
        specs = problems(config.select)
        with evaluator(config.judge) as judging:
            looked = list(seen.look_at(specs))
            questions = [
                Question(one, op, 1 if op is Op.SPMV else COLUMNS) for one in looked for op in Op
            ]
            for step, folder in todo.items():
                if over():
                    return None
                known[str(step)] = _rates(config, folder, device, judging, specs, questions)
                with replacing(path) as draft:
                    draft.write_text(json.dumps(known, indent=1), encoding="utf-8")
                found = known[str(step)]
                say(
                    f"candidate of step {step:,}: {found['compile_rate']:.3f} compile,"
                    f" {found['correct_rate']:.3f} right, of {found['programs']:.0f}"
                )
    return max(candidates, key=lambda step: (*_merit(known[str(step)]), step))


def problems(programs: int) -> list[MatrixSpec]:
    """Matrices of the validation split, as many as so many programs are spread over."""
    count = min(max(programs // len(Op), 1), MATRICES)
    return list(itertools.islice(sampled(Split.VALIDATION, ENTRIES), count))


def _rates(
    config: SftConfig,
    folder: Path,
    device: str,
    judging: Any,
    specs: Sequence[MatrixSpec],
    questions: Sequence[Question],
) -> dict[str, float]:
    who = load(config.base, folder, device)
    samples = max(config.select // len(questions), 1)
    written = write(
        who,
        questions,
        samples,
        TEMPERATURE,
        judging.facts.arch,
        ROWS[device],
        config.seed,
        config.longest,
    )
    by_matrix: dict[str, list[Any]] = {}
    for question, programs in zip(questions, written, strict=True):
        by_matrix.setdefault(question.matrix.matrix, []).append((question, programs))
    verdicts = [
        verdict
        for _, found in judge(judging, specs, by_matrix.__getitem__)
        for _, verdicts in found
        for verdict in verdicts
    ]
    return {
        "programs": len(verdicts),
        "compile_rate": sum(v.status.compiled for v in verdicts) / len(verdicts),
        "correct_rate": sum(v.ok for v in verdicts) / len(verdicts),
    }


def _merit(found: Mapping[str, float]) -> tuple[float, float]:
    return found["correct_rate"], found["compile_rate"]
