"""From text to verdict: parse → bind → compile → load → verify → time → ``Evaluation``.

The one path for every author. Steps that need no device run here; the rest is asked of a worker
process, which is replaced when a program takes it down.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from suite.evaluation import Evaluation, Resources, Status
from suite.formats.base import Format, NotApplicableError
from suite.formats.csr import Csr
from suite.harness.bind import bind, check_names
from suite.harness.compile import CompileError, Target
from suite.harness.compilers import CompilerGaveUp, Compilers
from suite.harness.conversions import Conversions
from suite.harness.device import Compiled, DeviceFacts, DeviceFault
from suite.harness.exchange import Exchange
from suite.harness.judge import Verdict
from suite.harness.lock import gpu_lock
from suite.harness.parse import parse
from suite.harness.plan import BindError, Declaration, ParseError, Plan
from suite.harness.resident import Prepared, ProblemRef
from suite.harness.sanitize import TOOLS, Request, examine
from suite.harness.settings import Settings as Settings
from suite.harness.worker import Worker, WorkerDied, WorkerTimeout, WorkerUnavailable
from suite.matrices.base import Matrix, MatrixError
from suite.problem import DType, Problem
from suite.program import Answer, KernelProgram, LibraryCall


class DeviceUnavailable(RuntimeError):
    """The device asked for is not there; the message says why and what to do."""


EMULATOR_SLACK_S = 30.0  # its compiler has 20


_LASTS = (
    "{}: variables in global memory, the device's heap and its console would outlive a run;"
    " use //! workspace, and __constant__ for tables"
)


_LOSES_WORKER = {
    # A fault or a kill takes the context, and all that was resident, with it.
    "cuda": {Status.MEMORY_FAULT, Status.TIMEOUT, Status.INFRASTRUCTURE_ERROR},
    "emulator": {Status.INFRASTRUCTURE_ERROR},
}


class Evaluator:
    """Evaluates programs on one device. A context manager; safe to use from one thread at a time.

    Args:
        device: ``cuda``, ``emulator``, or ``auto`` for a GPU where there is one.
        settings: Limits and precision.

    Attributes:
        facts: What the device is.

    Raises:
        DeviceUnavailable: No such device.
    """

    facts: DeviceFacts

    def __init__(self, device: str = "auto", settings: Settings | None = None) -> None:
        self.settings = settings = settings or Settings()
        self._exchange = Exchange()
        self._held: set[str] = set()
        self._refs: dict[str, ProblemRef] = {}
        self._seed = secrets.randbits(62)  # no program can know it; verdicts do not depend on it
        self._compilers = Compilers(settings)
        self._conversions = Conversions(settings.converters)
        self._taken: set[tuple[Path, Format]] = set()  # conversions that the worker has
        self._spares: list[Worker] = []
        self._worker, self.facts = self._open(device)
        self._lock = _device_lock(self.facts, shared=settings.precision is None)
        self._hold_device = ExitStack()
        if settings.exclusive:
            self._hold_device.enter_context(self._lock)
            self._lock = nullcontext()
        self.facts = self._with_bandwidth()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every process and removes every temporary file."""
        for worker in (self._worker, *self._spares):
            worker.close()
        self._compilers.close()
        self._conversions.close()
        self._exchange.close()
        self._hold_device.close()

    def load(self, problem: Problem) -> None:
        """Brings a problem to the device before its programs are there.

        What goes wrong is told by the first program's verdict.
        """
        try:
            with self._lock:
                self._hold(problem)
        except (WorkerDied, WorkerTimeout, WorkerUnavailable):
            self._lose_worker()
        except (MatrixError, DeviceFault, RuntimeError, OSError):
            pass

    def release(self, matrix: Matrix) -> None:
        """Forgets a matrix, here and on the device."""
        self._held = {key for key in self._held if not key.startswith(matrix.digest)}
        self._refs = {k: ref for k, ref in self._refs.items() if ref.digest != matrix.digest}
        self._taken = {one for one in self._taken if matrix.digest not in one[0].parts}
        self._conversions.drop(matrix.digest)
        self._exchange.drop(matrix.digest)
        if not self._worker.running:
            return self._held.clear()
        try:
            self._worker.call("release", matrix.digest, timeout=self.settings.load_s)
        except (WorkerDied, WorkerTimeout, WorkerUnavailable, DeviceFault):
            self._lose_worker()

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        """Evaluates one answer to one problem.

        Never raises for anything that the program did, nor for a lost worker: whatever happens is a
        status. What the suite itself could not do is tried twice.
        """
        evaluation = self._attempt(problem, answer)
        if evaluation.status is Status.INFRASTRUCTURE_ERROR:
            self._lose_worker()
            evaluation = self._attempt(problem, answer)
        if evaluation.status in _LOSES_WORKER[self.facts.kind]:
            self._lose_worker()
        return evaluation

    def compile_ahead(self, programs: Sequence[KernelProgram], dtype: DType) -> None:
        """Compiles programs in parallel; evaluating them then finds binary or refusal.

        May be called from another thread than the rest.
        """
        texts = [program.text for program in programs]
        self._compilers.compile_ahead(texts, Target(self.facts.arch, dtype))

    def convert_ahead(self, problem: Problem, programs: Sequence[KernelProgram]) -> None:
        """Begins to convert a problem's matrix to what programs read, and does not wait for it.

        A single conversion is left to whoever needs it, who would only wait. What goes wrong is
        told by the programs' verdicts.
        """
        formats = []
        for program in programs:
            with suppress(ParseError, BindError, NotApplicableError):
                if not program.unfinished:
                    declaration = parse(program.text)
                    check_names(declaration, problem.op, problem.dtype)
                    formats.append(declaration.format)
        with suppress(MatrixError, OSError, RuntimeError):
            folder = self._exchange.put(problem)
            known = {*self._taken, (folder, Csr())}  # which costs nothing
            wanted = [fmt for fmt in dict.fromkeys(formats) if (folder, fmt) not in known]
            if len(wanted) > 1:
                self._conversions.begin(folder, problem.matrix.csr.shape, wanted)

    def binary(self, program: KernelProgram, dtype: DType) -> bytes:
        """Machine code of a program that compiles; equal codes behave alike.

        Raises:
            CompileError: It does not compile.
        """
        return self._compilers.compile(parse(program.text), Target(self.facts.arch, dtype)).cubin

    # Inside

    def _lose_worker(self) -> None:
        """Ends the worker; the next call goes to a fresh one, which holds nothing.

        A GPU's worker takes seconds to start. So after the first loss others start in the
        background, and the next loss finds one waiting.
        """
        self._worker.close()
        self._held.clear()
        self._taken.clear()
        if self.facts.kind == "cuda":
            while len(self._spares) < self.settings.spares:
                self._spares.append(Worker("suite.harness.services:cuda", self._arguments("cuda")))
            self._spares.append(self._worker)
            self._worker = self._spares.pop(0)
            for worker in (self._worker, *self._spares):
                with suppress(OSError):  # the next call tells
                    worker.start()

    def _attempt(self, problem: Problem, answer: Answer) -> Evaluation:
        started = time.perf_counter()
        blank = Evaluation(Status.INFRASTRUCTURE_ERROR, "not evaluated", device=self.facts.name)
        try:
            if isinstance(answer, LibraryCall):
                evaluation = self._library(problem, answer, blank)
            else:
                evaluation = self._program(problem, answer, blank)
        except MatrixError as error:
            evaluation = _failed(blank, Status.NOT_APPLICABLE, error)
        except DeviceFault as fault:  # outside a judgement: while loading the problem
            evaluation = _failed(blank, Status.INFRASTRUCTURE_ERROR, fault)
        except Exception as error:  # the machine's or the suite's, never the program's
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            evaluation = _failed(blank, Status.INFRASTRUCTURE_ERROR, what)
        spent = (time.perf_counter() - started) * 1e3 - (evaluation.compile_ms or 0.0)
        return replace(evaluation, wall_ms=spent)

    def _program(self, problem: Problem, answer: KernelProgram, blank: Evaluation) -> Evaluation:
        if len(answer.text) > self.settings.source_chars:
            too_long = f"the text has {len(answer.text):,} characters"
            most = f"at most {self.settings.source_chars:,}"
            return _failed(blank, Status.PARSE_ERROR, f"{too_long}; {most}")
        try:
            if answer.unfinished:
                raise ParseError(answer.unfinished)
            declaration = parse(answer.text)
        except ParseError as error:
            return _failed(blank, Status.PARSE_ERROR, error)
        try:
            check_names(declaration, problem.op, problem.dtype)
            with self._lock:  # loading disturbs whoever measures
                key = self._hold(problem)
                prepared = self._prepare(key, declaration)
            plan = bind(
                declaration, problem.op, problem.dtype, {**prepared.sizes, "n": problem.columns}
            )
        except BindError as error:
            return _failed(blank, Status.BIND_ERROR, error)
        except NotApplicableError as error:
            return _failed(blank, Status.NOT_APPLICABLE, error)
        sizes = prepared.nbytes | {array.name: array.nbytes for array in plan.derived}
        nbytes = sum(sizes[name] for name in plan.streamed)
        known = replace(
            blank,
            format=declaration.spelling,
            derived_bytes=sum(array.nbytes for array in plan.derived),
            format_bytes=nbytes,
            conversion_ms=prepared.conversion_ms,
        )
        try:
            target = Target(self.facts.arch, problem.dtype)
            compiled = self._compilers.compile(declaration, target)
        except CompileError as error:
            return replace(_failed(known, Status.COMPILE_ERROR, error), log=error.log)
        except CompilerGaveUp as error:
            return _failed(known, Status.COMPILE_ERROR, error)
        if compiled.lasting:
            verdict = Verdict(Status.LOAD_ERROR, _LASTS.format(", ".join(compiled.lasting)))
        else:
            verdict = self._judge(key, declaration, plan, compiled)
            if verdict.status is Status.OK and self.settings.sanitizer is not None:
                verdict = self._sanitize(verdict, key, declaration, plan, compiled)
        known = replace(known, log=compiled.log, compile_ms=compiled.milliseconds)
        return _evaluation(known, verdict, _hungriest(compiled, plan))

    def _library(self, problem: Problem, answer: LibraryCall, blank: Evaluation) -> Evaluation:
        if self.facts.kind != "cuda":
            return _failed(blank, Status.NOT_APPLICABLE, f"{answer.author} needs an NVIDIA GPU")
        with self._lock:
            key = self._hold(problem)
            verdict = self._worker.call(
                "judge_library",
                key,
                answer.author,
                self.settings.precision,
                timeout=self.settings.library_s,
            )
        return _evaluation(blank, verdict, None)

    def _judge(self, key: str, declaration: Declaration, plan: Plan, compiled: Compiled) -> Verdict:
        # The emulator's worker keeps the limit itself, after compiling the program once more.
        slack = 0.0 if self.facts.kind == "cuda" else EMULATOR_SLACK_S
        limit = self._run_s(self.facts.kind)
        arguments = (key, declaration.format, plan, compiled, self.settings.precision)
        try:
            with self._lock:
                verdict = self._worker.call("judge_program", *arguments, timeout=limit + slack)
        except WorkerTimeout:
            if self.facts.kind != "cuda":
                raise  # the worker itself hangs
            return Verdict(Status.TIMEOUT, f"the program did not finish within {limit:g} s")
        assert isinstance(verdict, Verdict)
        return verdict

    def _sanitize(
        self, verdict: Verdict, key: str, declaration: Declaration, plan: Plan, compiled: Compiled
    ) -> Verdict:
        """The verdict on a right program after all tools of the sanitizer have watched it run."""
        assert self.settings.sanitizer is not None
        kind = self.facts.kind
        ref, fmt = self._refs[key], declaration.format
        arguments = self._arguments(kind) | ({"confined": False} if kind == "cuda" else {})
        request = Request(kind, arguments, ref, fmt, plan, compiled)
        with self._lock:
            finding = examine(self.settings.sanitizer, request, self.settings.sanitize_s)
        if finding is None:
            return replace(verdict, detail=f"{', '.join(TOOLS)}: nothing found")
        return Verdict(finding.status, finding.message, verdict.error_ratio, verdict.checks)

    def _hold(self, problem: Problem) -> str:
        digest = problem.matrix.digest
        key = f"{digest}/{problem.label}/{problem.dtype.short}"
        if key not in self._held:
            folder = self._exchange.put(problem)
            ref = ProblemRef(
                key,
                digest,
                folder,
                problem.matrix.csr.shape,
                problem.op,
                problem.columns,
                problem.dtype,
                self._seed,
            )
            self._refs[key] = ref
            self._worker.call("hold", ref, timeout=self.settings.load_s)
            self._held.add(key)
        return key

    def _prepare(self, key: str, declaration: Declaration) -> Prepared:
        folder, fmt = self._refs[key].folder, declaration.format
        self._conversions.finish(folder, fmt)
        prepared = self._worker.call("prepare", key, fmt, timeout=self.settings.load_s)
        assert isinstance(prepared, Prepared)
        self._conversions.forget(folder, fmt)
        self._taken.add((folder, fmt))
        return prepared

    def _open(self, device: str) -> tuple[Worker, DeviceFacts]:
        kinds = {"auto": ("cuda", "emulator"), "cuda": ("cuda",), "emulator": ("emulator",)}[device]
        reasons: list[str] = []
        for kind in kinds:
            worker = Worker(f"suite.harness.services:{kind}", self._arguments(kind))
            try:
                facts = worker.call("facts", timeout=self.settings.load_s)
                assert isinstance(facts, DeviceFacts)
                return worker, facts
            except (RuntimeError, OSError) as error:  # what the devices and the worker raise
                worker.close()
                reasons.append(str(error).splitlines()[0])
        raise DeviceUnavailable("; ".join(reasons))

    def _with_bandwidth(self) -> DeviceFacts:
        """The facts with the speed of the memory, which is measured once and like all else."""
        try:
            with self._lock:
                copy_gbps = self._worker.call("copy_gbps", timeout=self.settings.load_s)
        except (RuntimeError, OSError) as error:
            self.close()
            raise DeviceUnavailable(str(error).splitlines()[0]) from error
        if copy_gbps is None:
            return self.facts
        details = {**self.facts.details, "copy_gbps": f"{copy_gbps:.0f}"}
        return replace(self.facts, details=details)

    def _arguments(self, kind: str) -> dict[str, Any]:
        settings = self.settings
        scratch = {"workspace_bytes": settings.workspace_bytes}
        if kind == "cuda":
            return {"cache": settings.cache / "cubin", "ordinal": settings.ordinal, **scratch}
        return {"cache": settings.cache / "emulator", "run_s": self._run_s(kind), **scratch}

    def _run_s(self, kind: str) -> float:
        return self.settings.run_s * (self.settings.together if kind == "emulator" else 1)


