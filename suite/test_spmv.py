"""``y = A x``: every matrix, every author."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from suite.plugin import Measure

pytestmark = pytest.mark.suite("spmv")


def test_spmv(matrix: str, author: str, measure: Measure, benchmark: BenchmarkFixture) -> None:
    """The answer compiles and is right; its time is the benchmark's."""
    measure(benchmark)
