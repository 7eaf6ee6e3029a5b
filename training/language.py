"""Texts in the program language, so that the tokenizer knows its words: prompts and programs.

The corpus has CUDA but no ``//!`` lines, and names such as ``row_ptr`` or ``slice_ptr`` are rare in
it. These are the teacher's own programs for small training matrices, each after its prompt: what
the model will read and write. A program that holds a baseline of this suite is left out.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count as numbers
from itertools import islice

from suite.matrices.base import Matrix, MatrixSpec
from suite.matrices.splits import Split, sampled
from suite.models.prompt import END, as_text, header
from suite.models.sampler import sample, scale
from training.corpus.exclude import Exclusion, baselines
from training.draws import problems
from training.teacher.space import Asked, draw

ENTRIES = (1_000, 10_000)  # of a matrix; larger ones read alike and take longer
PER_MATRIX = 30
SHOWN = 16  # nonzeros of a prompt: digits stand alone, so there is little to learn from more
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100")


def samples(count: int, seed: int = 0, workers: int = 1) -> Iterator[str]:
    """``count`` texts, each a prompt followed by a program of the teacher.

    Args:
        count: How many.
        seed: Of matrices and programs.
        workers: Processes; the texts do not depend on it.
    """
    exclusion = Exclusion(baselines())
    drawn = (pair for pairs in _all(count, seed, workers) for pair in pairs)
    return islice((head + text for head, text in drawn if not exclusion.holds(text)), count)


def _all(count: int, seed: int, workers: int) -> Iterator[list[tuple[str, str]]]:
    """Pairs of one matrix after the other."""
    specs = zip(sampled(Split.TRAIN, ENTRIES, seed), numbers())
    if workers == 1:
        yield from (_on_spec(spec, seed, turn) for spec, turn in specs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        while True:  # what a text is left out for is known late, so matrices come in portions
            portion = list(islice(specs, -(-count // PER_MATRIX)))
            specs_of, turns = zip(*portion, strict=True)
            yield from pool.map(_on_spec, specs_of, [seed] * len(turns), turns, chunksize=4)


def _on_spec(spec: MatrixSpec, seed: int, turn: int) -> list[tuple[str, str]]:
    return list(_on(spec.build(), seed, turn))


def _on(matrix: Matrix, seed: int, turn: int) -> Iterator[tuple[str, str]]:
    """Prompts and programs for a matrix."""
    rng = random.Random(f"language {seed} {turn}")
    size, shown = scale(matrix.csr), as_text(sample(matrix.csr, SHOWN))
    asked: Asked | None = None
    for problem in problems(matrix, PER_MATRIX, rng):
        asked = Asked(problem, asked)
        head = header(
            problem.op, problem.columns, problem.dtype.short, rng.choice(ARCHITECTURES), size
        )
        yield f"{head}{shown}{END}", draw(rng, asked).text
