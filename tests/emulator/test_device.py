"""The emulator as a ``Device``."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from suite.evaluation import Resources, Status
from suite.harness.device import Device, DeviceFault, Executable
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.inputs import Stream
from suite.harness.plan import Array, BufferArg, Launch, Plan, ScalarArg
from suite.harness.timing import Precision
from tests.emulator.lab import Lab, compiled, floats, ints, kernel

Size = tuple[int, int, int]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def test_the_facts_say_that_it_is_no_gpu(device: EmulatorDevice) -> None:
    facts: Device = device
    assert (facts.facts.kind, facts.facts.name, facts.facts.arch) == (
        "emulator",
        "emulator",
        "sm_90",
    )
    assert facts.facts.shared_bytes == 232448
    assert "g++" in facts.facts.details["compiler"]


@pytest.mark.parametrize("dtype", [F32, F64])
def test_a_stream_fills_a_buffer(device: EmulatorDevice, dtype: np.dtype) -> None:
    buffer = device.allocate(1001 * dtype.itemsize)
    device.fill_stream(buffer, dtype, Stream(77))
    assert np.array_equal(device.download(buffer, dtype), Stream(77).take(1001, dtype))
    device.free(buffer)


def test_gather_copies_by_slot_and_puts_zero_where_there_is_none(device: EmulatorDevice) -> None:
    source = device.upload(np.array([5.0, 6.0, 7.0]))
    slots = device.upload(np.array([2, -1, 0, 0], np.int32))
    out = device.upload(np.full(4, np.nan))
    device.gather(source, slots, out, F64)
    assert device.download(out, F64).tolist() == [7, 0, 5, 5]
    same = device.upload(np.zeros(3))
    device.gather(source, None, same, F64)
    assert device.download(same, F64).tolist() == [5, 6, 7]


def test_any_changed_byte_changes_the_digest(device: EmulatorDevice) -> None:
    array = np.arange(1000, dtype=np.int32)
    buffer = device.upload(array)
    other = device.upload(array[:999])
    before, shorter = device.digests([buffer, other])
    assert before != shorter
    assert device.digests([device.upload(array)]) == [before]
    buffer.view(np.uint8)[1234] ^= 1
    assert device.digests([other, buffer])[0] == shorter
    assert device.digests([buffer]) != [before]
    assert 0 <= before < 2**64


def test_fill_with_ff_makes_every_number_a_nan(device: EmulatorDevice) -> None:
    buffer = device.allocate(40)
    device.fill(buffer, 0xFF)
    assert np.isnan(device.download(buffer, F32)).all()


def plan(
    *launches: Launch, output: str = "y", zero: bool = False, scratch: tuple[Array, ...] = ()
) -> Plan:
    return Plan(output, zero, scratch, launches, (output,))


def test_a_run_clears_what_the_plan_says_and_launches_in_order(device: EmulatorDevice) -> None:
    code = """
        extern "C" __global__ void first(float* y, int* w, unsigned* v) {
            y[threadIdx.x] += 1; w[threadIdx.x] += 2; v[threadIdx.x] += 1;
        }
        extern "C" __global__ void second(float* y, const int* w, long long n) {
            y[threadIdx.x] = y[threadIdx.x] * 10 + w[threadIdx.x] + n;
        }"""
    args = tuple(BufferArg(n) for n in "ywv")
    launches = (
        Launch("first", (1, 1, 1), (4, 1, 1), 0, args),
        Launch("second", (0, 1, 1), (4, 1, 1), 0, (*args[:2], ScalarArg(9, "long long"))),
        Launch("second", (1, 1, 1), (4, 1, 1), 0, (*args[:2], ScalarArg(-5, "long long"))),
    )
    scratch = (Array("w", 16, True), Array("v", 16, False))
    buffers = {
        n: device.upload(np.full(4, 100, t)) for n, t in zip("ywv", ("f4", "i4", "u4"), strict=True)
    }
    loaded: Executable = device.load(
        compiled(code), plan(*launches, zero=True, scratch=scratch), buffers
    )
    for _ in range(2):
        loaded.refresh()
        loaded.run()
        loaded.collect()
        device.sync()
    loaded.close()
    loaded.close()
    assert device.download(buffers["y"], F32).tolist() == [7] * 4
    assert device.download(buffers["w"], np.dtype(np.int32)).tolist() == [2] * 4
    assert device.download(buffers["v"], np.dtype(np.uint32)).tolist() == [102] * 4


@pytest.mark.parametrize(
    ("launch", "resources", "message"),
    [
        (((1, 1, 1), (1025, 1, 1), 0), Resources(32), "a block of 1025 threads"),
        (((1, 1, 1), (1, 1, 65), 0), Resources(32), "a block of 65 threads along z; at most 64"),
        (((1, 1, 1), (0, 1, 1), 0), Resources(32), "a block of 0 threads"),
        (((2**31, 1, 1), (32, 1, 1), 0), Resources(32), "a grid of 2147483648 blocks along x"),
        (((1, 65536, 1), (32, 1, 1), 0), Resources(32), "a grid of 65536 blocks along y"),
        (((1, 1, 1), (32, 1, 1), 232449), Resources(32), "232449 bytes of shared memory"),
        (((1, 1, 1), (32, 1, 1), 232448), Resources(32, 0, 4), "232452 bytes of shared memory"),
        (((1, 1, 1), (1024, 1, 1), 0), Resources(65), "73728 registers in a block"),
    ],
)
def test_a_launch_beyond_the_limits_is_a_load_error(
    device: EmulatorDevice, launch: tuple[Size, Size, int], resources: Resources, message: str
) -> None:
    grid, block, shared = launch
    program = compiled(kernel("int* y", ""), k=resources)
    buffers = {"y": device.allocate(4)}
    with pytest.raises(DeviceFault, match=f"kernel k asks for {message}") as caught:
        device.load(program, plan(Launch("k", grid, block, shared, (BufferArg("y"),))), buffers)
    assert caught.value.status is Status.LOAD_ERROR


def test_launches_at_the_limits_are_accepted(device: EmulatorDevice) -> None:
    program = compiled(kernel("int* y", "y[0] = 1;"), k=Resources(64, 0, 0))
    buffers = {"y": device.allocate(4)}
    launch = Launch("k", (1, 1, 1), (1024, 1, 1), 232448, (BufferArg("y"),))
    loaded = device.load(program, plan(launch), buffers)
    loaded.run()
    loaded.close()


def test_the_check_accepts_the_product_and_finds_one_wrong_row(device: EmulatorDevice) -> None:
    row_ptr, col_idx = np.array([0, 2, 2, 3], np.int32), np.array([0, 1, 1], np.int32)
    values = device.upload(np.array([1, 2, 3], np.float32))
    csr = (device.upload(row_ptr), device.upload(col_idx), values)
    dense = device.upload(np.array([[1, 2], [3, 4]], np.float32))
    right = np.array([[7, 10], [0, 0], [9, 12]], np.float32)
    found = device.check(csr, dense, device.upload(right), 3, 2, F32, exact=False)
    assert (found.wrong, found.unwritten, found.row) == (0, 0, -1)
    right[2, 1] = np.nan
    found = device.check(csr, dense, device.upload(right), 3, 2, F32, exact=False)
    assert (found.wrong, found.unwritten, found.row) == (1, 1, 2)


def test_one_run_into_a_spoilt_output_is_timed(device: EmulatorDevice) -> None:
    calls: list[str] = []
    spent = device.measure(lambda: calls.append("run"), lambda: calls.append("spoil"), Precision())
    assert isinstance(spent, float)
    assert calls == ["spoil", "run"]


def test_after_a_build_no_compiler_starts_at_load(
    cache: Path, device: EmulatorDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = compiled(kernel("int* y", "y[0] = 77;"))
    buffers = {"y": device.allocate(4)}
    once = plan(Launch("k", (1, 1, 1), (1, 1, 1), 0, (BufferArg("y"),)))
    device.build(code, once)

    def started(*_: object, **__: object) -> None:
        pytest.fail("a compiler was started")

    monkeypatch.setattr("suite.harness.emulator.build.subprocess.Popen", started)
    monkeypatch.setattr("suite.harness.emulator.build.subprocess.run", started)
    device.build(code, once)
    loaded = device.load(code, once, buffers)
    loaded.run()
    loaded.close()
    assert device.download(buffers["y"], np.dtype(np.int32)).tolist() == [77]


def test_a_build_says_what_is_wrong_with_the_program(device: EmulatorDevice) -> None:
    launch = Launch("k", (1, 1, 1), (1, 1, 1), 0, (BufferArg("y"),))
    with pytest.raises(DeviceFault, match="cannot run this program") as caught:
        device.build(compiled(kernel("int* y", "nonsense;")), plan(launch))
    assert caught.value.status is Status.NOT_APPLICABLE


def test_a_child_process_may_launch_after_its_parent_did(lab: Lab) -> None:
    code = kernel("int* y", "y[blockIdx.x * 64 + threadIdx.x] = __syncthreads_count(1);")
    lab.run(code, {"y": ints(640)}, grid=10, block=64)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            out = lab.run(code, {"y": ints(640)}, grid=10, block=64)["y"]
            os._exit(0 if (out == 64).all() else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_buffer_of_another_device_is_refused(device: EmulatorDevice) -> None:
    with pytest.raises(TypeError, match="was given a ndarray, not its own buffer"):
        device.free(floats(3))


def test_devices_with_caches_of_their_own_work_side_by_side(
    device: EmulatorDevice, tmp_path: Path
) -> None:
    code = kernel("int* out", "out[threadIdx.x] = __shfl_sync(~0u, (int)threadIdx.x, 3);")
    plan = Plan("y", False, (), (Launch("k", (1, 1, 1), (32, 1, 1), 0, (BufferArg("out"),)),), ())
    for one in (device, EmulatorDevice(tmp_path), device):
        out = one.upload(ints(32))
        loaded = one.load(compiled(code), plan, {"out": out})
        loaded.run()
        assert one.download(out, np.dtype(np.int32)).tolist() == [3] * 32
        loaded.close()
        one.free(out)
