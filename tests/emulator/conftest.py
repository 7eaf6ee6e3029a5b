from __future__ import annotations

from pathlib import Path

import pytest

from suite.harness.emulator.device import EmulatorDevice
from tests.emulator.lab import Lab


@pytest.fixture(scope="session")
def cache(compiled: Path) -> Path:
    return compiled / "emulator"


@pytest.fixture(scope="session")
def device(cache: Path) -> EmulatorDevice:
    return EmulatorDevice(cache, workers=2)


@pytest.fixture(params=[False, True], ids=["in order", "racing"])
def lab(device: EmulatorDevice, request: pytest.FixtureRequest) -> Lab:
    return Lab(device, request.param)


@pytest.fixture
def ordered(device: EmulatorDevice) -> Lab:
    """Where the order of threads shows: the first faulting thread is the first of all."""
    return Lab(device)
