"""Accesses that a program must not make, each with its message, and those that it may."""

from __future__ import annotations

import numpy as np
import pytest

from suite.evaluation import Status
from suite.harness.device import DeviceFault
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.emulator.faults import parse_fault
from tests.emulator.lab import Lab, floats, ints, kernel

# Body of a kernel over y (10 floats, 40 bytes), i (16 ints) and zero; what the message must say.
FAULTS = {
    "a write past the end": (
        "y[10 + threadIdx.x] = 1;",
        "is 8 bytes past the end of buffer y (40 bytes) (block 0, thread 2)",
    ),
    "a read past the readable end": (
        "if (threadIdx.x == 4) y[0] = y[12];",
        "is 8 bytes past the end of buffer y (40 bytes) (block 0, thread 4)",
    ),
    "a read far past the end": (
        "y[0] = y[1 << 30];",
        "past the end of buffer y (40 bytes) (block 0, thread 0)",
    ),
    "a read with the most negative index": (
        "y[0] = ((double*)y)[-2147483647 - 1 + zero];",
        "before the start of buffer y (40 bytes) (block 0, thread 0)",
    ),
    "another buffer past its end": (
        "y[0] = i[16];",
        "is 0 bytes past the end of buffer i (64 bytes)",
    ),
    "a null pointer": ("y[0] = *(float*)(size_t)(8 + zero);", "address 0x8 is a null pointer"),
    "a wild pointer": (
        "y[0] = *(float*)(size_t)(1 << 20);",
        "address 0x100000 belongs to no buffer",
    ),
    "a pointer that is no address": (
        "y[0] = *(float*)(0x7ff8000000000000ull + zero);",
        "misaligned address, or one beyond the address space",
    ),
    "a misaligned scalar": ("*(float*)((char*)y + 2 + zero) = 1;", "misaligned address"),
    "a misaligned vector": ("((float4*)(y + 1 + zero))->x = 1;", "misaligned address"),
    "a division by zero": ("y[0] = 3 / zero;", "integer division by zero"),
    "endless recursion": (
        "y[0] = deep(y, zero);",
        "more than 512 KB of local memory in a thread (block 0, thread 0)",
    ),
}
DEEP = """
__device__ __noinline__ float deep(float* y, int n) {
    volatile float local[100];
    local[n] = n;
    return n < 0 ? local[0] : deep(y, n + (int)(local[n] * 0)) + local[n];
}
"""


@pytest.mark.parametrize("name", FAULTS)
def test_a_forbidden_access_ends_in_a_memory_fault_that_says_where(ordered: Lab, name: str) -> None:
    body, message = FAULTS[name]
    code = DEEP + kernel("float* y, const int* i, int zero", body)
    args = {"y": np.zeros(10, np.float32), "i": np.zeros(16, np.int32), "zero": 0}
    status, said = ordered.fault_of(code, args)
    assert status is Status.MEMORY_FAULT
    assert said.startswith("kernel k: ")
    assert message in said


def test_a_thread_may_have_as_much_local_memory_as_on_the_gpu(lab: Lab) -> None:
    body = """
        volatile char local[300 << 10];
        local[n] = 5; local[sizeof local - 1 - n] = 2;
        __syncthreads();
        y[threadIdx.x] = local[n] + local[sizeof local - 1 - n];"""
    out = lab.run(kernel("int* y, int n", body), {"y": ints(40), "n": 7}, block=40)["y"]
    assert out.tolist() == [7] * 40


def test_an_array_too_large_for_local_memory_is_named_wherever_it_is_touched(ordered: Lab) -> None:
    body = "volatile char local[1 << 20]; local[n] = 5; y[0] = local[n];"
    for at in (0, 1 << 19, (1 << 20) - 1):
        said = ordered.fault_of(kernel("int* y, int n", body), {"y": ints(1), "n": at}, block=1)
        assert said == (
            Status.MEMORY_FAULT,
            "kernel k: more than 512 KB of local memory in a thread (block 0, thread 0)",
        )


