"""The dearer tiers: a test that needs a GPU is skipped where there is none, and says so."""

import ctypes
from functools import cache

import pytest


@cache
def gpu_missing() -> str:
    """Why there is no GPU here; empty where there is one."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver"
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no CUDA device"
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and gpu_missing():
        pytest.skip(f"needs an NVIDIA GPU: {gpu_missing()}")
