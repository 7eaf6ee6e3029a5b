"""What a model writes for many questions, and what becomes of it.

It is generated in large batches, then compiled ahead and verified matrix by matrix. Nothing is
timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from suite.evaluation import Evaluation
from suite.harness.evaluate import DeviceUnavailable, Evaluator, Settings
from suite.matrices.base import Matrix, MatrixSpec
from suite.models.decode import Choice
from suite.models.errors import ModelError
from suite.models.generate import Generator, Outcome, Request, seed_of
from suite.models.policy import Policy
from suite.models.prompt import header, parts
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from training.errors import TrainingError
from training.seen import Seen

LIMIT = 1024  # tokens of a program


@dataclass(frozen=True)
class Question:
    """A problem without its matrix.

    Attributes:
        matrix: What a model sees of it.
        op: The operation.
        columns: Of B; 1 for SpMV.
        dtype: Precision.
    """

    matrix: Seen
    op: Op
    columns: int = 1
    dtype: DType = DType.FLOAT32

    def prompt(self, policy: Policy, arch: str) -> tuple[int, ...]:
        """The same ids as ``Policy.prompt`` makes of the problem."""
        head = header(self.op, self.columns, self.dtype.short, arch, self.matrix.size)
        told = parts(head, self.matrix.shown, policy.style)
        pieces = [policy.encode(part) if isinstance(part, str) else part for part in told]
        return (*policy.begin, *(id for piece in pieces for id in piece))


def write(
    policy: Policy,
    questions: Sequence[Question],
    samples: int,
    temperature: float,
    arch: str,
    rows: int,
    seed: int = 0,
    limit: int = LIMIT,
) -> list[list[KernelProgram]]:
    """Programs for each question.

    Args:
        policy: Who writes.
        questions: For what.
        samples: How many for each.
        temperature: At which they are drawn; 0 takes the likeliest.
        arch: Architecture to write for.
        rows: Of a batch.
        seed: Of the samples.
        limit: Tokens of a program, at most.

    Raises:
        TrainingError: The model cannot read a prompt.
    """
    generator = Generator(
        policy.model,
        policy.end,
        policy.pad,
        len(policy.tokenizer),
        rows=rows,
        limit=limit,
        choice=Choice(temperature),
    )
    requests = []
    for question in questions:
        ids = question.prompt(policy, arch)
        requests += [Request(ids, seed_of(ids, sample, seed)) for sample in range(samples)]
    try:
        completions = generator.generate(requests)
    except ModelError as error:
        raise TrainingError(str(error)) from error
    programs = []
    for turn, one in enumerate(completions):
        cut = one.outcome is Outcome.LENGTH
        unfinished = f"the model came to no end within {limit} tokens" if cut else ""
        text = policy.decode(one.tokens)
        programs.append(KernelProgram("model", text, turn % samples, unfinished))
    return [programs[at : at + samples] for at in range(0, len(programs), samples)]


def evaluator(device: str) -> Evaluator:
    """Verifies on a device, and times nothing.

    Raises:
        TrainingError: There is no such device.
    """
    try:
        return Evaluator(device, Settings(precision=None, compilers=0))
    except DeviceUnavailable as error:
        raise TrainingError(f"--judge {device}: {error}") from error


Asked = tuple[Question, Sequence[KernelProgram]]


def judge(
    judging: Evaluator,
    specs: Sequence[MatrixSpec],
    asked: Callable[[str], Sequence[Asked]],
) -> Iterator[tuple[MatrixSpec, list[tuple[Asked, list[Evaluation]]]]]:
    """Verdicts on programs, matrix by matrix.

    While one matrix is judged, the next is built and its programs are compiled.

    Args:
        judging: From ``evaluator``.
        specs: The matrices.
        asked: Questions on a matrix of that name and what was written for them.

    Raises:
        TrainingError: A matrix is not the one that the model was shown.
    """
    with ThreadPoolExecutor(1) as ahead:

        def prepare(spec: MatrixSpec) -> Matrix:
            for question, programs in asked(spec.name):
                judging.compile_ahead([p for p in programs if not p.unfinished], question.dtype)
            return spec.build()

        coming = [ahead.submit(prepare, spec) for spec in specs[:1]]
        for turn, spec in enumerate(specs):
            matrix = coming.pop().result()
            coming += [ahead.submit(prepare, following) for following in specs[turn + 1 : turn + 2]]
            found = []
            for question, programs in asked(spec.name):
                if matrix.digest != question.matrix.digest:
                    raise TrainingError(f"{spec.name}: is built otherwise each time")
                found.append(((question, programs), _verdicts(judging, matrix, question, programs)))
            judging.release(matrix)
            yield spec, found


def _verdicts(
    judging: Evaluator, matrix: Matrix, question: Question, programs: Sequence[KernelProgram]
) -> list[Evaluation]:
    """A verdict on each program; equal texts are judged once."""
    problem = Problem(question.op, matrix, question.columns, question.dtype)
    judging.convert_ahead(problem, programs)
    known: dict[Any, Evaluation] = {}
    for program in programs:
        key = (program.text, program.unfinished)
        if key not in known:
            known[key] = judging.evaluate(problem, program)
    return [known[program.text, program.unfinished] for program in programs]
