"""What lanes of a warp tell each other."""

from __future__ import annotations

import numpy as np
import pytest

from suite.harness.emulator.device import EmulatorDevice
from tests.emulator.lab import Lab, floats, ints, kernel, program

LANE = np.arange(32)
FULL = 0xFFFFFFFF


@pytest.fixture(scope="module")
def shuffled(device: EmulatorDevice) -> dict[str, np.ndarray]:
    args = {"out": ints(8 * 32), "wide": np.zeros(32), "big": np.zeros(32, np.int64)}
    return Lab(device).run(program("collectives.cu"), args, name="shuffles")


@pytest.mark.parametrize(
    ("row", "source"),
    [
        pytest.param(0, np.full(32, 5), id="one lane to all"),
        pytest.param(1, LANE // 8 * 8 + 3, id="one lane to each segment"),
        pytest.param(2, np.where(LANE % 16 >= 2, LANE - 2, LANE), id="up within segments"),
        pytest.param(3, np.where(LANE % 8 <= 4, LANE + 3, LANE), id="down within segments"),
        pytest.param(4, LANE ^ 1, id="butterfly"),
        pytest.param(5, np.where((LANE ^ 12) <= (LANE | 7), LANE ^ 12, LANE), id="xor to earlier"),
        pytest.param(6, np.full(32, 5), id="source lane modulo the width"),
        pytest.param(7, 31 - LANE, id="a lane of each one's own choice"),
    ],
)
def test_a_shuffle_reads_the_lane_that_cuda_says(
    shuffled: dict[str, np.ndarray], row: int, source: np.ndarray
) -> None:
    assert shuffled["out"].reshape(8, 32)[row].tolist() == (source * 10).tolist()


def test_shuffles_move_eight_bytes(shuffled: dict[str, np.ndarray]) -> None:
    assert shuffled["wide"].tolist() == [*(LANE[1:] + 0.5), 31.5]
    assert shuffled["big"].tolist() == [2**40, *(2**40 + LANE[:-1])]


def test_votes_matches_and_reductions_see_every_lane(lab: Lab) -> None:
    out = lab.run(program("collectives.cu"), {"out": np.zeros(352, np.uint32)}, name="votes")["out"]
    rows = out.reshape(11, 32)
    expected = {
        0: sum(1 << lane for lane in range(0, 32, 3)),
        1: 1,
        2: 0,
        3: 1,
        5: (FULL + 1) % 2**32,
        6: 0,
        7: 496,
        8: 2**32 - 16,
        9: 2**32 - 1,
        10: FULL,
    }
    for row, value in expected.items():
        assert rows[row].tolist() == [value] * 32, f"question {row}"
    assert rows[4].tolist() == [0xF << (lane // 4 * 4) for lane in range(32)]


def test_halves_of_a_warp_meet_under_masks_of_their_own(lab: Lab) -> None:
    out = lab.run(program("collectives.cu"), {"out": np.zeros(32, np.uint32)}, name="halves")["out"]
    assert out[:16].tolist() == [120] * 16
    assert out[16:].tolist() == [0xAAAA0000] * 16


def test_activemask_names_the_lanes_that_take_the_same_branch(lab: Lab) -> None:
    out = lab.run(program("collectives.cu"), {"out": np.zeros(32, np.uint32)}, name="converged")[
        "out"
    ]
    assert out[:24].tolist() == [0x555555, 0xAAAAAA] * 12
    assert out[24:].tolist() == [0] * 8


def test_lanes_that_left_or_never_were_are_not_waited_for(lab: Lab) -> None:
    code = kernel(
        "int* y", "if (threadIdx.x >= 20) return; y[threadIdx.x] = __ballot_sync(-1u, 1);"
    )
    assert lab.run(code, {"y": ints(32)}, block=24)["y"].tolist() == [0xFFFFF] * 20 + [-1] * 12


def test_what_is_shuffled_from_a_lane_that_left_is_not_a_number(lab: Lab) -> None:
    code = kernel("float* y", "if (threadIdx.x < 9) y[threadIdx.x] = __shfl_sync(-1u, 1.0f, 9);")
    assert np.isnan(lab.run(code, {"y": np.ones(32, np.float32)})["y"][:9]).all()


def test_a_segmented_scan_of_many_warps_is_right(lab: Lab) -> None:
    body = """
        int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
        float s = x[i];
        for (int d = 1; d < 32; d *= 2) {
            float up = __shfl_up_sync(0xffffffffu, s, d);
            if (lane >= d) s += up;
        }
        y[i] = s;"""
    x = np.random.default_rng(0).integers(0, 100, 12 * 256).astype(np.float32)
    code = kernel("const float* x, float* y", body)
    out = lab.run(code, {"x": x, "y": floats(x.size)}, grid=12, block=256)
    assert out["y"].tolist() == x.reshape(-1, 32).cumsum(axis=1).ravel().tolist()
