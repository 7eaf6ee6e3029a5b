"""The verdict on something that runs: is it right, are its inputs untouched, how long it takes.

The same steps for a hand-tuned program, a generated one and a library call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.evaluation import Conditions, Status, Timing
from suite.harness.device import Buffer, Check, Device, DeviceFault, Executable, Measured
from suite.harness.timing import Precision
from suite.harness.traffic import shortest_us


@dataclass(frozen=True)
class Repeats:
    """How often to run again what was right once: a program that is sometimes wrong is wrong.

    Attributes:
        least: Runs in any case.
        most: Runs never to exceed.
        seconds: Time from which on no further run is begun, beyond ``least``.
    """

    least: int = 2
    most: int = 8
    seconds: float = 0.004


PLAIN = Repeats()
SUSPICIOUS = Repeats(most=24, seconds=0.008)  # where threads meet in memory
POISON = 0xFF  # every float becomes a NaN, every integer −1
# The input sets: the matrix's own values; and two whose sums are exact, for values of −1 and 1 by
# long integers, and the other way round.
OWN, EXACT, SWAPPED = 0, 1, 2
FRESH_RATIO = 2.5  # a run into a spoilt output may take that many times a hot one,
FRESH_US = 4.0  # and that many microseconds on top
WARM_RATIO = 1.5  # a cold run may take that many times one that finds an earlier answer,
WARM_US = 4.0  # and that many microseconds on top


@dataclass(frozen=True)
class Stage:
    """What a judge needs of a resident problem.

    Attributes:
        use: Puts an input set in place: values and dense input.
        shake: Enqueues another dense input, never seen before, in the place of the last.
        settle: Writes the last shaken dense input once more, whatever became of it.
        note: Takes what the program has just derived from the matrix as right.
        check: Compares the output with the reference of the input set in place.
        changed: Names of the inputs in place, and derived arrays, that no longer hold what ``use``
            put there and ``note`` saw.
        outside: Names of the suite's own arrays, which no program is given, that have changed.
        output: y or C.
        scratch: The program's workspaces.
        derived: Its derived arrays.
        least_bytes: What a run with a flushed L2 moves in any case.
    """

    use: Callable[[int], None]
    shake: Callable[[], None]
    settle: Callable[[], None]
    check: Callable[[], Check]
    note: Callable[[], None]
    changed: Callable[[], list[str]]
    outside: Callable[[], list[str]]
    output: Buffer
    scratch: Sequence[Buffer] = ()
    derived: Sequence[Buffer] = ()
    least_bytes: int = 0


@dataclass(frozen=True)
class Verdict:
    """What a judge found; the measured part of an ``Evaluation``."""

    status: Status
    error: str = ""
    error_ratio: float | None = None
    checks: int = 0
    hot: Timing | None = None
    cold: Timing | None = None
    fresh_us: float | None = None
    prepare_us: float | None = None
    conditions: Conditions | None = None
    emulated_us: float | None = None
    detail: str = ""
    log: str = ""
    spoiled: bool = False  # an input no longer holds what it should: upload it again


class _Refused(Exception):
    """A check failed."""

    def __init__(self, message: str, spoiled: bool = False) -> None:
        super().__init__(message)
        self.spoiled = spoiled


class _Checks:
    """Runs and compares, keeping count."""

    def __init__(self, device: Device, stage: Stage, executable: Executable) -> None:
        self.count = 0
        self.ratio = 0.0
        self._device, self._stage, self._executable = device, stage, executable

    def spoil(self) -> None:
        """Makes every earlier answer useless: another dense input, and nothing in the output."""
        self._poison(self._stage.output, *self._stage.scratch)
        self._stage.shake()
        self._executable.refresh()

    def spoil_derived(self) -> None:
        """Makes what was derived earlier useless."""
        self._poison(*self._stage.derived, *self._stage.scratch)

    def fresh(self, number: int) -> None:
        """Prepares and runs once on the input set, into a poisoned output, and compares."""
        self._stage.use(number)
        self._run()
        self._finish()
        self._watch()
        self._compare(f"on input set {number + 1}")

    def _run(self) -> None:
        self.spoil_derived()
        self._executable.prepare()
        self._stage.note()
        self._poison(self._stage.output, *self._stage.scratch)
        self._executable.refresh()
        self._executable.run()

    def timed(self) -> None:
        """Compares what the last timed run wrote, for the dense input that it was given."""
        self._finish()
        self._stage.settle()
        self._watch()
        self._compare("after the timed runs")

    def repeated(self, repeats: Repeats) -> None:
        """Runs again and again on the inputs in place, whose answer was right.

        On an exact set a right answer has the same bits whatever the order of summation, so a
        digest tells; where it differs, the comparison decides. What is resident serves the next
        program too, so in the end it is looked at once more.
        """
        right = self._device.digests([self._stage.output])
        wrong: list[str] = []
        runs, until = 0, time.monotonic() + repeats.seconds
        while runs < repeats.least or (runs < repeats.most and time.monotonic() < until):
            self._run()
            self._executable.collect()
            self._device.sync()
            runs += 1
            if self._device.digests([self._stage.output]) != right:
                found = self._stage.check()
                wrong += [_describe(found, "the first time")] if found.wrong else []
        self.count += runs
        self._finish()
        self._watch()
        if wrong:
            raise _Refused(f"wrong in {len(wrong)} of {runs} repeated runs: {wrong[0]}")

    def _watch(self) -> None:
        """Inputs and derived arrays must be what they were."""
        changed = self._stage.changed()
        if changed:
            raise _Refused(f"the program overwrote its input {', '.join(changed)}", spoiled=True)

    def _poison(self, *buffers: Buffer) -> None:
        for buffer in buffers:
            self._device.fill(buffer, POISON)

    def _finish(self) -> None:
        self._executable.collect()
        self._device.sync()
        outside = self._stage.outside()
        if outside:
            raise DeviceFault(
                Status.MEMORY_FAULT,
                f"the program wrote outside its buffers, into the suite's {', '.join(outside)}",
            )

    def _compare(self, when: str) -> None:
        found = self._stage.check()
        self.count += 1
        self.ratio = max(self.ratio, found.ratio)
        if found.wrong:
            raise _Refused(_describe(found, when))


def judge(
    device: Device,
    stage: Stage,
    executable: Executable,
    precision: Precision | None,
    repeats: Repeats = PLAIN,
) -> Verdict:
    """Verifies and times one executable.

    Each of three input sets (same structure, other values) is multiplied into a poisoned output and
    compared; the inputs, and what the program derived from the matrix, must come out unchanged.
    It is timed before the last of them. Between timed runs, except those back to back, the dense
    input changes and the output is poisoned, and what the last of them wrote is compared too. On
    the last input set it runs again and again.

    Args:
        device: Where it runs.
        stage: The problem.
        executable: What to judge.
        precision: How precisely to time; None for the verdict alone.
        repeats: How often to run again at the end.

    Returns:
        ``ok`` with its times, ``wrong_result``, or ``impossible_time`` when runs that follow each
        other are much faster than runs that cannot find an earlier output.

    Raises:
        DeviceFault: The device reported a fault; its status is the verdict.
    """
    checks = _Checks(device, stage, executable)
    timed: Measured | float | None = None
    prepare_us: float | None = None
    try:
        checks.fresh(OWN if precision is None else EXACT)
        checks.fresh(EXACT if precision is None else OWN)
        if precision is not None:
            checks.spoil()
            timed = device.measure(executable.run, checks.spoil, precision)
            checks.timed()
            prepare_us = 0.0
            if stage.derived:
                prepare_us = device.once_us(executable.prepare, checks.spoil_derived)
        checks.fresh(SWAPPED)
        checks.repeated(repeats)
    except _Refused as refusal:
        return Verdict(
            Status.WRONG_RESULT, str(refusal), checks.ratio, checks.count, spoiled=refusal.spoiled
        )
    if not isinstance(timed, Measured):
        return Verdict(Status.OK, "", checks.ratio, checks.count, emulated_us=timed)
    impossible = implausible(timed, stage.least_bytes)
    if impossible:
        return Verdict(Status.IMPOSSIBLE_TIME, impossible, checks.ratio, checks.count)
    return Verdict(
        Status.OK,
        "",
        checks.ratio,
        checks.count,
        timed.hot,
        timed.cold,
        timed.fresh_us,
        prepare_us,
        timed.conditions,
    )


def implausible(timed: Measured, least_bytes: int = 0) -> str:
    """Why the times cannot be those of the work; empty where they can.

    Hot runs must do what runs into a spoilt output do; spoiling also displaces something from the
    caches, hence the allowance. With a flushed L2 there is nothing to displace, and the allowance
    is small. And a run that begins with a flushed L2 must have moved
    ``least_bytes`` at no more than the memory's peak.
    """
    hot, cold, warm = timed.hot.median_us, timed.cold.median_us, timed.warm_us
    if warm and cold > WARM_RATIO * warm + WARM_US:
        return (
            f"{warm:.2f} us with a flushed L2 where an earlier answer lies, but {cold:.2f} us where"
            " none does"
        )
    if timed.fresh_us > FRESH_RATIO * hot + FRESH_US:
        return (
            f"{hot:.2f} us back to back, but {timed.fresh_us:.2f} us into an output that holds no"
            " earlier answer"
        )
    copy = timed.conditions.copy_gbps
    if copy is not None and cold < shortest_us(least_bytes, copy):
        return (
            f"{cold:.2f} us with a flushed L2, too short for the {least_bytes:,} bytes that must be"
            f" moved; this GPU copies {copy:,.0f} GB/s"
        )
    return ""


def faulted(fault: DeviceFault) -> Verdict:
    """A fault as a verdict."""
    return Verdict(fault.status, str(fault))


def _describe(found: Check, when: str) -> str:
    plural = "s" if found.wrong != 1 else ""
    text = f"{found.wrong:,} wrong element{plural} {when}, first in row {found.row}"
    if found.unwritten:
        return f"{text}; {found.unwritten:,} not a number, as where nothing was written"
    return f"{text}; largest error {found.ratio:.3g} × its bound"
