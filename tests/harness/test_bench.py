"""What is resident: three input sets that share nothing, digests that notice, memory given back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from suite.evaluation import Status
from suite.formats import formats, make
from suite.formats.base import Format, NotApplicableError
from suite.harness.bench import MAX_WORKSPACE, WORKSPACE_SHARE, Bench
from suite.harness.device import Compiled, DeviceFault
from suite.harness.exchange import Exchange
from suite.harness.judge import EXACT, OWN, PLAIN, SWAPPED, Verdict
from suite.harness.plan import Array, Plan
from suite.harness.posed import Posed
from suite.harness.resident import ProblemRef, ResidentMatrix
from suite.harness.timing import Precision
from suite.harness.watched import Derived
from suite.problem import DType, Op, Problem
from tests.harness.host import HostDevice
from tests.harness.samples import matrix

MATRIX = matrix(60, 50, density=0.1)
CSR = make("csr", {})
COMPILED = Compiled(b"", "", "", {}, 0.0)
FLOAT32 = np.dtype(np.float32)


@pytest.fixture
def exchange() -> Iterator[Exchange]:
    exchange = Exchange()
    yield exchange
    exchange.close()


@pytest.fixture
def ref(exchange: Exchange) -> ProblemRef:
    return reference(exchange, "problem")


def reference(
    exchange: Exchange, key: str, columns: int = 1, dtype: DType = DType.FLOAT32
) -> ProblemRef:
    op = Op.SPMV if columns == 1 else Op.SPMM
    folder = exchange.put(Problem(op, MATRIX, columns, dtype))
    shape = MATRIX.csr.shape
    return ProblemRef(key, MATRIX.digest, folder, shape, op, columns, dtype, seed=12345)


def plan(*workspaces: Array) -> Plan:
    return Plan("y", False, workspaces, (), ("row_ptr", "col_idx", "vals", "x", "y"))


def judged(bench: Bench, key: str = "problem", *workspaces: Array) -> Verdict:
    return bench.judge_program(key, CSR, plan(*workspaces), COMPILED, Precision())


def held(bench: Bench, ref: ProblemRef) -> Bench:
    bench.hold(ref)
    return bench


def applicable(bench: Bench) -> Iterator[Format]:
    for name in formats():
        try:
            bench.prepare("problem", make(name, {}))
        except NotApplicableError:
            continue
        yield make(name, {})


# Input sets


def test_the_input_sets_share_neither_x_nor_values(ref: ProblemRef) -> None:
    device = HostDevice()
    resident = ResidentMatrix(device, ref)
    posed = Posed(device, ref, resident)
    seen = {}
    for number in (OWN, EXACT, SWAPPED):
        posed.use(number)
        values = device.download(resident.values(number), FLOAT32)
        seen[number] = (device.download(posed.dense, FLOAT32), values)
    for one, other in itertools.combinations(seen.values(), 2):
        for mine, its in zip(one, other, strict=True):
            assert not np.array_equal(mine, its)
            assert 0.2 < np.mean((mine > 0) == (its > 0)) < 0.8
    for integers, signs in (seen[EXACT], reversed(seen[SWAPPED])):
        assert np.array_equal(integers, np.round(integers))
        assert np.abs(integers).max() > 2**10
        assert set(signs) == {-1.0, 1.0}


def test_every_shaken_x_is_new_and_settling_brings_the_last_back(ref: ProblemRef) -> None:
    device = HostDevice()
    posed = Posed(device, ref, ResidentMatrix(device, ref))
    seen = []
    for put in (lambda: posed.use(EXACT), lambda: posed.use(OWN), posed.shake, posed.shake):
        put()
        seen.append(device.download(posed.dense, FLOAT32))
    assert len({x.tobytes() for x in seen}) == 4
    device.fill(posed.dense, 0)
    posed.settle()
    assert np.array_equal(device.download(posed.dense, FLOAT32), seen[-1])
    posed.use(OWN)
    assert np.array_equal(device.download(posed.dense, FLOAT32), seen[1])


def test_values_count_as_traffic_only_where_a_program_certainly_reads_them_all(
    ref: ProblemRef,
) -> None:
    device = HostDevice()  # without a cache, so that the whole output counts
    resident = ResidentMatrix(device, ref)
    posed, converted = Posed(device, ref, resident), resident.converted(CSR)
    output, values = 4 * MATRIX.csr.shape[0], 4 * MATRIX.csr.nnz
    assert posed.stage(converted, plan().bound).least_bytes == output + values
    assert posed.stage(converted, ("row_ptr", "x", "y")).least_bytes == output
    derived = Derived(device, {"packed": device.allocate(16)})
    assert posed.stage(converted, plan().bound, (), derived).least_bytes == output


def test_every_run_of_a_campaign_has_inputs_of_its_own(exchange: Exchange) -> None:
    device, seen = HostDevice(), []
    for seed in (1, 2):
        ref = ProblemRef(**{**vars(reference(exchange, "problem")), "seed": seed})
        posed = Posed(device, ref, ResidentMatrix(device, ref))
        posed.use(OWN)
        seen.append(device.download(posed.dense, FLOAT32))
    assert not np.array_equal(*seen)


# Judging


def test_a_right_program_is_ok(ref: ProblemRef) -> None:
    found = judged(held(Bench(HostDevice()), ref))
    assert found.status is Status.OK
    assert 4 + PLAIN.least <= found.checks <= 4 + PLAIN.most


@pytest.mark.parametrize("name", ["row_ptr", "col_idx", "vals", "x"])
def test_an_input_that_a_program_changed_is_named_and_put_right_for_the_next(
    ref: ProblemRef, name: str
) -> None:
    device = HostDevice()
    bench = held(Bench(device), ref)
    device.spoils = name
    found = judged(bench)
    assert found.status is Status.WRONG_RESULT
    assert found.error.endswith(f"overwrote its input {name}")
    device.spoils = ""
    assert judged(bench).status is Status.OK


def test_scratch_and_program_are_given_back_whatever_the_verdict(ref: ProblemRef) -> None:
    device = HostDevice()
    bench = held(Bench(device), ref)
    bench.prepare("problem", CSR)
    before = set(device.live)
    scratch = Array("w", 64, False)
    assert judged(bench, "problem", scratch).status is Status.OK
    device.refuses = True
    assert judged(bench, "problem", scratch).status is Status.LOAD_ERROR
    device.refuses, device.room = False, device.given + 1
    assert judged(bench, "problem", scratch, scratch).status is Status.INFRASTRUCTURE_ERROR
    assert (device.live, device.loaded) == (before, 0)


def test_workspace_is_given_up_to_its_share_of_the_memory(ref: ProblemRef) -> None:
    device = HostDevice()
    bench = held(Bench(device), ref)
    limit = int(device.facts.memory_bytes * WORKSPACE_SHARE)
    assert limit < MAX_WORKSPACE
    assert judged(bench, "problem", Array("w", limit, False)).status is Status.OK
    found = judged(bench, "problem", Array("w", limit + 1, False))
    assert found.status is Status.LOAD_ERROR
    assert f"{limit + 1:,} bytes of workspaces and derived arrays; at most {limit:,}" in found.error


def test_a_device_whose_check_disagrees_with_scipy_is_not_used(ref: ProblemRef) -> None:
    device = HostDevice()
    device.checks_wrongly = True
    bench = Bench(device)
    with pytest.raises(DeviceFault, match="the device's check and SciPy disagree") as caught:
        bench.hold(ref)
    assert caught.value.status is Status.INFRASTRUCTURE_ERROR
    bench.release(ref.digest)
    assert not device.live


def test_conversion_is_told_in_milliseconds(
    ref: ProblemRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = held(Bench(HostDevice()), ref)
    seconds = iter([1.0, 1.25])
    clock = SimpleNamespace(thread_time=lambda: next(seconds))
    monkeypatch.setattr("suite.harness.conversions.time", clock)
    assert bench.prepare("problem", CSR).conversion_ms == 250.0


# Memory


def test_releasing_a_matrix_gives_back_everything_in_both_precisions(exchange: Exchange) -> None:
    device = HostDevice()
    bench = Bench(device)
    for ref in (
        reference(exchange, "problem"),
        reference(exchange, "double", dtype=DType.FLOAT64),
        reference(exchange, "columns", columns=3),
    ):
        bench.hold(ref)
    assert len(list(applicable(bench))) > 4
    bench.prepare("double", make("sell", {}))
    assert judged(bench, "problem", Array("w", 64, False)).status is Status.OK
    assert device.live
    bench.release(ref.digest)
    assert not device.live


def test_another_matrix_stays_when_one_is_released(ref: ProblemRef) -> None:
    device = HostDevice()
    bench = held(Bench(device), ref)
    before = set(device.live)
    bench.release("another digest")
    assert device.live == before
    assert judged(bench).status is Status.OK


def test_memory_that_runs_out_at_any_point_leaks_nothing(ref: ProblemRef) -> None:
    whole = HostDevice()
    bench = held(Bench(whole), ref)
    list(applicable(bench))
    for room in range(whole.given):
        device = HostDevice(room)
        bench = Bench(device)
        with pytest.raises(DeviceFault, match="out of memory"):
            list(applicable(held(bench, ref)))
        bench.release(ref.digest)
        assert not device.live, f"{room} allocations"


def test_other_formats_make_room_when_memory_is_short(ref: ProblemRef) -> None:
    device = HostDevice()
    bench = held(Bench(device), ref)
    bench.prepare("problem", CSR)
    before = len(device.live)
    allocate, refused = device.allocate, []

    def once(nbytes: int):
        if not refused:
            refused.append(nbytes)
            raise DeviceFault(Status.INFRASTRUCTURE_ERROR, "out of memory")
        return allocate(nbytes)

    device.allocate = once
    assert bench.prepare("problem", make("coo", {})).nbytes["row_idx"] == 4 * MATRIX.csr.nnz
    assert (len(refused), len(device.live)) == (1, before)  # three arrays took the place of three
