"""A device's check is held to SciPy on some rows of every problem."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from suite.evaluation import Status
from suite.harness.anchor import PRODUCTS, anchor, block
from suite.harness.device import Check, DeviceFault
from suite.harness.exchange import Exchange
from suite.harness.posed import Posed
from suite.harness.resident import ProblemRef, ResidentMatrix
from suite.matrices.base import Matrix
from suite.problem import DType, Op, Problem
from tests.harness.host import HostDevice


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    """Rows of no to three entries, and one of all columns."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((400, 90)) < 0.015, rng.standard_normal((400, 90)), 0.0)
    dense[150] = rng.standard_normal(90)
    return Matrix("m", "uniform", scipy.sparse.csr_array(dense))


@pytest.fixture
def pose(matrix: Matrix) -> Iterator[Callable[..., tuple[HostDevice, Posed]]]:
    exchange = Exchange()

    def made(
        columns: int = 1, dtype: DType = DType.FLOAT32, device: HostDevice | None = None
    ) -> tuple[HostDevice, Posed]:
        op = Op.SPMV if columns == 1 else Op.SPMM
        folder = exchange.put(Problem(op, matrix, columns, dtype))
        ref = ProblemRef("p", matrix.digest, folder, matrix.csr.shape, op, columns, dtype, seed=7)
        device = device or HostDevice()
        return device, Posed(device, ref, ResidentMatrix(device, ref))

    yield made
    exchange.close()


class Misjudging(HostDevice):
    """A device whose check counts wrong elements in its own way."""

    def __init__(self, change: Callable[[Check], Check]) -> None:
        super().__init__()
        self._change = change

    def check(self, *arguments: object) -> Check:  # type: ignore[override]
        return self._change(super().check(*arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize("products", [100, PRODUCTS])
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("columns", [1, 2, 33])
def test_a_check_that_is_right_passes_and_leaves_nothing_behind(
    pose: Callable[..., tuple[HostDevice, Posed]],
    columns: int,
    dtype: DType,
    products: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("suite.harness.anchor.PRODUCTS", products)
    device, posed = pose(columns, dtype)
    before = set(device.live)
    anchor(device, posed)
    assert device.live == before


def test_no_dense_columns_are_no_rows_to_compare(
    pose: Callable[..., tuple[HostDevice, Posed]],
) -> None:
    device, posed = pose(columns=0)
    anchor(device, posed)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: replace(found, wrong=0),
        lambda found: replace(found, wrong=400),
        lambda found: replace(found, wrong=found.wrong // 2),
        lambda found: replace(found, wrong=found.wrong - (found.ratio < 10)),
    ],
    ids=["accepts all", "refuses all", "sees half", "forgives a little"],
)
def test_a_check_that_counts_otherwise_is_found_out(
    pose: Callable[..., tuple[HostDevice, Posed]], change: Callable[[Check], Check]
) -> None:
    device, posed = pose(device=Misjudging(change))
    with pytest.raises(DeviceFault, match="the device's check and SciPy disagree on rows") as found:
        anchor(device, posed)
    assert found.value.status is Status.INFRASTRUCTURE_ERROR


def test_rows_are_the_longest_and_neighbours_within_what_is_wanted(matrix: Matrix) -> None:
    row_ptr = matrix.csr.indptr
    for entries in (0, 91, 100, 200, 10**6):
        rows = block(row_ptr, entries)
        assert rows.start <= 150 < rows.stop
        held = row_ptr[rows.stop] - row_ptr[rows.start]
        assert held == 90 or held <= entries
    assert block(row_ptr, 10**6) == slice(0, 400)
    assert block(row_ptr, 0).stop - block(row_ptr, 0).start < 20  # itself, and empty ones beside it
    assert block(np.array([0, 0, 0]), 10) == slice(0, 2)
