"""A matrix in another order is the same matrix, and another structure."""

from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from suite.campaign import check_files
from suite.matrices.base import MatrixError, MatrixSpec
from suite.matrices.named import smoke
from suite.matrices.permuted import ORDERS, permuted, rcm, shuffled
from suite.matrices.sets import select
from suite.matrices.splits import structure_digest
from suite.matrices.structure import facts
from suite.problem import DType

NAMES = ("stencil-5pt-48", "wide-200x9k", "power-law-3k")


def spec_of(name: str) -> MatrixSpec:
    return next(spec for spec in smoke() if spec.name == name)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", NAMES)
def test_the_entries_are_the_same_ones(name: str, order: str) -> None:
    before, after = spec_of(name).build(), permuted(spec_of(name), order).build()
    assert after.name == f"{name}+{order}"
    assert after.family == before.family
    assert after.csr.shape == before.csr.shape
    assert sorted(after.csr.data.tolist()) == sorted(before.csr.data.tolist())
    for axis in (0, 1):
        counts = [
            np.sort(np.bincount(m.csr.nonzero()[axis], minlength=m.csr.shape[axis]))
            for m in (before, after)
        ]
        assert np.array_equal(*counts)
    assert structure_digest(after) != structure_digest(before)


@pytest.mark.parametrize("order", [shuffled, rcm])
@pytest.mark.parametrize("shape", [(7, 7), (5, 9), (9, 4)])
def test_it_is_a_permutation_of_rows_and_columns(order: object, shape: tuple[int, int]) -> None:
    values = np.arange(1, shape[0] * shape[1] + 1, dtype=float).reshape(shape)
    found = order(sparse.csr_array(values), "m").toarray()  # type: ignore[operator]
    rows = [int(np.flatnonzero((np.sort(values, 1) == np.sort(r)).all(1))[0]) for r in found]
    cols = [int(np.flatnonzero((np.sort(c) == np.sort(values, 0).T).all(1))[0]) for c in found.T]
    assert np.array_equal(found, values[np.ix_(rows, cols)])


def test_a_shuffled_stencil_reaches_far_and_comes_back() -> None:
    stencil = spec_of("stencil-5pt-48")
    mixed = permuted(stencil, "shuffled")
    reaches = [
        facts(spec.build().csr)["reach"] for spec in (stencil, mixed, permuted(stencil, "rcm"))
    ]
    assert reaches[1] > 40 * reaches[0]
    assert reaches[2] <= 2 * reaches[0]


def test_the_same_name_gives_the_same_order() -> None:
    one, other = (permuted(spec_of(NAMES[0]), "shuffled").build() for _ in range(2))
    assert one.digest == other.digest


def test_sets_families_and_names_can_be_asked_in_another_order() -> None:
    assert [spec.name for spec in select("airfoil+rcm")] == ["airfoil+rcm"]
    found = select("smoke+shuffled,smoke")
    assert [spec.name for spec in found[:12]] == [f"{spec.name}+shuffled" for spec in smoke()]
    assert len(found) == 24
    assert len(select("block-*+rcm")) >= 2


def test_files_can_be_asked_in_another_order(tmp_path: Path) -> None:
    io.mmwrite(tmp_path / "own.mtx", sparse.eye_array(20, k=3))
    (spec,) = check_files(select(f"{tmp_path}/own.mtx+rcm"), DType.FLOAT32)
    assert spec.build().name == "own+rcm"
    io.mmwrite(tmp_path / "a+rcm.mtx", sparse.eye_array(5))
    assert [one.name for one in select(f"{tmp_path}/a+rcm.mtx")] == ["a-rcm"]


def test_an_order_that_is_not_there_is_told() -> None:
    with pytest.raises(MatrixError, match="is no matrix"):
        select("airfoil+sorted")
    with pytest.raises(MatrixError, match="there are shuffled, rcm"):
        permuted(smoke()[0], "sorted")
