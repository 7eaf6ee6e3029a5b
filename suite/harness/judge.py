"""The verdict on something that runs: is it right, are its inputs untouched, how long it takes.

The same steps for a hand-tuned program, a generated one and a library call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.evaluation import Status, Timing
from suite.harness.device import Buffer, Check, Device, DeviceFault, Executable
from suite.harness.timing import Precision

POISON = 0xFF  # every float becomes a NaN, every integer −1


@dataclass(frozen=True)
class Stage:
    """What a judge needs of a resident problem.

    Attributes:
        use: Puts the input set of that number (0 or 1) in place: fresh values, fresh dense input.
        check: Compares the output with the reference of the input set in place.
        output: y or C.
        inputs: Buffers that a program may read and must not change, by name.
        scratch: Its workspaces.
    """

    use: Callable[[int], None]
    check: Callable[[], Check]
    output: Buffer
    inputs: dict[str, Buffer]
    scratch: Sequence[Buffer] = ()


@dataclass(frozen=True)
class Verdict:
    """What a judge found; the measured part of an ``Evaluation``."""

    status: Status
    error: str = ""
    error_ratio: float | None = None
    checks: int = 0
    hot: Timing | None = None
    cold: Timing | None = None
    emulated_us: float | None = None
    detail: str = ""
    log: str = ""
    spoiled: bool = False  # some input no longer holds what it should: upload it again


class _Refused(Exception):
    """A check failed."""


class _Checks:
    """Runs and compares, keeping count."""

    def __init__(self, device: Device, stage: Stage, executable: Executable) -> None:
        self.count = 0
        self.ratio = 0.0
        self._device, self._stage, self._executable = device, stage, executable

    def fresh(self, number: int) -> None:
        """Runs once on the input set, into a poisoned output, and compares."""
        self._stage.use(number)
        for buffer in (self._stage.output, *self._stage.scratch):
            self._device.fill(buffer, POISON)
        self._executable.refresh()
        self._executable.run()
        self.compare(f"on input set {number + 1}")

    def compare(self, when: str) -> None:
        """Compares what the output holds now."""
        self._executable.collect()
        self._device.sync()
        found = self._stage.check()
        self.count += 1
        self.ratio = max(self.ratio, found.ratio)
        if found.wrong:
            raise _Refused(_describe(found, when))


def judge(
    device: Device, stage: Stage, executable: Executable, precision: Precision | None
) -> Verdict:
    """Verifies and times one executable.

    Each of two input sets (same structure, other values) is multiplied into a poisoned output and
    compared; the inputs must come out unchanged. After timing, what the last timed run wrote is
    compared too, then the inputs change under the same buffers and it runs once more.

    Args:
        device: Where it runs.
        stage: The problem.
        executable: What to judge.
        precision: How precisely to time; None for the verdict alone.

    Returns:
        ``ok`` with its times, or ``wrong_result``.

    Raises:
        DeviceFault: The device reported a fault; its status is the verdict.
    """
    stage.use(0)
    before = _digests(device, stage)
    checks = _Checks(device, stage, executable)
    timed: tuple[Timing, Timing] | float | None = None
    try:
        checks.fresh(0)
        _refuse_changes(before, _digests(device, stage))
        checks.fresh(1)
        if precision is not None:
            timed = device.measure(executable.run, precision)
            checks.compare("after the timed runs")
            checks.fresh(0)
            _refuse_changes(before, _digests(device, stage))
    except _Refused as refusal:
        stage.use(0)
        spoiled = _digests(device, stage) != before
        return Verdict(
            Status.WRONG_RESULT, str(refusal), checks.ratio, checks.count, spoiled=spoiled
        )
    if isinstance(timed, tuple):
        hot, cold = timed
        return Verdict(Status.OK, "", checks.ratio, checks.count, hot, cold)
    return Verdict(Status.OK, "", checks.ratio, checks.count, emulated_us=timed)


def faulted(fault: DeviceFault) -> Verdict:
    """A fault as a verdict."""
    return Verdict(fault.status, str(fault))


def _digests(device: Device, stage: Stage) -> dict[str, int]:
    return {name: device.digest(buffer) for name, buffer in stage.inputs.items()}


def _refuse_changes(before: dict[str, int], after: dict[str, int]) -> None:
    changed = [name for name, digest in before.items() if after[name] != digest]
    if changed:
        raise _Refused(f"the program overwrote its input {', '.join(changed)}")


def _describe(found: Check, when: str) -> str:
    plural = "s" if found.wrong != 1 else ""
    text = f"{found.wrong:,} wrong element{plural} {when}, first in row {found.row}"
    if found.unwritten:
        return f"{text}; {found.unwritten:,} not a number, as where nothing was written"
    return f"{text}; largest error {found.ratio:.3g} × its bound"
