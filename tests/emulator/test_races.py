"""Programs that are right by the order of their threads alone: one of two runs finds them out."""

from __future__ import annotations

import numpy as np
import pytest

from suite.harness.emulator.device import EmulatorDevice
from suite.harness.plan import BufferArg, Launch, Plan, ScalarArg
from tests.emulator.lab import compiled, kernel

ROWS, ENTRIES, BLOCK = 300, 4096, 128


def two_runs(
    device: EmulatorDevice, code: str, arrays: dict[str, np.ndarray], size: int
) -> list[np.ndarray]:
    """The output y of two runs of one loaded program, cleared before each; it may name ``n``."""
    buffers = {name: device.upload(array) for name, array in arrays.items()}
    args = (*(BufferArg(name) for name in arrays), ScalarArg(size, "int"))
    launch = Launch("k", (-(-size // BLOCK), 1, 1), (BLOCK, 1, 1), 0, args)
    loaded = device.load(compiled(code), Plan("y", True, (), (launch,), tuple(arrays)), buffers)
    outputs = []
    for _ in range(2):
        loaded.run()
        outputs.append(device.download(buffers["y"], arrays["y"].dtype))
    loaded.close()
    for buffer in buffers.values():
        device.free(buffer)
    return outputs


def coo(device: EmulatorDevice, rows: np.ndarray, update: str) -> list[bool]:
    body = f"int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {update} }}"
    vals = np.arange(1, rows.size + 1, dtype=np.float64)
    arrays = {"rows": rows.astype(np.int32), "vals": vals, "y": np.zeros(ROWS)}
    code = kernel("const int* rows, const double* vals, double* y, int n", body)
    right = np.bincount(rows, vals, ROWS)
    return [np.array_equal(y, right) for y in two_runs(device, code, arrays, rows.size)]


@pytest.mark.parametrize("longest", [ENTRIES // ROWS, 2, 31])
def test_a_sum_without_an_atomic_is_found_out(device: EmulatorDevice, longest: int) -> None:
    rows = np.sort(np.arange(ROWS * 2) // longest % ROWS)
    assert coo(device, rows, "y[rows[i]] += vals[i];") != [True, True]
    assert coo(device, rows, "y[rows[i]] = y[rows[i]] + vals[i];") != [True, True]


def test_a_sum_with_an_atomic_is_right_in_both(device: EmulatorDevice) -> None:
    rows = np.sort(np.random.default_rng(0).integers(0, ROWS, ENTRIES))
    assert coo(device, rows, "atomicAdd(y + rows[i], vals[i]);") == [True, True]


def exchange(device: EmulatorDevice, code: str) -> list[bool]:
    x = np.arange(1, 8 * BLOCK + 1, dtype=np.float32)
    arrays = {"x": x, "y": np.zeros_like(x)}
    body = "__shared__ float s[128]; int t = threadIdx.x, b = blockIdx.x * 128;" + code
    outputs = two_runs(device, kernel("const float* x, float* y, int n", body), arrays, x.size)
    right = x.reshape(-1, BLOCK)[:, ::-1].ravel()
    return [np.array_equal(y, right) for y in outputs]


def test_a_tile_exchange_needs_its_barrier(device: EmulatorDevice) -> None:
    good = exchange(device, "s[t] = x[b + t]; __syncthreads(); y[b + t] = s[127 - t];")
    assert good == [True, True]
    assert exchange(device, "s[t] = x[b + t]; y[b + t] = s[127 - t];") != [True, True]


def test_a_tile_that_only_later_threads_read_needs_its_barrier_too(device: EmulatorDevice) -> None:
    # In ascending order, thread 0 fills the tile before any other thread looks at it.
    fill = "if (t == 0) for (int i = 0; i < 128; ++i) s[i] = x[b + 127 - i];"
    assert exchange(device, fill + "__syncthreads(); y[b + t] = s[t];") == [True, True]
    assert exchange(device, fill + "y[b + t] = s[t];") != [True, True]


def test_a_block_cannot_count_on_an_earlier_block(device: EmulatorDevice) -> None:
    body = """
        int i = blockIdx.x * 128 + threadIdx.x;
        y[i] = i < 128 ? 1 : y[i - 128] + 1;"""
    arrays = {"y": np.zeros(64 * BLOCK, np.int32)}
    chained = np.arange(64).repeat(BLOCK) + 1
    first, second = two_runs(device, kernel("int* y, int n", body), arrays, 64 * BLOCK)
    assert not (np.array_equal(first, chained) and np.array_equal(second, chained))


def test_threads_that_store_the_same_value_are_no_race(device: EmulatorDevice) -> None:
    arrays = {"y": np.zeros(1, np.int32)}
    for y in two_runs(device, kernel("int* y, int n", "y[0] = n;"), arrays, 1000):
        assert y.tolist() == [1000]
