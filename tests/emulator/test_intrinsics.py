"""Intrinsics, mathematics and vector types."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.lab import PRELUDE, Lab, floats, ints, program

INTEGERS = (
    *(13, 32, 29, 32, 61, 3, 0, 41, 0x1E6A2C48, 1 << 63),
    *(0xCDEF0112, 0x01123456, 0xABCDEF01, 0x78EF34AB, 0x808080FF),
    *(3, 2**32 - 2, 3, 2**32 - 15, 8, 5),
    *(2**32 - 7, 2**32 - 1, 3, 0x3F800000, 0x4000000000000000),
    *(2, 2**32 - 2, 2**32 - 3, 3, 2**31 - 1, 0, 0, 0x3FF00000, 5, 2**32 - 2),
)
REALS = (
    *(7, -(2.0**-104), -(2.0**-46), 10, 1, 2, 3.5, 6, 3.75),
    *(-2 + 2 + 2 - 7, 8 + 3 + 8 + 4, -3 + 3 + 8, 2 + 4 + 8, 1, 3, 5.5, 2),
)
SIZES = {
    "char4": (4, 4),
    "uchar2": (2, 2),
    "short2": (4, 4),
    "ushort4": (8, 8),
    "int2": (8, 8),
    "int3": (12, 4),
    "int4": (16, 16),
    "uint4": (16, 16),
    "float2": (8, 8),
    "float3": (12, 4),
    "float4": (16, 16),
    "double2": (16, 16),
    "double4_16a": (32, 16),
    "double4_32a": (32, 32),
    "longlong2": (16, 16),
    "ulonglong2": (16, 16),
    "real4": (16, 16),
}


def test_integer_intrinsics_have_their_known_results(lab: Lab) -> None:
    y = np.zeros(len(INTEGERS), np.uint64)
    out = lab.run(program("intrinsics.cu"), {"y": y, "five": 5}, name="integers", block=1)["y"]
    assert out.tolist() == list(INTEGERS)


def test_real_functions_have_their_known_results(lab: Lab) -> None:
    args = {"y": np.zeros(len(REALS)), "n": 2}
    out = lab.run(program("intrinsics.cu"), args, name="reals", block=1)["y"]
    assert out.tolist() == list(REALS)


def test_vector_types_have_the_sizes_and_alignments_of_cuda(lab: Lab) -> None:
    out = lab.run(program("vectors.cu"), {"y": ints(2 * len(SIZES))}, name="sizes", block=1)["y"]
    assert dict(zip(SIZES, map(tuple, out.reshape(-1, 2).tolist()), strict=True)) == SIZES


def test_vector_loads_and_stores_move_the_right_elements(lab: Lab) -> None:
    x = np.arange(128, dtype=np.float32)
    args = {"y": floats(128), "x": x, "idx": np.arange(64, dtype=np.int32)}
    out = lab.run(program("vectors.cu"), args, name="moves")["y"].reshape(32, 4)
    pairs = x.reshape(-1, 2).sum(axis=1).reshape(32, 2)
    assert out[:, :2].tolist() == (pairs + 1).tolist()
    assert out[:, 2:].ravel().tolist() == list(range(64))


@pytest.mark.parametrize("name", ["collectives.cu", "language.cu", "intrinsics.cu", "vectors.cu"])
def test_the_gpu_compiler_accepts_what_these_tests_run(name: str) -> None:
    core = pytest.importorskip("cuda.core", reason="needs cuda-core with NVRTC")
    options = core.ProgramOptions(arch="sm_90")
    core.Program(PRELUDE + program(name), "c++", options).compile("cubin")
