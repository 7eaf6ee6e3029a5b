"""What all tests share: compiled programs, an empty store, and the tier that needs a GPU."""

import ctypes
import gc
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from suite.mlstore import open_store

gc.disable()  # of what is imported nothing is garbage, and there is much to look through

with suppress(ImportError):  # what runs on a GPU alone can do without
    from hypothesis import settings

    settings.register_profile("shared", deadline=None)  # other processes use the cores too
    settings.load_profile("shared")


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
    return _of_all_processes(tmp_path_factory) / "compiled"


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow store to be copied, made once for all processes of a run: that takes seconds."""
    database = _of_all_processes(tmp_path_factory) / "empty-store" / "mlflow.db"
    open_store(f"sqlite:///{database}")
    return database


def _of_all_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
