from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.harness.emulator.device import EmulatorDevice
from suite.harness.evaluate import Evaluator, Settings


@pytest.fixture(scope="session")
def cache(compiled: Path) -> Path:
    """Compiled programs, the emulator itself among them."""
    return compiled


@pytest.fixture(scope="session")
def emulator(cache: Path) -> EmulatorDevice:
    """The emulator in this process, for programs that are known to be sound."""
    return EmulatorDevice(cache / "emulator", workers=2)


@pytest.fixture(scope="module", params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def evaluator(request: pytest.FixtureRequest, cache: Path) -> Iterator[Evaluator]:
    with Evaluator(request.param, Settings(cache=cache, run_s=3.0)) as evaluator:
        yield evaluator
