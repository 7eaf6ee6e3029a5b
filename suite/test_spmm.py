"""``C = A B``: every matrix, every number of dense columns, every author."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from suite.plugin import Measure

pytestmark = pytest.mark.suite("spmm")


def test_spmm(
    matrix: str, columns: int, author: str, measure: Measure, benchmark: BenchmarkFixture
) -> None:
    """The answer compiles and is right; its time is the benchmark's."""
    measure(benchmark)
