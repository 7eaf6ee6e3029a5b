"""A change of anything that a program may not change is noticed, in one look at all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse

from suite.formats.sell import Sell
from suite.harness.exchange import Exchange
from suite.harness.judge import EXACT, OWN, Stage
from suite.harness.posed import Posed
from suite.harness.resident import ProblemRef, ResidentMatrix
from suite.harness.watched import Derived
from suite.matrices.base import Matrix
from suite.problem import DType, Op, Problem
from tests.harness.host import HostBuffer, HostDevice


@dataclass
class Lab:
    """A problem in SELL, which has maps, and a derived array beside it."""

    device: HostDevice
    stage: Stage
    posed: Posed
    buffers: dict[str, HostBuffer]
    trusted: list[HostBuffer]

    def spoil(self, buffer: HostBuffer) -> None:
        buffer.data[1] ^= 1

    def look(self, what: str) -> tuple[list[str], int]:
        """Names of what has changed, and how often the device was asked."""
        before = self.device.looks
        found = getattr(self.stage, what)()
        return found, self.device.looks - before


@pytest.fixture
def lab() -> Iterator[Lab]:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((40, 30)) < 0.2, rng.standard_normal((40, 30)), 0.0)
    matrix = Matrix("m", "uniform", scipy.sparse.csr_array(dense))
    exchange, device = Exchange(), HostDevice()
    folder = exchange.put(Problem(Op.SPMV, matrix, 1, DType.FLOAT32))
    ref = ProblemRef("p", matrix.digest, folder, (40, 30), Op.SPMV, 1, DType.FLOAT32, seed=7)
    posed = Posed(device, ref, ResidentMatrix(device, ref))
    converted = posed.matrix.converted(Sell(c=4, sigma=8))
    made = {name: device.upload(np.arange(9, dtype=np.int32)) for name in ("bins", "ends")}
    stage = posed.stage(converted, ["slice_ptr", "vals", "x"], derived=Derived(device, made))
    stage.use(EXACT)
    stage.note()
    (values_map,) = converted.watched_maps()
    buffers = {**converted.buffers, **made, "x": posed.dense, "map of vals": values_map.buffer}
    yield Lab(device, stage, posed, buffers, list(posed.matrix.trusted(EXACT)))
    exchange.close()


def test_where_nothing_has_changed_nothing_is_named_and_two_looks_are_enough(lab: Lab) -> None:
    assert lab.look("changed") == ([], 1)
    assert lab.look("outside") == ([], 1)


def test_everything_that_a_program_has_changed_is_named_after_one_look(lab: Lab) -> None:
    for name in ("slice_ptr", "vals", "x", "bins", "ends"):
        lab.spoil(lab.buffers[name])
        assert name in lab.look("changed")[0]
    assert lab.look("changed") == (["slice_ptr", "vals", "x", "bins", "ends"], 1)
    assert lab.look("outside") == ([], 1)


def test_everything_that_no_program_is_given_is_named_after_one_look(lab: Lab) -> None:
    for buffer in (*lab.trusted, lab.buffers["map of vals"]):
        lab.spoil(buffer)
    names = ["row pointers", "column indices", "signs", "map of vals"]
    assert lab.look("outside") == (names, 1)
    assert lab.look("changed") == ([], 1)


def test_what_a_program_does_not_bind_is_not_looked_at(lab: Lab) -> None:
    lab.spoil(lab.buffers["col_idx"])
    assert lab.look("changed") == ([], 1)


def test_a_shaken_input_may_hold_anything_until_the_next_set(lab: Lab) -> None:
    lab.stage.shake()
    lab.spoil(lab.buffers["x"])
    assert lab.look("changed") == ([], 1)
    lab.stage.use(OWN)
    assert lab.look("changed") == ([], 1)
    lab.spoil(lab.buffers["x"])
    assert lab.look("changed") == (["x"], 1)


def test_trusted_values_are_looked_at_while_their_set_is_in_place(lab: Lab) -> None:
    lab.spoil(lab.posed.matrix.values(OWN))
    assert lab.look("outside") == ([], 1)
    lab.stage.use(OWN)
    assert lab.look("outside") == (["values"], 1)


def test_what_is_derived_anew_is_right_as_it_is_then(lab: Lab) -> None:
    lab.spoil(lab.buffers["bins"])
    before = lab.device.looks
    lab.stage.note()
    assert lab.device.looks == before + 1
    assert lab.look("changed") == ([], 1)
