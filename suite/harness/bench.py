"""Judges programs on resident problems. Runs inside a worker process.

A matrix is uploaded once, converted once per format, and stays until it is released.
"""

from __future__ import annotations

from collections.abc import Callable

from suite.evaluation import Status
from suite.formats.base import Format
from suite.harness.anchor import anchor
from suite.harness.bind import DENSE
from suite.harness.device import Buffer, Compiled, Device, DeviceFacts, DeviceFault, Executable
from suite.harness.judge import PLAIN, SUSPICIOUS, Verdict, faulted, judge
from suite.harness.plan import Plan
from suite.harness.posed import Posed
from suite.harness.resident import Prepared, ProblemRef, ResidentMatrix
from suite.harness.timing import Precision
from suite.harness.watched import Derived
from suite.problem import DType

WORKSPACE_SHARE = 0.25  # of the device's memory,
MAX_WORKSPACE = 8 << 30  # and bytes, that a program's scratch memory may take

Library = Callable[[str, Posed, Precision | None], Verdict]


class Bench:
    """Judges programs on resident problems.

    Args:
        device: Where they run.
        isolate: Runs a judgement so that its fault does no harm here; the identity where the whole
            process is the isolation.
        library: Judges a routine of the vendor's library on a resident problem, where there is one.
        anchored: Whether to hold the device's check to SciPy when a problem is loaded; not where it
            is SciPy that checks.
        workspace_bytes: What a program's scratch memory and derived arrays may take.
        forget: Has the device forget what it remembers of inputs and answers; None where it
            remembers nothing. Where it does, a problem is rehearsed before its first program, and
            judgements that are isolated in copies of this process find what is remembered.
    """

    def __init__(
        self,
        device: Device,
        isolate: Callable[[Callable[[], Verdict]], Verdict] = lambda attempt: attempt(),
        library: Library | None = None,
        anchored: bool = True,
        workspace_bytes: int = MAX_WORKSPACE,
        forget: Callable[[], None] | None = None,
    ) -> None:
        self.device = device
        self._isolate, self._library, self._anchored = isolate, library, anchored
        self._forget = forget
        self._rehearsed: set[str] = set()
        self._workspace_bytes = workspace_bytes
        self._matrices: dict[tuple[str, DType], ResidentMatrix] = {}
        self._posed: dict[str, Posed] = {}

    def facts(self) -> DeviceFacts:
        """What the device is."""
        return self.device.facts

    def copy_gbps(self) -> float | None:
        """What the device copies in 10⁹ bytes a second; None where that means nothing."""
        return self.device.copy_gbps()

    def hold(self, ref: ProblemRef) -> None:
        """Makes a problem resident.

        Raises:
            DeviceFault: No memory for it, or the device's check disagrees with SciPy.
        """
        if ref.key in self._posed:
            return
        known = (ref.digest, ref.dtype)
        if known not in self._matrices:
            self._matrices[known] = ResidentMatrix(self.device, ref)
        posed = Posed(self.device, ref, self._matrices[known])
        if self._anchored:
            try:
                anchor(self.device, posed)
            except DeviceFault:
                posed.free()
                raise
        self._posed[ref.key] = posed

    def prepare(self, key: str, fmt: Format) -> Prepared:
        """Converts a resident problem's matrix to a format.

        Raises:
            NotApplicableError: The format does not fit the matrix.
            DeviceFault: No memory for it.
        """
        return self._posed[key].matrix.converted(fmt).prepared

    def judge_program(
        self, key: str, fmt: Format, plan: Plan, compiled: Compiled, precision: Precision | None
    ) -> Verdict:
        """Verifies and times a program on a resident problem in a prepared format."""
        posed = self._posed[key]
        posed.matrix.converted(fmt)  # before the program's own time begins

        def attempt() -> Verdict:
            try:
                return self._run_program(posed, fmt, plan, compiled, precision)
            except DeviceFault as fault:
                return faulted(fault)

        if self._forget is not None and key not in self._rehearsed:
            posed.rehearse()
            self._rehearsed.add(key)
        try:
            self.device.build(compiled, plan)
        except DeviceFault as fault:
            return faulted(fault)
        verdict = self._isolate(attempt)
        if verdict.spoiled:
            posed.matrix.drop(fmt)
            posed.disturbed()
        return verdict

    def judge_library(self, key: str, routine: str, precision: Precision | None) -> Verdict:
        """Verifies and times a library routine on a resident problem."""
        if self._library is None:
            return Verdict(Status.NOT_APPLICABLE, f"{routine} needs an NVIDIA GPU")
        try:
            return self._library(routine, self._posed[key], precision)
        except DeviceFault as fault:
            return faulted(fault)

    def release(self, digest: str) -> None:
        """Frees everything of one matrix."""
        for key in [k for k, posed in self._posed.items() if posed.ref.digest == digest]:
            self._posed.pop(key).free()
        for known in [k for k in self._matrices if k[0] == digest]:
            self._matrices.pop(known).free()
        if self._forget is not None:
            self._forget()
            self._rehearsed.clear()

    def _run_program(
        self,
        posed: Posed,
        fmt: Format,
        plan: Plan,
        compiled: Compiled,
        precision: Precision | None,
    ) -> Verdict:
        wanted = sum(array.nbytes for array in (*plan.derived, *plan.workspaces))
        limit = min(self._workspace_bytes, int(self.device.facts.memory_bytes * WORKSPACE_SHARE))
        if wanted > limit:
            raise DeviceFault(
                Status.LOAD_ERROR,
                f"{wanted:,} bytes of workspaces and derived arrays; at most {limit:,} are given",
            )
        converted = posed.matrix.converted(fmt)
        own: dict[str, Buffer] = {}
        executable: Executable | None = None
        try:
            for array in (*plan.derived, *plan.workspaces):
                own[array.name] = self.device.allocate(array.nbytes)
            buffers = {
                **converted.buffers,
                **own,
                DENSE[posed.ref.op]: posed.dense,
                plan.output: posed.output,
            }
            executable = self.device.load(compiled, plan, buffers)
            derived = Derived(self.device, {a.name: own[a.name] for a in plan.derived})
            scratch = [own[workspace.name] for workspace in plan.workspaces]
            stage = posed.stage(converted, plan.bound, scratch, derived)
            repeats = SUSPICIOUS if compiled.meets else PLAIN
            return judge(self.device, stage, executable, precision, repeats)
        finally:
            if executable is not None:
                executable.close()
            for buffer in own.values():
                self.device.free(buffer)