def _failed(blank: Evaluation, status: Status, error: Exception | str) -> Evaluation:
    return replace(blank, status=status, error=str(error) or repr(error))


def _evaluation(known: Evaluation, verdict: Verdict, resources: Resources | None) -> Evaluation:
    return replace(
        known,
        status=verdict.status,
        error=verdict.error,
        resources=resources if verdict.status.compiled else None,
        error_ratio=verdict.error_ratio,
        checks=verdict.checks,
        hot=verdict.hot,
        cold=verdict.cold,
        fresh_us=verdict.fresh_us,
        prepare_us=verdict.prepare_us,
        conditions=verdict.conditions,
        emulated_us=verdict.emulated_us,
        detail=verdict.detail,
        log=verdict.log or known.log,
    )


def _hungriest(compiled: Compiled, plan: Plan) -> Resources | None:
    launched = {launch.kernel for launch in plan.launches}
    found = [r for name, r in compiled.kernels.items() if name in launched]
    return max(found, key=lambda r: (r.registers, r.spill_bytes), default=None)


def _device_lock(facts: DeviceFacts, shared: bool) -> AbstractContextManager[object]:
    """One measurement at a time on a GPU, across processes and users of the host."""
    bus_id = facts.details.get("pci_bus_id", "0") if facts.kind == "cuda" else None
    return gpu_lock(bus_id, shared)
