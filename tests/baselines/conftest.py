"""One evaluator for all tests of baselines: a program is compiled once however many run it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.harness.compile import Cache
from suite.harness.evaluate import Evaluator, Settings


@pytest.fixture(scope="session")
def settings(compiled: Path) -> Settings:
    return Settings(precision=None, cache=compiled)


@pytest.fixture(scope="session")
def cubins(settings: Settings) -> Cache:
    """Where the evaluator keeps what it compiles for the GPU."""
    return Cache(Path(settings.cache, "cubin"))


@pytest.fixture(scope="session", params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def evaluator(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Evaluator]:
    with Evaluator(request.param, settings) as evaluator:
        yield evaluator
