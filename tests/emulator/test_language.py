"""CUDA's own additions to C++."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.lab import Lab, ints, kernel, program


def test_threads_know_where_they_are_in_three_dimensions(lab: Lab) -> None:
    body = """
        unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        unsigned size = blockDim.x * blockDim.y * blockDim.z;
        uint3 t = threadIdx; dim3 d = blockDim;
        y[block * size + thread] = t.x + 10 * t.y + 100 * t.z + 1000 * blockIdx.x
            + 10000 * blockIdx.y + 100000 * blockIdx.z + 1000000 * d.y;"""
    out = lab.run(kernel("int* y", body), {"y": ints(24 * 60)}, grid=(4, 3, 2), block=(5, 4, 3))
    z, y, x, tz, ty, tx = np.indices((2, 3, 4, 3, 4, 5))
    expected = tx + 10 * ty + 100 * tz + 1000 * x + 10000 * y + 100000 * z + 4000000
    assert out["y"].tolist() == expected.ravel().tolist()


def test_every_thread_of_every_block_runs_once(lab: Lab) -> None:
    code = kernel(
        "unsigned* y", "atomicAdd(y + (blockIdx.x * blockDim.x + threadIdx.x) % 1000, 1);"
    )
    out = lab.run(code, {"y": np.zeros(1000, np.uint32)}, grid=500, block=1024)
    assert out["y"].tolist() == [512] * 1000


def test_templates_lambdas_operators_and_constants_mean_what_they_mean(lab: Lab) -> None:
    x = np.arange(3 * 64, dtype=np.int32)
    args = {"y": ints(12), "x": x, "scale": -4, "count": 9}
    out = lab.run(program("language.cu"), args, name="language", grid=3, block=64)["y"].reshape(
        3, 4
    )
    sums = x.reshape(3, 64).sum(axis=1)
    assert out[:, 0].tolist() == (sums + 1).tolist()
    assert out[:, 1].tolist() == (sums // 2 + 101).tolist()
    assert out[:, 2].tolist() == [-30 + 9] * 3
    assert out[:, 3].tolist() == [932] * 3


def test_device_variables_are_shared_by_blocks_and_fresh_at_each_load(lab: Lab) -> None:
    first = lab.run(program("language.cu"), {"y": ints(1), "x": ints(1)}, name="visited", block=1)
    again = lab.run(program("language.cu"), {"y": ints(1), "x": ints(1)}, name="visited", block=1)
    assert first["y"].tolist() == again["y"].tolist() == [4]
    bump = "__device__ int seen; " + kernel("int* y", "y[0] = atomicAdd(&seen, 1) + 1;")
    for _ in range(2):
        assert lab.run(bump, {"y": ints(1)}, grid=64, block=8, times=3)["y"][0] > 1000
        assert lab.run(bump, {"y": ints(1)}, grid=1, block=1)["y"].tolist() == [1]


def test_dynamic_shared_memory_goes_to_the_limit_of_the_device(lab: Lab) -> None:
    n = 232448 // 8
    args = {"y": ints(2 * n), "n": n}
    out = lab.run(program("language.cu"), args, name="dynamic", grid=2, block=96, shared=8 * n)
    assert (out["y"] == n - 1).all()


def test_dynamic_and_static_shared_memory_do_not_overlap(lab: Lab) -> None:
    args = {"y": ints(64)}
    out = lab.run(program("language.cu"), args, name="other_name", block=64, shared=256)
    assert out["y"].tolist() == [(i ^ 1) + 7 for i in range(64)]


def test_shared_memory_is_not_what_the_last_block_left(lab: Lab) -> None:
    body = "__shared__ int s[4]; int old = s[threadIdx.x]; s[threadIdx.x] = 7; y[blockIdx.x] = old;"
    out = lab.run(kernel("int* y", body), {"y": np.zeros(50, np.int32)}, grid=50, block=4)
    assert out["y"].tolist() == [-1] * 50


def test_alignment_may_be_asked_for_anywhere_in_a_shared_declaration(lab: Lab) -> None:
    body = """
        __shared__ char odd;
        __shared__ alignas(16) float a[4];
        __shared__ __align__(16) float b[4];
        __align__(16) __shared__ float c[4];
        static __shared__ float4 d[2];
        volatile __shared__ int e;
        odd = 1; e = odd; d[0].x = 0;
        y[0] = (int)(((size_t)a | (size_t)b | (size_t)c | (size_t)d) & 15) + e;"""
    assert lab.run(kernel("int* y", body), {"y": ints(1)}, block=1)["y"].tolist() == [1]


def test_what_a_program_prints_is_discarded(lab: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    code = kernel("int* y", 'printf("%d\\n", y[0]); assert(y[0] == -1); y[0] = 3;')
    assert lab.run(code, {"y": ints(1)}, block=1)["y"].tolist() == [3]
    assert capfd.readouterr().out == ""


def test_the_clock_of_a_thread_goes_forward(lab: Lab) -> None:
    body = "long long t = clock64(); y[0] = y[1] / 3; y[2] = clock64() >= t && clock() != 0;"
    assert lab.run(kernel("int* y", body), {"y": ints(3)}, block=1)["y"][2] == 1
