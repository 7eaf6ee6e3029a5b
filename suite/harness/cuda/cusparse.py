"""cuSPARSE down the same path as every program: same buffers, same checks, same clock.

Two routines: ``cusparse`` is what a user gets who calls the library with its defaults;
``cusparse_best`` is the fastest of its algorithms, formats, dense layouts and preprocessing on the
problem at hand. For the latter each candidate is verified and timed briefly, then the fastest few
are timed in full; its hot and its cold figure may come from different candidates, which makes it
the strictest reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from suite.evaluation import Conditions, Status
from suite.formats.base import NotApplicableError
from suite.formats.bsr import Bsr
from suite.formats.coo import Coo
from suite.formats.csr import Csr
from suite.formats.sell import Sell
from suite.harness.cuda.cusparse_call import COLUMN, ROW, Call, Candidate
from suite.harness.cuda.device import CudaDevice
from suite.harness.device import DeviceFault
from suite.harness.judge import OWN, Verdict, judge
from suite.harness.posed import Posed
from suite.harness.timing import Precision
from suite.problem import Op

SCREEN = Precision(relative=0.05, least=3, most=5, budget_ms=2.0, sample_us=200.0)
FINALISTS = 3
HOPELESS = 4.0  # a first run so many times slower than the best screened time ends a candidate
LAUNCH_US = 50.0  # host cost that a single launch may show
MAX_BSR_FILL = 3.0  # value slots per entry beyond which no block format wins


def judge_routine(
    device: CudaDevice, routine: str, posed: Posed, precision: Precision | None
) -> Verdict:
    """Verifies and times a routine on a resident problem.

    Args:
        device: Where the problem is resident.
        routine: ``cusparse`` or ``cusparse_best``.
        posed: The problem.
        precision: How precisely to time.

    Returns:
        The verdict; its detail names the candidate, its log every one that was tried.
    """
    if 0 in (*posed.ref.shape, posed.ref.columns):
        raise DeviceFault(Status.NOT_APPLICABLE, f"{routine} takes no empty dimension")
    if routine == "cusparse":
        default = Candidate(Csr(), "DEFAULT")
        return replace(_attempt(device, posed, default, precision), detail=str(default))
    return _best(device, posed, precision)


def candidates(op: Op) -> Iterator[Candidate]:
    """Everything that the library offers for the operation."""
    if op is Op.SPMV:
        for algorithm in ("CSR_ALG1", "CSR_ALG2"):
            for preprocess in (False, True):
                yield Candidate(Csr(), algorithm, preprocess)
        yield from (Candidate(Coo(), algorithm) for algorithm in ("COO_ALG1", "COO_ALG2"))
        yield Candidate(Sell(c=32, sigma=1), "SELL_ALG1")
        yield from (Candidate(Bsr(b=b), "BSR_ALG1") for b in (2, 3, 4, 8, 16))
        return
    for layout in (ROW, COLUMN):
        for algorithm in ("CSR_ALG1", "CSR_ALG2", "CSR_ALG3"):
            for preprocess in (False, True):
                yield Candidate(Csr(), algorithm, preprocess, layout)
        for algorithm in ("COO_ALG1", "COO_ALG2", "COO_ALG3", "COO_ALG4"):
            yield Candidate(Coo(), algorithm, False, layout)
        yield from (Candidate(Bsr(b=b), "BSR_ALG1", False, layout) for b in (2, 3, 4, 8, 16))


def _attempt(
    device: CudaDevice, posed: Posed, candidate: Candidate, precision: Precision | None
) -> Verdict:
    converted = posed.matrix.converted(candidate.format)
    call = Call(device, posed, candidate)
    try:
        return judge(device, posed.stage(converted, converted.buffers), call, precision)
    finally:
        call.close()


def _best(device: CudaDevice, posed: Posed, precision: Precision | None) -> Verdict:
    times, log = _screen(device, posed)
    if not times:
        return Verdict(Status.WRONG_RESULT, "no candidate was right", log="\n".join(log))
    by_hot = sorted(times, key=lambda candidate: times[candidate][0])[:FINALISTS]
    by_cold = sorted(times, key=lambda candidate: times[candidate][1])[:FINALISTS]
    finals = [
        (candidate, _attempt(device, posed, candidate, precision))
        for candidate in dict.fromkeys((*by_hot, *by_cold))
    ]
    timed = [(v.hot.median_us, v.cold.median_us, c, v) for c, v in finals if v.hot and v.cold]
    if not timed:
        return replace(finals[0][1], log="\n".join(log))
    _, _, hot_candidate, hot = min(timed, key=lambda row: row[0])
    _, _, cold_candidate, cold = min(timed, key=lambda row: row[1])
    same = hot_candidate == cold_candidate
    detail = str(hot_candidate) if same else f"{hot_candidate}; cold: {cold_candidate}"
    conditions = _both(hot.conditions, cold.conditions)
    return replace(hot, cold=cold.cold, conditions=conditions, detail=detail, log="\n".join(log))


def _both(hot: Conditions | None, cold: Conditions | None) -> Conditions | None:
    """Conditions of a hot and a cold figure that were measured one after the other."""
    if hot is None or cold is None or hot == cold:
        return hot
    wrong = dict.fromkeys(filter(None, (hot.disturbed, cold.disturbed)))
    return replace(hot, disturbed="; ".join(wrong), attempts=max(hot.attempts, cold.attempts))


def _screen(
    device: CudaDevice, posed: Posed
) -> tuple[dict[Candidate, tuple[float, float]], list[str]]:
    """Hot and cold microseconds of candidates that are right; a line on each that was tried."""
    times: dict[Candidate, tuple[float, float]] = {}
    log: list[str] = []
    for candidate in candidates(posed.ref.op):
        try:
            if not _sensible(candidate, posed):
                continue
            first_us = _first_run_us(device, posed, candidate)
            best = min((hot for hot, _ in times.values()), default=float("inf"))
            if first_us > HOPELESS * best + LAUNCH_US:
                log.append(f"{candidate}: {first_us:.0f} us at first, not pursued")
                continue
            verdict = _attempt(device, posed, candidate, SCREEN)
        except NotApplicableError as reason:
            log.append(f"{candidate}: {reason}")
            continue
        except DeviceFault as fault:
            if fault.status is Status.MEMORY_FAULT:
                raise
            log.append(f"{candidate}: {fault}")
            continue
        if verdict.hot is None or verdict.cold is None:
            log.append(f"{candidate}: {verdict.error}")
            continue
        hot, cold = verdict.hot.median_us, verdict.cold.median_us
        times[candidate] = hot, cold
        log.append(f"{candidate}: {hot:.2f} us hot, {cold:.2f} us cold, briefly")
    return times, log


def _sensible(candidate: Candidate, posed: Posed) -> bool:
    """Whether a candidate can be called at all and is worth its conversion."""
    fmt = candidate.format
    if not isinstance(fmt, Bsr):
        return True
    rows, cols = posed.ref.shape
    if rows % fmt.b or cols % fmt.b:
        return False  # the library would read past x and write past y
    return posed.matrix.footprint(fmt).value_slots <= MAX_BSR_FILL * int(posed.matrix.csr.nnz)


def _first_run_us(device: CudaDevice, posed: Posed, candidate: Candidate) -> float:
    """A single run between events, to end hopeless candidates early."""
    posed.matrix.converted(candidate.format).use(OWN)
    posed.use(OWN)
    call = Call(device, posed, candidate)
    try:
        call.refresh()
        call.run()
        return device.single_run_us(call.run)
    finally:
        call.close()
