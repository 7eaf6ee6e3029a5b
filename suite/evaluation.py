"""The verdict on one program for one problem.

The status decides which fields may exist: a time exists only beside ``ok``. Every rate in a report
and every rung of the training reward is read off ``Evaluation.status``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What became of a program, in the order of the steps it passes through."""

    PARSE_ERROR = "parse_error"
    BIND_ERROR = "bind_error"
    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    TIMEOUT = "timeout"
    MEMORY_FAULT = "memory_fault"
    WRONG_RESULT = "wrong_result"
    OK = "ok"
    # No verdict on the program:
    NOT_APPLICABLE = "not_applicable"
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    IMPOSSIBLE_TIME = "impossible_time"

    @property
    def compiled(self) -> bool:
        """Whether the compiler accepted the program (it may still have failed later)."""
        return self in _AFTER_COMPILER


_AFTER_COMPILER = frozenset(
    {
        Status.LOAD_ERROR,
        Status.TIMEOUT,
        Status.MEMORY_FAULT,
        Status.WRONG_RESULT,
        Status.OK,
        Status.IMPOSSIBLE_TIME,
    }
)


@dataclass(frozen=True)
class Timing:
    """Device time of one multiplication, in microseconds.

    Attributes:
        median_us: Median over the samples.
        low_us: Lower end of the 95 % confidence interval of the median.
        high_us: Upper end of that interval.
        samples_us: Every sample; each is the mean over ``launches`` back-to-back multiplications.
        launches: Multiplications per sample.
        settled: Whether the interval became tight before the budget ended.
    """

    median_us: float
    low_us: float
    high_us: float
    samples_us: tuple[float, ...]
    launches: int
    settled: bool

    def __post_init__(self) -> None:
        if not self.samples_us:
            raise ValueError("a timing needs at least one sample")
        for name in ("low_us", "median_us", "high_us"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"Timing.{name} must be finite and positive, not {value!r}")


@dataclass(frozen=True)
class Conditions:
    """How a GPU was when something was timed on it.

    Attributes:
        copy_gbps: What it copies, read and written bytes counted, in 10⁹ bytes a second.
        sm_mhz: Lowest clock of its multiprocessors that was seen while measuring.
        disturbed: What was wrong while measuring (throttling, another process, changing clocks);
            empty on a quiet GPU.
        attempts: How often it was measured until nothing was wrong, or that was given up.
    """

    copy_gbps: float | None = None
    sm_mhz: int | None = None
    disturbed: str = ""
    attempts: int = 1


@dataclass(frozen=True)
class Resources:
    """What the compiler gave the hungriest kernel of a program.

    Attributes:
        registers: Registers per thread.
        spill_bytes: Bytes spilled to local memory per thread (stores plus loads).
        shared_bytes: Static shared memory per block.
        stack_bytes: Stack frame per thread.
    """

    registers: int
    spill_bytes: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0


@dataclass(frozen=True)
class Evaluation:
    """The verdict on one program for one problem.

    Attributes:
        status: The step that failed, ``ok``, or why there is no verdict.
        error: One line on what was wrong, where, and what to do; empty exactly when ``ok``.
        log: Compiler output, empty when the compiler said nothing.
        device: Name of the device that judged it ("" when none was reached).
        resources: Compiler's figures; present only when the program compiled.
        error_ratio: Largest error over its bound (right means at most 1); present once it was
            checked.
        checks: Number of output comparisons made.
        hot: Back-to-back time, as in an iterative solver; only with ``ok``, only on a GPU.
        cold: Time with the L2 flushed before each run; only with ``ok``, only on a GPU.
        fresh_us: As hot, but into an output that holds no earlier answer; only with ``hot``.
        prepare_us: Device time in which the program derives its own arrays from the matrix, once
            for many multiplications; only with ``hot``.
        conditions: How the GPU was meanwhile; only where it was timed on one.
        emulated_us: Host time of one emulated run; only with ``ok``, only on the emulator, and
            never a basis for a speedup.
        format: What the program reads, as its header says: ``csr``, ``sell c=32 sigma=1024``.
        derived_bytes: Bytes of all that the program derives from it, before it multiplies.
        format_bytes: Bytes of every array of the format, or derived from it, that the program takes
            when it multiplies.
        conversion_ms: Host milliseconds that converting the matrix to the format took.
        compile_ms: Milliseconds of compilation, 0 when the binary came from the cache.
        wall_ms: Milliseconds from asking to verdict, compilation excluded.
        detail: Which algorithm a library author chose, or which tools of a sanitizer found nothing.
    """

    status: Status
    error: str = ""
    log: str = ""
    device: str = ""
    resources: Resources | None = None
    error_ratio: float | None = None
    checks: int = 0
    hot: Timing | None = None
    cold: Timing | None = None
    fresh_us: float | None = None
    prepare_us: float | None = None
    conditions: Conditions | None = None
    emulated_us: float | None = None
    format: str = ""
    derived_bytes: int = 0
    format_bytes: int | None = None
    conversion_ms: float | None = None
    compile_ms: float | None = None
    wall_ms: float | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        ok = self.status is Status.OK
        if ok == bool(self.error):
            raise ValueError(
                f"status {self.status} with error {self.error!r}: one says ok, one not"
            )
        times = (self.hot, self.cold, self.fresh_us, self.prepare_us, self.emulated_us)
        if not ok and any(time is not None for time in times):
            raise ValueError(f"status {self.status} cannot carry a time")
        if self.hot is None and (self.fresh_us is not None or self.prepare_us is not None):
            raise ValueError("fresh_us and prepare_us go with a hot time, which is missing")
        if self.emulated_us is not None and (self.hot or self.cold):
            raise ValueError("a time is either emulated or measured on a GPU, never both")
        if self.resources is not None and not self.status.compiled:
            raise ValueError(f"status {self.status} cannot carry compiled resources")

    @property
    def ok(self) -> bool:
        """Whether the program compiled, ran and was right."""
        return self.status is Status.OK
