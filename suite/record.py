"""The record of a campaign: what was asked, and one flat row for each answer.

Rates divide by what was asked, so nothing that was asked may vanish: an ``Ask`` is written down
before anything runs, and ``missing`` makes the row of an answer that never came.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from suite.author import Kind
from suite.evaluation import Evaluation, Status, Timing
from suite.problem import DType, Op, Problem, key_of, label_of
from suite.program import Answer

SCHEMA = 1
LOG_LIMIT = 4000  # characters of compiler output kept in a row


class RecordError(ValueError):
    """A stored ask or row that this version cannot read."""


@dataclass(frozen=True)
class Ask:
    """One author asked for answers to one problem. Known before the matrix is built.

    Attributes:
        test: Node id of the pytest item that measures it.
        op: The operation.
        columns: Dense columns; 1 for SpMV.
        dtype: Precision.
        matrix: Name of the matrix.
        family: Its structure.
        author: Name of the author.
        kind: What the author is.
        samples: Answers asked for.
    """

    test: str
    op: Op
    columns: int
    dtype: DType
    matrix: str
    family: str
    author: str
    kind: Kind
    samples: int = 1

    @property
    def label(self) -> str:
        """Operation with its dense columns, as ``Problem.label``."""
        return label_of(self.op, self.columns)

    @property
    def problem_key(self) -> str:
        """Name of the problem, as ``Problem.key``."""
        return key_of(self.label, self.matrix, self.dtype)

    @property
    def key(self) -> str:
        """Name of the ask, unique within a campaign."""
        return f"{self.problem_key}/{self.author}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Reads what ``to_dict`` wrote.

        Raises:
            RecordError: A field is missing or has an unknown value.
        """
        try:
            enums = {
                "op": Op(data["op"]),
                "dtype": DType(data["dtype"]),
                "kind": Kind(data["kind"]),
            }
            return cls(**{**_known(cls, data), **enums})
        except (KeyError, ValueError, TypeError) as error:
            raise RecordError(f"unreadable ask: {error}") from error


