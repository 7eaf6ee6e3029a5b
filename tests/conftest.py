"""What all tests share: compiled programs, and the tier that needs a GPU."""

import ctypes
import gc
import os
from functools import cache
from pathlib import Path

import pytest

gc.disable()  # of what is imported nothing is garbage, and there is much to look through


def pytest_collection_finish() -> None:
    gc.freeze()  # nor later: a trainer's set-up collects, and would look at every module again
    gc.enable()


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


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of compiled programs, the emulator itself among them, for all processes of a run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return folder / "compiled"
