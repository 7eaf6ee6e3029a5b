"""The CUDA device's own work on a driver that the emulator stands in for: what it asks and gets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from suite.evaluation import Status
from suite.harness import verify
from suite.harness.cuda.device import LONG_ROW, CudaDevice
from suite.harness.cuda.kernels import SIGNATURES
from suite.harness.device import DeviceFault
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.inputs import Stream
from tests.harness.emulated_cuda import Driver, declared, open_device

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


@pytest.fixture
def opened(emulator: EmulatorDevice, monkeypatch: pytest.MonkeyPatch) -> tuple[CudaDevice, Driver]:
    return open_device(emulator, monkeypatch)


def test_kernels_are_prepared_with_the_types_of_their_parameters() -> None:
    assert declared() == SIGNATURES


@pytest.mark.parametrize("args", [(0, 0), (0, 0, 0, 0), (0, 1.5, 0), (0, -1, 0), (0, 2**64, 0)])
def test_a_launch_with_other_arguments_is_refused(
    opened: tuple[CudaDevice, Driver], monkeypatch: pytest.MonkeyPatch, args: tuple[float, ...]
) -> None:
    monkeypatch.setattr("suite.harness.cuda.memory._context_lost", lambda: False)
    device, driver = opened
    with pytest.raises(DeviceFault):
        device._kernels.launch("digest", F32, (1, 1), 32, *args)
    assert not driver.calls


def test_digests_of_many_buffers_take_one_wait_and_one_download(
    opened: tuple[CudaDevice, Driver],
) -> None:
    device, driver = opened
    arrays = [np.arange(n, dtype=np.int32) + n for n in (5, 1000, 0, 2000)]
    buffers = [device.upload(array) for array in arrays]
    device.digests(buffers)  # makes room for results
    driver.calls.clear()
    found = device.digests(buffers)
    assert driver.calls == {"memset": 1, "launch digest": 3, "synchronize": 1, "download": 1}
    assert found == [device.digests([buffer])[0] for buffer in buffers]
    assert len(set(found)) == 4
    driver.calls.clear()
    assert device.digests([]) == []
    assert not driver.calls


def test_a_changed_byte_changes_the_digest_of_its_buffer_alone(
    opened: tuple[CudaDevice, Driver],
) -> None:
    device, _ = opened
    arrays = [np.arange(100, dtype=np.int32) for _ in range(3)]
    before = device.digests([device.upload(array) for array in arrays])
    arrays[1][99] ^= 1 << 30
    after = device.digests([device.upload(array) for array in arrays])
    assert [a != b for a, b in zip(after, before, strict=True)] == [False, True, False]


def test_more_buffers_than_fit_one_request_have_their_digests_too(
    opened: tuple[CudaDevice, Driver],
) -> None:
    device, _ = opened
    buffers = [device.upload(np.full(4, n, np.int32)) for n in range(3)]
    many = (buffers * 50)[:-1]
    assert device.digests(many) == (device.digests(buffers) * 50)[:-1]


@pytest.mark.parametrize("dtype", [F32, F64])
def test_streams_gathers_and_transposes_are_those_of_the_host(
    opened: tuple[CudaDevice, Driver], dtype: np.dtype
) -> None:
    device, _ = opened
    source, out = device.allocate(1001 * dtype.itemsize), device.allocate(3 * dtype.itemsize)
    stream = Stream(-7, bits=13, exponent=-2)
    device.fill_stream(source, dtype, stream)
    assert np.array_equal(device.download(source, dtype), stream.take(1001, dtype))
    device.gather(source, device.upload(np.array([5, -1, 1000], np.int32)), out, dtype)
    taken = stream.take(1001, dtype)
    assert device.download(out, dtype).tolist() == [taken[5], 0, taken[1000]]
    turned = device.allocate(source.nbytes)
    device.transpose(source, turned, 7, 143, dtype)
    assert np.array_equal(device.download(turned, dtype), taken.reshape(7, 143).T.reshape(-1))


@pytest.mark.parametrize("columns", [1, 33])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_the_check_is_that_of_the_host_and_waits_once(
    opened: tuple[CudaDevice, Driver], dtype: np.dtype, columns: int
) -> None:
    device, driver = opened
    wide = LONG_ROW + 5  # a row of a block of its own
    rng = np.random.default_rng(3)
    row_ptr = np.array([0, 0, 9, 9 + wide, 12 + wide], np.int32)
    parts = [np.arange(9), np.arange(wide), np.arange(3)]
    col_idx = np.concatenate(parts).astype(np.int32)
    values = rng.standard_normal(col_idx.size).astype(dtype)
    dense = rng.standard_normal(wide * columns).astype(dtype)
    a = sparse.csr_array((values.astype(float), col_idx, row_ptr), shape=(4, wide))
    right = (a @ dense.reshape(wide, columns).astype(float)).astype(dtype).reshape(-1)
    csr = tuple(device.upload(array) for array in (row_ptr, col_idx, values))
    given, output = device.upload(dense), device.allocate(right.nbytes)
    for wrong in (False, True):
        got = right.copy()
        if wrong:
            got[[columns, -1]] = np.nan, 1e3
            got[2 * columns] += 1.0
        driver.memcpy_htod(output.pointer, got)
        driver.calls.clear()
        found = device.check(csr, given, output, 4, columns, dtype, exact=False)
        want = verify.compare(row_ptr, col_idx, values, dense, got, 4, columns, dtype, False)
        assert (found.wrong, found.unwritten, found.row) == (want.wrong, want.unwritten, want.row)
        assert found.ratio == pytest.approx(want.ratio, rel=1e-3, abs=1e-2)
        assert (found.wrong, found.row) == ((3, 1) if wrong else (0, -1))
    assert (driver.calls["synchronize"], driver.calls["download"]) == (1, 1)
    assert driver.calls["upload"] == 0


def test_a_write_beside_a_buffer_is_noticed_when_it_is_waited_for(
    opened: tuple[CudaDevice, Driver],
) -> None:
    device, driver = opened
    buffer = device.upload(np.zeros(5, np.int32))
    device.sync()
    driver.memset_d8(buffer.pointer + 20, 0, 1)
    with pytest.raises(DeviceFault, match="past the end of") as found:
        device.sync()
    assert found.value.status is Status.MEMORY_FAULT