@dataclass(frozen=True)
class Row:
    """One answer and its verdict, flat.

    Attributes:
        schema: Version of this shape.
        campaign: Identifier of the campaign.
        test: Node id of the pytest item.
        op: Operation.
        label: Operation with its dense columns: ``spmv``, ``spmm32``.
        matrix: Name of the matrix.
        family: Structure of the matrix.
        dtype: Precision.
        columns: Dense columns K.
        author: Who answered.
        kind: What the author is.
        sample: Which of the author's answers, from 0.
        answers: How many answers the author gave, this one included.
        status: The verdict.
        unanswered: Made up because no verdict was written; it takes part in no rate.
        error: One line on what went wrong; empty exactly when ``ok``.
        detail: Which algorithm a library author chose.
        log: Compiler output, cut to ``LOG_LIMIT`` characters.
        program_digest: Identifies the program's text; empty when none was written.
        matrix_digest: Identifies the matrix; empty when it was not built, like ``matrix_source``.
        matrix_source: How to get the matrix again.
        rows: M; None when the matrix was not built, like ``cols`` (N), ``nnz`` (Z) and ``flops``.
        device: Name of the device; empty when none was reached.
        hot_us: Median device time of one multiplication, back to back; ``low`` and ``high`` are its
            95 % interval, ``samples`` every sample; ``launches`` multiplications per sample;
            ``settled`` whether the interval became tight. The same for ``cold``.
        fresh_us: As hot, but into an output that holds no earlier answer.
        prepare_us: Device time in which the program derives its own arrays, once for many runs.
        copy_gbps: What the GPU copies, in 10⁹ bytes a second.
        sm_mhz: Lowest clock of the multiprocessors that was seen while measuring.
        disturbed: What was wrong with the GPU while measuring, also when repeated; empty where
            nothing was.
        attempts: How often it was measured.
        emulated_us: Host time of one emulated run; never a basis for a speedup.
        registers: Registers per thread; the compiler's other figures are bytes.
        format: What the program reads: ``csr``, ``sell c=32 sigma=1024``.
        derived_bytes: Bytes of what it derives from that, once for many runs.
        format_bytes: Bytes of the format's and derived arrays that a multiplication takes.
        conversion_ms: Host time of converting the matrix to the format.
        compile_ms: Time of compilation.
        wall_ms: Time from asking to verdict without compilation.
        error_ratio: Largest error over its bound; infinite where an output was not finite.
        checks: Output comparisons made.
        bytes_moved: Compulsory traffic: those arrays, and each dense operand once.
        flops: Two for each entry and column.
    """

    campaign: str
    test: str
    op: Op
    label: str
    matrix: str
    family: str
    dtype: DType
    columns: int
    author: str
    kind: Kind
    sample: int
    status: Status
    answers: int = 1
    unanswered: bool = False
    error: str = ""
    detail: str = ""
    log: str = ""
    program_digest: str = ""
    matrix_digest: str = ""
    matrix_source: str = ""
    rows: int | None = None
    cols: int | None = None
    nnz: int | None = None
    device: str = ""
    hot_us: float | None = None
    hot_low_us: float | None = None
    hot_high_us: float | None = None
    hot_samples_us: tuple[float, ...] = ()
    hot_launches: int | None = None
    hot_settled: bool | None = None
    cold_us: float | None = None
    cold_low_us: float | None = None
    cold_high_us: float | None = None
    cold_samples_us: tuple[float, ...] = ()
    cold_launches: int | None = None
    cold_settled: bool | None = None
    fresh_us: float | None = None
    prepare_us: float | None = None
    copy_gbps: float | None = None
    sm_mhz: int | None = None
    disturbed: str = ""
    attempts: int = 1
    emulated_us: float | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    stack_bytes: int | None = None
    format: str = ""
    derived_bytes: int = 0
    format_bytes: int | None = None
    conversion_ms: float | None = None
    compile_ms: float | None = None
    wall_ms: float | None = None
    error_ratio: float | None = None
    checks: int = 0
    bytes_moved: int | None = None
    flops: int | None = None
    schema: int = SCHEMA

    @property
    def problem_key(self) -> str:
        """Name of the problem, as ``Problem.key``."""
        return key_of(self.label, self.matrix, self.dtype)

    @property
    def ask_key(self) -> str:
        """Name of the ask that this row answers."""
        return f"{self.problem_key}/{self.author}"

    @property
    def key(self) -> tuple[str, int]:
        """What makes the row unique within a campaign: the ask and the sample."""
        return self.ask_key, self.sample

    @property
    def ok(self) -> bool:
        """Whether the answer compiled, ran and was right."""
        return self.status is Status.OK

    def to_dict(self) -> dict[str, Any]:
        """Plain values for strict JSON; numbers that are not finite become None."""
        plain = dataclasses.asdict(self)
        return {name: _finite(value) for name, value in plain.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Reads what ``to_dict`` wrote; fields that this version does not know are dropped.

        Raises:
            RecordError: A newer schema, a missing field or an unknown value.
        """
        try:
            if data.get("schema", SCHEMA) > SCHEMA:
                raise RecordError(f"schema {data['schema']}; this version reads up to {SCHEMA}")
            typed = {
                "op": Op(data["op"]),
                "dtype": DType(data["dtype"]),
                "kind": Kind(data["kind"]),
                "status": Status(data["status"]),
                "hot_samples_us": tuple(data.get("hot_samples_us") or ()),
                "cold_samples_us": tuple(data.get("cold_samples_us") or ()),
            }
            return cls(**{**_known(cls, data), **typed})
        except (KeyError, ValueError, TypeError) as error:
            raise RecordError(f"unreadable row: {error}") from error


def judged(base: Row, problem: Problem, answer: Answer, verdict: Evaluation) -> Row:
    """The row of an answer that was evaluated; ``base`` says who was asked, and which it is."""
    rows, cols = problem.matrix.csr.shape
    resources = verdict.resources
    dense = (rows + cols) * problem.columns * problem.dtype.numpy.itemsize
    return dataclasses.replace(
        base,
        status=verdict.status,
        error=" ".join(verdict.error.split()),
        detail=verdict.detail,
        log=verdict.log[:LOG_LIMIT],
        program_digest=answer.digest,
        matrix_digest=problem.matrix.digest,
        matrix_source=problem.matrix.source,
        rows=rows,
        cols=cols,
        nnz=problem.matrix.csr.nnz,
        device=verdict.device,
        **_times("hot", verdict.hot),
        **_times("cold", verdict.cold),
        fresh_us=verdict.fresh_us,
        prepare_us=verdict.prepare_us,
        **(dataclasses.asdict(verdict.conditions) if verdict.conditions else {}),
        emulated_us=verdict.emulated_us,
        registers=resources.registers if resources else None,
        spill_bytes=resources.spill_bytes if resources else None,
        shared_bytes=resources.shared_bytes if resources else None,
        stack_bytes=resources.stack_bytes if resources else None,
        format=verdict.format,
        derived_bytes=verdict.derived_bytes,
        format_bytes=verdict.format_bytes,
        conversion_ms=verdict.conversion_ms,
        compile_ms=verdict.compile_ms,
        wall_ms=verdict.wall_ms,
        error_ratio=verdict.error_ratio,
        checks=verdict.checks,
        bytes_moved=None if verdict.format_bytes is None else verdict.format_bytes + dense,
        flops=problem.flops,
    )


def missing(
    campaign: str,
    ask: Ask,
    sample: int,
    error: str,
    status: Status = Status.INFRASTRUCTURE_ERROR,
    log: str = "",
    answers: int = 1,
) -> Row:
    """The row of an answer without a verdict on a program, for example because a worker died."""
    return Row(
        campaign=campaign,
        test=ask.test,
        op=ask.op,
        label=ask.label,
        matrix=ask.matrix,
        family=ask.family,
        dtype=ask.dtype,
        columns=ask.columns,
        author=ask.author,
        kind=ask.kind,
        sample=sample,
        status=status,
        answers=answers,
        error=" ".join(error.split()),
        log=log[-LOG_LIMIT:],
    )


def complete(campaign: str, asks: list[Ask], rows: list[Row], reason: str) -> list[Row]:
    """Every row in the order asked, with one made up for each answer that never came.

    How many answers an author gives is up to it (a deterministic one gives one), and its first row
    says it.
    """
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        found.setdefault(row.ask_key, {})[row.sample] = row
    out: list[Row] = []
    for ask in {ask.key: ask for ask in asks}.values():
        have = found.pop(ask.key, {})
        expected = max((row.answers for row in have.values()), default=expected_answers(ask))
        for sample in set(range(expected)) - set(have):
            made_up = missing(campaign, ask, sample, reason, answers=expected)
            have[sample] = dataclasses.replace(made_up, unanswered=True)
        out += [have[sample] for sample in sorted(have)]
    for have in found.values():  # answered, though the list of asks was lost
        out += [have[sample] for sample in sorted(have)]
    return out


def expected_answers(ask: Ask) -> int:
    """How many answers an ask is owed as long as its author has not spoken."""
    return ask.samples if ask.kind is Kind.MODEL else 1


def _times(name: str, timing: Timing | None) -> dict[str, Any]:
    if timing is None:
        return {}
    return {
        f"{name}_us": timing.median_us,
        f"{name}_low_us": timing.low_us,
        f"{name}_high_us": timing.high_us,
        f"{name}_samples_us": timing.samples_us,
        f"{name}_launches": timing.launches,
        f"{name}_settled": timing.settled,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_PLAIN = {  # what JSON may hold for a field, by the field's annotation
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "bool | None": (bool, type(None)),
    "float | None": (int, float, type(None)),
    "tuple[float, ...]": (list, tuple),
}


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``cls`` in ``data``.

    Raises:
        TypeError: A field holds what it may not.
    """
    found = {}
    for field in dataclasses.fields(cls):
        if field.name in data:
            value = data[field.name]
            if not isinstance(value, _PLAIN.get(str(field.type), object)):
                raise TypeError(f"{field.name} is {value!r}")
            found[field.name] = value
    return found
