"""What is asked at a step follows from the step; matrices are of the right split and size."""

import itertools
from dataclasses import replace

import pytest

from suite.matrices.splits import Split, split_of
from suite.problem import Op
from training.curriculum import GPU, SMALL, Band, Curriculum, bands_of, turns
from training.errors import ConfigError
from training.shelf import Shelf

CURRICULUM = Curriculum(SMALL, problems=3, window=5, fresh=2)


def test_a_step_asks_the_same_whenever_it_is_asked() -> None:
    again = replace(CURRICULUM)
    assert [CURRICULUM.at(step) for step in range(50)] == [again.at(step) for step in range(50)]
    assert again.spec(17).source == CURRICULUM.spec(17).source
    assert replace(CURRICULUM, seed=1).spec(0).source != CURRICULUM.spec(0).source


def test_matrices_come_and_go() -> None:
    for step in range(20):
        asked = CURRICULUM.at(step)
        assert len(set(asked)) == 3
        assert set(asked) <= set(CURRICULUM.there(step))
    seen = {number for step in range(20) for number in CURRICULUM.at(step)}
    assert len(seen) > 30


def test_only_matrices_to_learn_from_are_asked() -> None:
    gpu = replace(CURRICULUM, bands=GPU)
    assert all(split_of(gpu.spec(number)) is Split.TRAIN for number in range(60))
    held = replace(CURRICULUM, split=Split.VALIDATION)
    assert all(split_of(held.spec(number)) is Split.VALIDATION for number in range(5))


def test_bands_have_their_shares() -> None:
    found = turns(GPU)
    assert [found.count(at) for at in range(2)] == [13, 7]
    longest = max(len(list(run)) for _, run in itertools.groupby(found))
    assert longest <= 2


def test_both_operations_are_asked() -> None:
    matrix = CURRICULUM.spec(0).build()
    labels = [CURRICULUM.problem(number, matrix).label for number in range(200)]
    assert {"spmv", "spmm32", "spmm128"} == set(labels)
    assert 80 <= labels.count("spmv") <= 120


def test_what_is_too_large_for_dense_columns_is_asked_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = CURRICULUM.spec(0).build()
    monkeypatch.setattr("training.curriculum.DENSE_BYTES", 10.0)
    assert {CURRICULUM.problem(n, matrix).op for n in range(20)} == {Op.SPMV}


def test_bands_are_read() -> None:
    assert bands_of("65:5e6:3e7,35:1e4:5e6") == GPU
    assert bands_of("1:100:100") == (Band(1, 100, 100),)


@pytest.mark.parametrize("text", ["", "1:2", "a:1e3:1e4", "1:1e4:1e3", "0:1e3:1e4", "1:5:1e4"])
def test_bands_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        bands_of(text)


@pytest.mark.parametrize("builders", [0, 1])
def test_a_shelf_has_what_steps_ask_and_gives_it_up(builders: int) -> None:
    shelf = Shelf(CURRICULUM, builders, last=4)
    released: list[str] = []
    try:
        first = shelf.take(0)
        assert [p.matrix.name for p in first] == [CURRICULUM.spec(n).name for n in CURRICULUM.at(0)]
        assert shelf.take(0)[0] is first[0]
        shelf.leave(0, lambda matrix: released.append(matrix.name))
        gone = range(CURRICULUM.there(1).start)
        assert set(released) <= {CURRICULUM.spec(number).name for number in gone}
        for step in range(1, 4):
            assert len(shelf.take(step)) == 3
    finally:
        shelf.close()
