"""Threads of a block that wait for each other, and those that wait in vain."""

from __future__ import annotations

import time

import numpy as np
import pytest

from suite.evaluation import Status
from suite.harness.device import DeviceFault
from tests.emulator.lab import Lab, floats, ints, kernel


def test_a_barrier_orders_writes_and_reads_of_shared_memory(lab: Lab) -> None:
    body = """
        __shared__ float s[2][256];
        int t = threadIdx.x, at = 0;
        s[0][t] = x[blockIdx.x * 256 + t];
        __syncthreads();
        for (int d = 1; d < 256; d *= 2, at ^= 1) {
            s[at ^ 1][t] = s[at][t] + (t >= d ? s[at][t - d] : 0.0f);
            __syncthreads();
        }
        y[blockIdx.x * 256 + t] = s[at][t];"""
    x = np.random.default_rng(1).integers(0, 9, 20 * 256).astype(np.float32)
    code = kernel("const float* x, float* y", body)
    out = lab.run(code, {"x": x, "y": floats(x.size)}, grid=20, block=256)
    assert out["y"].tolist() == x.reshape(20, 256).cumsum(axis=1).ravel().tolist()


def test_barriers_count_their_predicates(lab: Lab) -> None:
    body = """
        int t = threadIdx.x, size = blockDim.x;
        y[t] = __syncthreads_count(t % 3 == 0);
        y[size + t] = __syncthreads_and(t < 100) + 2 * __syncthreads_and(t < 99);
        y[2 * size + t] = __syncthreads_or(t == 63) + 2 * __syncthreads_or(t == 100);"""
    out = lab.run(kernel("int* y", body), {"y": ints(300)}, block=100)["y"]
    assert out.reshape(3, 100).tolist() == [[34] * 100, [1] * 100, [1] * 100]


def test_threads_that_left_are_not_waited_for(lab: Lab) -> None:
    body = """
        if (threadIdx.x % 2) return;
        y[threadIdx.x] = __syncthreads_count(1);
        if (threadIdx.x > 10) return;
        y[threadIdx.x] += __syncthreads_count(1);"""
    out = lab.run(kernel("int* y", body), {"y": ints(64)}, block=64)["y"]
    assert out[::2].tolist() == [38] * 6 + [32] * 26


def test_a_thread_may_leave_while_the_others_already_wait(lab: Lab) -> None:
    body = """
        if (threadIdx.x == 63) return;
        __syncthreads();
        y[threadIdx.x] = __ballot_sync(-1u, 1) != 0;"""
    assert lab.run(kernel("int* y", body), {"y": ints(64)}, block=64)["y"].sum() == 62


def test_barriers_in_different_branches_meet(lab: Lab) -> None:
    body = """
        __shared__ int s;
        if (threadIdx.x == 40) { s = 8; __syncthreads(); } else { __syncthreads(); }
        y[threadIdx.x] = s;"""
    assert lab.run(kernel("int* y", body), {"y": ints(64)}, block=64)["y"].tolist() == [8] * 64


def test_a_thread_may_poll_an_atomic_until_another_sets_it(lab: Lab) -> None:
    body = """
        __shared__ int flag;
        if (threadIdx.x == 0) flag = 0;
        __syncthreads();
        if (threadIdx.x == 0) while (atomicAdd(&flag, 0) == 0) {}
        if (threadIdx.x == 77) atomicExch(&flag, 1);
        y[threadIdx.x] = 1;"""
    assert lab.run(kernel("int* y", body), {"y": ints(96)}, block=96)["y"].tolist() == [1] * 96


def test_a_block_may_wait_for_the_block_before_it(lab: Lab) -> None:
    body = """
        volatile int* done = y;
        if (blockIdx.x > 0) while (done[blockIdx.x - 1] < 0) {}
        __threadfence();
        done[blockIdx.x] = blockIdx.x == 0 ? 1 : done[blockIdx.x - 1] + 1;"""
    out = lab.run(kernel("int* y", body), {"y": ints(200)}, grid=200, block=1)
    assert out["y"].tolist() == list(range(1, 201))


DEADLOCKS = {
    "half the warp at a barrier, half at a shuffle": (
        "if (threadIdx.x < 16) __syncthreads(); else y[0] = __shfl_sync(-1u, 1, 0);",
        32,
        "16 threads wait at __syncthreads and 16 in warp collectives, the first in a shuffle"
        " with mask 0xffffffff",
    ),
    "a mask that names a lane which never comes": (
        "if (threadIdx.x == 0) __syncwarp(3u); else __syncthreads();",
        64,
        "63 threads wait at __syncthreads and 1 in warp collectives, the first in __syncwarp"
        " with mask 0x3",
    ),
    "different collectives under one mask": (
        "if (threadIdx.x & 1) __syncwarp(); else y[0] = __any_sync(-1u, 1);",
        32,
        "32 in warp collectives",
    ),
    "a mask without the calling lane": (
        "if (threadIdx.x == 5) __syncwarp(1u);",
        32,
        "mask 0x1 that does not name the calling lane",
    ),
}


@pytest.mark.parametrize("name", DEADLOCKS)
def test_a_deadlock_is_a_timeout_at_once(lab: Lab, name: str) -> None:
    body, block, message = DEADLOCKS[name]
    started = time.monotonic()
    with pytest.raises(DeviceFault, match=r"^deadlock: kernel k") as caught:
        lab.run(
            kernel("int* y", f"if (blockIdx.x == 3) {{ {body} }}"),
            {"y": ints(1)},
            grid=8,
            block=block,
        )
    assert caught.value.status is Status.TIMEOUT
    assert message in str(caught.value)
    assert "(block 3" in str(caught.value)
    assert time.monotonic() - started < 2


def test_after_a_deadlock_the_next_program_runs_as_ever(lab: Lab) -> None:
    stuck = kernel("int* y", "if (threadIdx.x) __syncthreads(); else __syncwarp(2u | 1u);")
    for _ in range(3):
        with pytest.raises(DeviceFault):
            lab.run(stuck, {"y": ints(1)}, grid=100, block=1024)
    good = kernel("int* y", "y[threadIdx.x] = __syncthreads_count(1);")
    assert lab.run(good, {"y": ints(1024)}, block=1024)["y"].tolist() == [1024] * 1024


@pytest.mark.parametrize("body", ["__trap();", "assert(y == nullptr);"])
def test_a_trap_is_a_memory_fault_that_says_so(lab: Lab, body: str) -> None:
    code = kernel("int* y", f"if (threadIdx.x == 9 && blockIdx.x == 2) {body}")
    with pytest.raises(
        DeviceFault, match=r"^kernel k: (trap|assertion failed: y == nullptr) "
    ) as caught:
        lab.run(code, {"y": ints(1)}, grid=4)
    assert caught.value.status is Status.MEMORY_FAULT
    assert str(caught.value).endswith("(block 2, thread 9)")