def test_a_fault_in_a_later_block_names_block_and_thread_in_three_dimensions(lab: Lab) -> None:
    body = (
        "if (blockIdx.x == 1 && blockIdx.y == 2 && threadIdx.y == 3 && threadIdx.x == 1) y[4] = 1;"
    )
    _, said = lab.fault_of(
        kernel("float* y", body), {"y": floats(4)}, grid=(3, 3, 1), block=(4, 8, 1)
    )
    assert said.endswith("past the end of buffer y (16 bytes) (block 1,2,0, thread 1,3,0)")


def test_a_fault_after_a_barrier_is_reported_as_well(lab: Lab) -> None:
    body = "__syncthreads(); if (threadIdx.x == 70) y[4] = 1;"
    status, said = lab.fault_of(kernel("float* y", body), {"y": floats(4)}, block=128)
    assert (status, said.rpartition("(")[2]) == (Status.MEMORY_FAULT, "block 0, thread 70)")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1023, 1024, 1025])
def test_a_buffer_may_be_read_to_the_next_multiple_of_sixteen_bytes(lab: Lab, count: int) -> None:
    body = "float4 v = ((const float4*)x)[n / 4]; y[0] = v.x + 0 * n;"
    last = (count - 1) // 4 * 4
    x = np.arange(count, dtype=np.float32)
    code = kernel("const float* x, float* y, int n", body)
    out = lab.run(code, {"x": x, "y": floats(1), "n": last}, block=1)
    assert out["y"][0] == last


@pytest.mark.parametrize(
    ("index", "where"), [(-1, "before the start"), (5, "past the end"), (7, "past the end")]
)
def test_a_write_beside_a_buffer_is_found_though_it_hits_no_guard(
    lab: Lab, index: int, where: str
) -> None:
    code = kernel("float* y, int at", "y[at] = 1;")
    with pytest.raises(DeviceFault, match=f"^kernel k wrote {where} of buffer y ") as caught:
        lab.run(code, {"y": floats(5), "at": index}, block=1)
    assert caught.value.status is Status.MEMORY_FAULT
    assert lab.run(code, {"y": floats(5), "at": 2}, block=1)["y"][2] == 1


def test_a_freed_buffer_is_out_of_reach(lab: Lab) -> None:
    def attempt() -> None:
        buffer = lab.device.upload(floats(4))
        lab.device.free(buffer)
        buffer.view(np.float32)[0] = 1

    status, said = lab.fault(attempt)
    assert status is Status.INFRASTRUCTURE_ERROR
    assert "outside a kernel" in said


def test_a_buffer_of_no_bytes_is_a_valid_argument(lab: Lab) -> None:
    code = kernel("const float* x, int* y", "y[threadIdx.x] = x != nullptr;")
    assert lab.run(code, {"x": floats(0), "y": ints(32)})["y"].tolist() == [1] * 32


def test_buffers_start_at_multiples_of_sixteen_and_come_back_as_they_went(
    device: EmulatorDevice,
) -> None:
    rng = np.random.default_rng(0)
    for nbytes in (0, 1, 15, 16, 17, 4095, 4096, 4097, 100_003):
        array = rng.integers(0, 256, nbytes).astype(np.uint8)
        buffer = device.upload(array)
        assert buffer.address % 16 == 0
        assert buffer.nbytes == nbytes
        assert np.array_equal(device.download(buffer, np.dtype(np.uint8)), array)
        device.free(buffer)


def test_more_memory_than_there_is_is_refused_in_one_line(device: EmulatorDevice) -> None:
    with pytest.raises(
        DeviceFault, match="no memory for a buffer of 1000000000000000 bytes"
    ) as caught:
        device.allocate(10**15)
    assert caught.value.status is Status.INFRASTRUCTURE_ERROR


@pytest.mark.parametrize("said", [b"", b"mem", b"memory_fault", b"memory_fault ", b"\xff\xfe junk"])
def test_a_line_that_was_cut_short_is_nobodys_fault(said: bytes) -> None:
    status, message = parse_fault(said)
    assert status is Status.INFRASTRUCTURE_ERROR
    assert "\n" not in message


def test_a_whole_line_is_a_status_and_a_message() -> None:
    assert parse_fault(b"memory_fault kernel k: x\n") == (Status.MEMORY_FAULT, "kernel k: x")
    both = b"memory_fault kernel k: x\nmemory_fault kernel k: y\n"
    assert parse_fault(both) == (Status.MEMORY_FAULT, "kernel k: x")
