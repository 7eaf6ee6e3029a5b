"""The small part of an ``Evaluation`` that learning and searching keep of each program."""

from __future__ import annotations

from dataclasses import dataclass

from suite.evaluation import Evaluation, Status


@dataclass(frozen=True)
class Outcome:
    """What became of a program on a problem.

    Attributes:
        status: As in the evaluation.
        error: One line; empty exactly when ``ok``.
        hot_us: Median time back to back, microseconds; None where it was not timed on a GPU.
        cold_us: Median time with a flushed L2, microseconds.
        prepare_us: Device time of deriving arrays, once for many multiplications.
        conversion_ms: Host milliseconds of the conversion to the format.
        format: What it reads: ``sell c=32 sigma=1024``.
        disturbed: What was wrong with the GPU while it was timed.
    """

    status: Status
    error: str = ""
    hot_us: float | None = None
    cold_us: float | None = None
    prepare_us: float | None = None
    conversion_ms: float | None = None
    format: str = ""
    disturbed: str = ""

    @property
    def ok(self) -> bool:
        """Whether it was right."""
        return self.status is Status.OK

    @property
    def judged(self) -> bool:
        """Whether this says something of the program, and not of the machine alone."""
        return self.status is not Status.INFRASTRUCTURE_ERROR


def outcome_of(evaluation: Evaluation) -> Outcome:
    """The part of an evaluation that is kept."""
    conditions = evaluation.conditions
    return Outcome(
        status=evaluation.status,
        error=evaluation.error,
        hot_us=evaluation.hot.median_us if evaluation.hot else None,
        cold_us=evaluation.cold.median_us if evaluation.cold else None,
        prepare_us=evaluation.prepare_us,
        conversion_ms=evaluation.conversion_ms,
        format=evaluation.format,
        disturbed=conditions.disturbed if conditions else "",
    )
