"""Atomic operations, under contention between host threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.lab import Lab, kernel

GRID, BLOCK = 64, 128
EACH = np.arange(GRID * BLOCK)

# Operation on y (type, start), what every thread i contributes, and what must come out.
CASES = {
    "add int": ("int", -3, "atomicAdd(y, i)", EACH.sum() - 3),
    "add unsigned": ("unsigned", 1, "atomicAdd(y, 2u)", 2 * EACH.size + 1),
    "add long": ("unsigned long long", 0, "atomicAdd(y, 1ull << 33)", EACH.size << 33),
    "add float": ("float", 0.5, "atomicAdd(y, 1.0f)", EACH.size + 0.5),
    "add double": ("double", 0.25, "atomicAdd(y, (double)i)", EACH.sum() + 0.25),
    "sub": ("int", 0, "atomicSub(y, 3)", -3 * EACH.size),
    "min": ("int", 5, "atomicMin(y, -i)", -EACH.max()),
    "max": ("unsigned", 5, "atomicMax(y, (unsigned)i)", EACH.max()),
    "max long": ("long long", -9, "atomicMax(y, (long long)i << 32)", int(EACH.max()) << 32),
    "min long": ("unsigned long long", 99, "atomicMin(y, 7ull + i)", 7),
    "and": ("unsigned", 2**32 - 1, "atomicAnd(y, ~(1u << i % 16))", 0xFFFF0000),
    "or": ("int", 0, "atomicOr(y, 1 << i % 8)", 255),
    "xor": ("unsigned long long", 0, "atomicXor(y, (unsigned long long)i)", 0),
    "inc wraps": ("unsigned", 0, "atomicInc(y, 9u)", EACH.size % 10),
    "dec wraps": ("unsigned", 0, "atomicDec(y, 9u)", (-EACH.size) % 10),
    "block scope": ("int", 0, "atomicAdd_system(y, 1)", EACH.size),
    "cas loop": (
        "int",
        0,
        "int s = *y, old; do { old = s; s = atomicCAS(y, old, old + 2); } while (s != old)",
        2 * EACH.size,
    ),
    "exchange keeps every value": (
        "int",
        0,
        "int mine = 1; mine = atomicExch(y, mine); atomicAdd(y + 1, mine)",
        1,
    ),
}
NUMPY = {
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}


@pytest.mark.parametrize("name", CASES)
def test_no_update_is_lost(lab: Lab, name: str) -> None:
    ctype, start, code, expected = CASES[name]
    text = kernel(f"{ctype}* y", f"int i = blockIdx.x * blockDim.x + threadIdx.x; {code};")
    y = np.array([start, 0], NUMPY[ctype])
    assert lab.run(text, {"y": y}, grid=GRID, block=BLOCK)["y"][0] == expected


def test_an_atomic_returns_what_was_there(lab: Lab) -> None:
    y, seen = np.zeros(1, np.int32), np.full(2048, -1, np.int32)
    code = kernel("int* y, int* seen", "seen[blockIdx.x * 64 + threadIdx.x] = atomicAdd(y, 1);")
    out = lab.run(code, {"y": y, "seen": seen}, grid=32, block=64)
    assert sorted(out["seen"].tolist()) == list(range(2048))


def test_vectors_add_component_by_component(lab: Lab) -> None:
    code = kernel("float* y", "atomicAdd((float4*)y, make_float4(1, 2, 3, 4));")
    out = lab.run(code, {"y": np.zeros(4, np.float32)}, grid=10)
    assert out["y"].tolist() == [320, 640, 960, 1280]


def test_a_spin_lock_within_a_warp_comes_to_an_end(lab: Lab) -> None:
    body = """
        for (bool waiting = true; waiting;)
            if (atomicCAS(y, 0, 1) == 0) {
                y[1] = y[1] + 1;
                __threadfence();
                atomicExch(y, 0);
                waiting = false;
            }"""
    assert (
        lab.run(kernel("int* y", body), {"y": np.zeros(2, np.int32)}, grid=9, block=96)["y"][1]
        == 864
    )
