"""What the honest clock rests on, on a real GPU: bandwidth, readings, flushes that hold."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suite.harness.timing import Precision

if TYPE_CHECKING:
    from suite.harness.cuda.device import CudaDevice

pytestmark = pytest.mark.gpu
WINDOW = 16 << 20  # bytes that are to persist in the L2


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> CudaDevice:
    from suite.harness.cuda.device import CudaDevice

    return CudaDevice(Path(tmp_path_factory.mktemp("cubin")))


def test_the_copy_bandwidth_is_that_of_a_gpu_and_measured_once(device: CudaDevice) -> None:
    first = device.copy_gbps()
    started = time.perf_counter()
    assert device.copy_gbps() == first
    assert time.perf_counter() - started < 1e-3
    assert 100 < first < 20_000


def test_a_reading_takes_little_of_a_measurement(device: CudaDevice) -> None:
    device._witness.read()
    started = time.perf_counter()
    for _ in range(10):
        device._witness.read()
    assert (time.perf_counter() - started) / 10 < 5e-3  # three of them within 60 ms a program


def test_a_quiet_gpu_is_not_disturbed(device: CudaDevice) -> None:
    buffer = device.upload(np.zeros(1 << 22, np.float32))
    found = device.measure(lambda: device.fill(buffer, 0), lambda: None, Precision())
    device.free(buffer)
    assert not isinstance(found, float)
    assert found.conditions.disturbed == ""
    assert found.conditions.copy_gbps == device.copy_gbps()


def test_what_a_stream_makes_persist_is_cold_all_the_same(device: CudaDevice) -> None:
    source = device.upload(np.zeros(WINDOW // 4, np.float32))
    slots = device.upload(np.arange(WINDOW // 4, dtype=np.int32))
    out = device.allocate(WINDOW)

    def cold_us() -> float:
        def run() -> None:
            device.gather(source, slots, out, np.dtype(np.float32))

        return device._clock.cold(run, lambda: None, Precision()).median_us

    plain = cold_us()
    _persist(device, source.pointer)
    pinned = cold_us()
    for buffer in (source, slots, out):
        device.free(buffer)
    assert pinned > 0.93 * plain


def _persist(device: CudaDevice, address: int) -> None:
    from cuda.bindings import driver

    limit = driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    (error,) = driver.cuCtxSetLimit(limit, WINDOW)
    if error != driver.CUresult.CUDA_SUCCESS:
        pytest.skip("this GPU keeps no lines in its L2")
    value = driver.CUstreamAttrValue()
    value.accessPolicyWindow.base_ptr = address
    value.accessPolicyWindow.num_bytes = WINDOW
    value.accessPolicyWindow.hitRatio = 1.0
    value.accessPolicyWindow.hitProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    value.accessPolicyWindow.missProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    attribute = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    stream = driver.CUstream(device.stream.handle)
    (error,) = driver.cuStreamSetAttribute(stream, attribute, value)
    assert error == driver.CUresult.CUDA_SUCCESS
