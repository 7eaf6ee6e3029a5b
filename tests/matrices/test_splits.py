"""Nothing that is measured in the end has been trained on."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from suite.matrices import named, splits
from suite.matrices.base import MatrixError
from suite.matrices.draws import DRAWS, draw, may_be_drawn
from suite.matrices.recipes import structure_key
from suite.matrices.splits import Split

SMALL = (300, 3000)


def everything():
    learnt = {spec.name: spec for spec in (*splits.train(), *splits.tuning())}
    return {
        "train": list(learnt.values()),
        "validation": splits.validation(),
        "test": splits.test(),
    }


def test_splits_share_no_name_and_no_parameters():
    splits.assert_disjoint(everything())


def test_splits_share_no_structure_among_small_matrices():
    built = {
        split.value: [
            spec.build()
            for spec in itertools.islice(splits.sampled(split, SMALL, seed), count)
            if spec.family not in ("fem", "graph")
        ]
        for split, count, seed in (
            (Split.TRAIN, 300, 0),
            (Split.VALIDATION, 30, 1),
            (Split.TEST, 30, 2),
        )
    }
    built["test"] += [spec.build() for spec in named.smoke()]
    splits.assert_disjoint({}, built)


def test_train_is_large_varied_and_from_small_to_large():
    train = splits.train()
    assert len(train) >= 3000
    assert {spec.family for spec in train} == set(DRAWS)
    assert len({spec.name for spec in train}) == len(train)
    assert all(may_be_drawn(spec.name) for spec in train)
    assert len(splits.validation()) == 60


def test_smoke_and_paper_are_test_matrices():
    tested = {spec.name for spec in splits.test()}
    for spec in (*named.smoke(), *named.paper()):
        assert spec.name in tested
        assert splits.split_of(spec) is Split.TEST


def test_split_does_not_depend_on_the_seed_of_a_matrix():
    spec = splits.train()[0]
    other = dataclasses.replace(spec, params={**spec.params, "seed": 12345})
    assert splits.split_of(other) is Split.TRAIN


def test_sampling_is_repeatable_and_follows_its_seed():
    def keys(seed):
        specs = itertools.islice(splits.sampled(Split.TRAIN, SMALL, seed), 50)
        return [(spec.name, dict(spec.params)) for spec in specs]

    assert keys(3) == keys(3)
    assert keys(3) != keys(4)


def test_another_seed_still_never_leaves_its_split():
    for spec in itertools.islice(splits.sampled(Split.TRAIN, seed=99), 500):
        assert splits.split_of(spec) is Split.TRAIN


@pytest.mark.parametrize("family", DRAWS)
def test_draws_have_about_the_wanted_entries(family):
    if family in ("fem", "graph"):
        wanted, count = 3e3, 5
    else:
        wanted, count = 2e4, 20
    found = [draw(family, wanted, seed).build().csr.nnz for seed in range(count)]
    assert min(found) > wanted / 4
    assert max(found) < wanted * 4


@pytest.mark.parametrize("family", [f for f in DRAWS if f not in ("fem", "graph")])
def test_smallest_draws_build(family):
    for seed in range(20):
        assert draw(family, 100, seed).build().csr.nnz > 0


def test_overlap_in_name_is_found():
    spec = splits.train()[0]
    renamed = dataclasses.replace(spec, params={"rows": -1})
    with pytest.raises(MatrixError, match="name"):
        splits.assert_disjoint({"train": [spec], "test": [renamed]})


def test_overlap_in_parameters_is_found_whatever_the_seed():
    spec = next(s for s in splits.train() if "seed" in s.params)
    renamed = dataclasses.replace(spec, name="other", params={**spec.params, "seed": -1})
    with pytest.raises(MatrixError, match="parameters"):
        splits.assert_disjoint({"train": [spec], "test": [renamed]})


def test_overlap_in_structure_is_found_whatever_the_values():
    matrix = named.smoke()[0].build()
    twin = dataclasses.replace(matrix, name="twin", csr=matrix.csr * 2)
    with pytest.raises(MatrixError, match="twin in test has the structure of"):
        splits.assert_disjoint({}, {"train": [matrix], "test": [twin]})


def test_keys_tell_families_and_parameters_apart():
    specs = (*named.smoke(), *named.paper())
    assert len({structure_key(spec) for spec in specs}) == len(specs)


def test_a_split_may_be_named_by_its_word():
    assert next(splits.sampled("train")).name == next(splits.sampled(Split.TRAIN)).name
    with pytest.raises(ValueError, match="nowhere"):
        next(splits.sampled("nowhere"))
