"""``heuristic`` picks a baseline that applies, and its fit minimises lost time."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suite.author import Kind
from suite.baselines.files import baselines
from suite.baselines.fit import MISSING, Table, cross_validated, fit, loss, table
from suite.baselines.heuristic import (
    RULE,
    HeuristicAuthor,
    Leaf,
    Rule,
    Split,
    applies,
    authors,
    read,
    write,
)
from suite.evaluation import Status
from suite.matrices.sets import select
from suite.matrices.structure import FEATURES
from suite.problem import Op, Problem
from tests.suite.rows import failed, right

AMONG = baselines()
DIA = next(author.name for author in AMONG if author.name.startswith("dia-"))
TREE = Split("diagonal", 0.5, Leaf(("csr_vector-lanes8", "coo")), Leaf((DIA, "coo")))


def problem(name: str, op: Op = Op.SPMV, columns: int = 1) -> Problem:
    return Problem(op, select(name)[0].build(), columns)


def text_of(name: str, op: str = "spmv") -> str:
    return next(author.texts[op] for author in AMONG if author.name == name)


def test_the_leaf_of_the_matrix_answers() -> None:
    author = HeuristicAuthor(Rule({"spmv": TREE}, "by hand"), AMONG)
    for matrix, name in (("tridiagonal-1k", DIA), ("uniform-12-2k", "csr_vector-lanes8")):
        (program,) = author.write(problem(matrix), 3)
        assert program.text == text_of(name)
        assert program.author == "heuristic"
    assert author.answers("spmv")
    assert not author.answers("spmm")


def test_what_does_not_apply_is_passed_over() -> None:
    only_dia_first = Rule({"spmv": Leaf((DIA, "coo"))}, "by hand")
    scattered = problem("empty-rows-20k")
    assert not applies(text_of(DIA), scattered)
    (program,) = HeuristicAuthor(only_dia_first, AMONG).write(scattered, 1)
    assert program.text == text_of("coo")
    (hopeless,) = HeuristicAuthor(Rule({"spmv": Leaf((DIA,))}, ""), AMONG).write(scattered, 1)
    assert hopeless.text == text_of(DIA)  # its status then says that it does not apply


def test_requirements_are_looked_at_and_those_on_converted_sizes_are_not() -> None:
    text = text_of("coo")
    small = problem("tridiagonal-1k")
    for line, holds in (("longest <= 3", True), ("longest < 3", False), ("width > 9", True)):
        assert applies(text.replace("//! op", f"//! require {line}\n//! op"), small) is holds


def test_other_numbers_of_columns_take_the_nearest_tree() -> None:
    rule = Rule({"spmm32": Leaf(("a",)), "spmm128": Leaf(("b",))}, "by hand")
    picks = [rule.ranking(problem("tridiagonal-1k", Op.SPMM, n)) for n in (1, 32, 60, 70, 512)]
    assert picks == [("a",), ("a",), ("a",), ("b",), ("b",)]
    assert rule.ranking(problem("tridiagonal-1k")) == ()


def test_a_rule_reads_back_as_written(tmp_path: Path) -> None:
    rule = Rule({"spmv": TREE, "spmm32": Leaf(("ell",))}, "by hand")
    write(rule, tmp_path / "rule.json")
    assert read(tmp_path / "rule.json") == rule
    assert authors(tmp_path / "none.json") == []


@pytest.mark.skipif(not RULE.exists(), reason="no rule has been fitted yet")
def test_the_rule_that_ships_names_baselines_that_ship() -> None:
    (author,) = authors()
    known = {author.name: author for author in AMONG}
    for label, tree in read(RULE).trees.items():
        nodes = [tree]
        while nodes:
            node = nodes.pop()
            if isinstance(node, Split):
                assert node.feature in FEATURES
                nodes += [node.low, node.high]
                continue
            op = label.rstrip("0123456789")
            assert set(node.ranking) <= {name for name in known if op in known[name].texts}
    assert author.kind is Kind.CHOOSER


def synthetic(problems: int, noise: float = 0.0) -> Table:
    """Author 0 is best where feature 3 is below 0.5, else author 1; author 2 is 5 % behind both."""
    rng = np.random.default_rng(1)
    known = rng.random((problems, len(FEATURES)))
    high = known[:, 3] > 0.5
    regret = np.array([high * 1.0, ~high * 1.0, np.full(problems, 0.05)]).T
    regret += noise * rng.random(regret.shape)
    return Table(("low", "high", "second"), known, regret, np.ones(regret.shape, bool))


def test_a_fit_finds_the_feature_that_decides() -> None:
    tree = fit(synthetic(100), leaves=2)
    assert isinstance(tree, Split)
    assert tree.feature == FEATURES[3]
    assert tree.threshold == pytest.approx(0.5, abs=0.05)
    assert loss(tree, synthetic(100)).max() == 0
    assert cross_validated(synthetic(100), 2) < 0.02


def test_what_a_tree_has_by_heart_does_not_help_it_on_matrices_that_were_left_out() -> None:
    rng = np.random.default_rng(2)
    data = synthetic(100)
    luck = replace(data, known=rng.random(data.known.shape), regret=rng.random((100, 3)))
    fitted = loss(fit(luck, 24), luck).mean()
    assert cross_validated(luck, 24) > 1.3 * fitted
    with pytest.raises(ValueError, match="2 matrices with times; a fit takes 5"):
        cross_validated(luck.rows(np.arange(2)), 2)


def test_one_leaf_takes_what_loses_least_not_what_wins_most() -> None:
    tree = fit(synthetic(100), leaves=1)
    assert isinstance(tree, Leaf)
    assert tree.ranking[0] == "second"


def test_a_fit_stops_where_nothing_is_gained() -> None:
    data = synthetic(60)
    same = replace(data, regret=np.tile([0.0, 1.0, 2.0], (60, 1)))
    assert fit(same, leaves=10) == Leaf(("low", "high", "second"))


def test_what_does_not_apply_costs_as_a_failure_and_is_passed_over() -> None:
    rows = [
        right("a", 10.0, "one"),
        failed(Status.NOT_APPLICABLE, "two", author="a"),
        right("b", 20.0, "one"),
        right("b", 30.0, "two"),
    ]
    known = {name: dict.fromkeys(FEATURES, 0.0) for name in ("one", "two")}
    data = table(rows, "spmv", known)
    assert data.authors == ("a", "b")
    assert data.regret == pytest.approx(np.array([[0.0, math.log(2)], [MISSING, 0.0]]))
    assert loss(Leaf(("a", "b")), data).tolist() == [0.0, 0.0]


def test_what_fails_or_is_far_slower_is_not_passed_over() -> None:
    rows = [
        right("a", 500.0, "one"),
        failed(Status.WRONG_RESULT, "two", author="a"),
        right("b", 1.0, "one"),
        right("b", 30.0, "two"),
    ]
    known = {name: dict.fromkeys(FEATURES, 0.0) for name in ("one", "two")}
    assert loss(Leaf(("a", "b")), table(rows, "spmv", known)) == pytest.approx(
        [math.log(500), MISSING]
    )


def test_a_campaign_without_times_is_refused() -> None:
    rows = [failed(Status.NOT_APPLICABLE, "one", author="a")]
    with pytest.raises(ValueError, match="no baseline has a time"):
        table(rows, "spmv", {})
