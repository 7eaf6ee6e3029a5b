"""``heuristic`` picks a baseline that applies, and its fit makes predicted times of counts."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from suite.author import Kind
from suite.baselines.cost import terms
from suite.baselines.files import baselines
from suite.baselines.fit import (
    MISSING,
    Measured,
    Table,
    cross_validated,
    export,
    fit,
    loss,
    measured,
    table,
)
from suite.baselines.heuristic import (
    RULE,
    HeuristicAuthor,
    Rule,
    applies,
    authors,
    read,
    write,
)
from suite.evaluation import Status
from suite.harness.parse import parse
from suite.matrices.sets import select
from suite.matrices.structure import Structure
from suite.problem import DType, Op, Problem
from suite.record import Row
from tests.suite.rows import BLANK, failed, right

AMONG = baselines()
DIA = next(author.name for author in AMONG if author.name.startswith("dia-"))
PUBLISHED = Path(__file__).parents[2] / "reports/published/h200/heuristic-fit.parquet"
BY_HAND = Rule({"spmv/f32": {DIA: {"stream": 1.0}, "coo": {"stream": 1.0}}}, "by hand")


def problem(name: str, op: Op = Op.SPMV, columns: int = 1, dtype: DType = DType.FLOAT32) -> Problem:
    return Problem(op, select(name)[0].build(), columns, dtype)


def structure(name: str) -> Structure:
    return Structure(select(name)[0].build().csr)


def text_of(name: str, op: str = "spmv") -> str:
    return next(author.texts[op] for author in AMONG if author.name == name)


def accepts(text: str, asked: Problem) -> bool:
    return applies(text, asked, Structure(asked.matrix.csr))


def as_measured(row: Row) -> Measured:
    return Measured(**{f.name: getattr(row, f.name) for f in dataclasses.fields(Measured)})


def test_the_lowest_predicted_time_answers() -> None:
    author = HeuristicAuthor(BY_HAND, AMONG)
    for matrix, name in (("tridiagonal-1k", DIA), ("uniform-12-2k", "coo")):
        (program,) = author.write(problem(matrix), 3)
        assert program.text == text_of(name)
        assert program.author == "heuristic"
    assert author.answers("spmv")
    assert not author.answers("spmm")


def test_what_does_not_apply_is_passed_over() -> None:
    dia_costs_nothing = {DIA: {}, "coo": {"launch": 1.0}}
    scattered = problem("empty-rows-20k")
    assert not accepts(text_of(DIA), scattered)
    both = Rule({"spmv/f32": dia_costs_nothing}, "by hand")
    (program,) = HeuristicAuthor(both, AMONG).write(scattered, 1)
    assert program.text == text_of("coo")
    (hopeless,) = HeuristicAuthor(Rule({"spmv/f32": {DIA: {}}}, ""), AMONG).write(scattered, 1)
    assert hopeless.text == text_of(DIA)  # its status then says that it does not apply


def test_requirements_are_looked_at_those_on_converted_sizes_too() -> None:
    text = text_of("coo")
    small = problem("tridiagonal-1k")
    for line, holds in (("longest <= 3", True), ("longest < 3", False)):
        assert accepts(text.replace("//! op", f"//! require {line}\n//! op"), small) is holds
    blocks = text_of("bsr-edge4")
    for line, holds in (("width <= 3", True), ("width < 3", False)):
        assert accepts(blocks.replace("//! op", f"//! require {line}\n//! op"), small) is holds


def test_other_problems_take_the_nearest_prices_of_their_precision() -> None:
    rule = Rule(
        {
            "spmm32/f32": {"a": {"launch": 1.0}},
            "spmm128/f32": {"b": {"launch": 1.0}},
            "spmm128/f64": {"c": {"launch": 1.0}},
        },
        "by hand",
    )
    of = structure("tridiagonal-1k")

    def picks(dtype: DType) -> list[str]:
        asked = (problem("tridiagonal-1k", Op.SPMM, n, dtype) for n in (1, 32, 60, 70, 512))
        return ["".join(rule.predicted(one, of)) for one in asked]

    assert picks(DType.FLOAT32) == ["a", "a", "a", "b", "b"]
    assert picks(DType.FLOAT64) == ["c"] * 5
    assert rule.predicted(problem("tridiagonal-1k"), of) == {}


def test_a_rule_reads_back_as_written_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rule.json"
    write(BY_HAND, path)
    assert read(path) == BY_HAND
    assert authors(tmp_path / "none.json") == []
    path.write_text(json.dumps({"source": "", "trees": {}}))
    with pytest.raises(ValueError, match="fit it with python -m suite"):
        read(path)


def test_every_baseline_has_terms_that_are_finite_and_grow_with_the_matrix() -> None:
    small, large = structure("tridiagonal-1k"), structure("uniform-12-2k")
    empty = Structure(sparse.csr_array((5, 5)))
    for author in AMONG:
        for op in author.texts:
            columns = 1 if op == Op.SPMV else 32
            of_small, of_large, of_none = (
                terms(author.name, Op(op), columns, 4, of) for of in (small, large, empty)
            )
            assert of_small.keys() == of_large.keys() == of_none.keys()
            assert of_small["stream"] < of_large["stream"]
            assert np.isfinite(list(of_none.values())).all()
            assert min(*of_small.values(), *of_none.values()) >= 0


def test_bytes_of_a_format_are_those_of_its_footprint() -> None:
    of = structure("tridiagonal-1k")
    dense = 4 * sum(of.csr.shape)
    for name in ("coo", "csr_scalar", DIA, "ell", "bsr-edge4"):
        program = next(author for author in AMONG if author.name == name)
        stored = parse(program.texts["spmv"]).format.footprint(of.csr).bytes(4)
        counted = 1e6 * terms(name, Op.SPMV, 1, 4, of)["stream"] - dense
        assert counted == pytest.approx(stored, rel=0.15), name


def test_the_rule_that_ships_prices_baselines_that_ship_and_terms_that_they_have() -> None:
    (author,) = authors()
    of = structure("tridiagonal-1k")
    known = {author.name: author for author in AMONG}
    for name, prices in read(RULE).prices.items():
        op = Op.SPMV if name.startswith("spmv") else Op.SPMM
        for baseline, own in prices.items():
            assert op in known[baseline].texts
            assert own.keys() <= terms(baseline, op, 32, 4, of).keys()
            assert min(own.values(), default=0) >= 0
    assert author.kind is Kind.CHOOSER


def synthetic(problems: int, noise: float = 0.0) -> Table:
    """Two authors with three terms; the first wins where ``stream`` is small."""
    rng = np.random.default_rng(1)
    counts = np.column_stack([np.ones(problems), *rng.uniform(0.1, 10, (2, problems))])
    times = np.column_stack([counts @ [1.0, 2.0, 0.0], counts @ [6.0, 0.5, 0.5]])
    times *= np.exp(noise * rng.standard_normal(times.shape))
    names = ("launch", "stream", "rows")
    return Table(
        ("one", "other"), {"one": (names, counts), "other": (names, counts)}, times, times > 0
    )


def test_a_fit_finds_the_prices_that_times_were_made_of() -> None:
    data = synthetic(200, noise=0.02)
    prices = fit(data)
    assert prices["one"]["stream"] == pytest.approx(2, rel=0.05)
    assert prices["other"]["launch"] == pytest.approx(6, rel=0.05)
    assert prices["other"]["rows"] == pytest.approx(0.5, rel=0.1)
    assert cross_validated(data).mean() < 0.01
    always_one = loss({"one": {"launch": 1.0}}, data).mean()
    assert always_one > 0.1


def test_prices_are_never_negative() -> None:
    data = synthetic(50)
    falling = dataclasses.replace(data, times=1 / data.times)
    assert all(price > 0 for own in fit(falling).values() for price in own.values())


def test_a_program_measured_once_is_drawn_to_its_file() -> None:
    many = synthetic(50)
    times = np.column_stack([many.times[:, 0], many.times[:, 0]])
    times[1:, 1] = np.nan  # the second value of a choice ran on one matrix
    names, counts = many.counts["one"]
    both = dict.fromkeys(("file-lanes2", "file-lanes4"), (names, counts))
    prices = fit(Table(tuple(both), both, times, ~np.isnan(times)))
    assert prices["file-lanes4"]["stream"] == pytest.approx(2, rel=0.2)


def test_a_baseline_that_is_never_near_the_best_has_no_price() -> None:
    data = synthetic(50)
    slow = dataclasses.replace(data, times=data.times * [1.0, 100.0])
    assert set(fit(slow)) == {"one"}


def test_what_is_learned_by_heart_does_not_help_on_matrices_that_were_left_out() -> None:
    data = synthetic(40)
    luck = np.random.default_rng(2).uniform(1, 10, data.times.shape)
    by_luck = dataclasses.replace(data, times=luck)
    fitted = loss(fit(by_luck), by_luck).mean()
    means = [cross_validated(by_luck, seed).mean() for seed in range(4)]
    assert np.mean(means) > 1.1 * fitted > 0
    with pytest.raises(ValueError, match="2 matrices with times; a fit takes 5"):
        cross_validated(data.rows(np.arange(2)))


def tabled(*rows: Row) -> Table:
    known = {name: structure("tridiagonal-1k") for name in ("one", "two")}
    return table([as_measured(row) for row in rows], known)


def test_what_does_not_apply_costs_as_a_failure_and_is_passed_over() -> None:
    data = tabled(
        right("a", 10.0, "one"),
        failed(Status.NOT_APPLICABLE, "two", author="a"),
        right("b", 20.0, "one"),
        right("b", 30.0, "two"),
    )
    assert data.authors == ("a", "b")
    assert data.regret == pytest.approx(np.array([[0.0, math.log(2)], [MISSING, 0.0]]))
    assert loss({"a": {}, "b": {"launch": 1.0}}, data).tolist() == [0.0, 0.0]


def test_what_fails_or_is_far_slower_is_not_passed_over() -> None:
    data = tabled(
        right("a", 500.0, "one"),
        failed(Status.WRONG_RESULT, "two", author="a"),
        right("b", 1.0, "one"),
        right("b", 30.0, "two"),
    )
    assert loss({"a": {}, "b": {"launch": 1.0}}, data) == pytest.approx([math.log(500), MISSING])


def test_a_matrix_that_was_measured_in_part_does_not_count() -> None:
    data = tabled(right("a", 10.0, "one"), right("b", 20.0, "one"), right("a", 10.0, "two"))
    assert len(data.times) == 1


def test_a_campaign_without_times_is_refused() -> None:
    with pytest.raises(ValueError, match="no baseline has a time"):
        tabled(failed(Status.NOT_APPLICABLE, "one", author="a"))


def test_precisions_are_told_apart() -> None:
    double = dataclasses.replace(BLANK, dtype=DType.FLOAT64)
    assert as_measured(BLANK).problem == "spmv/f32"
    assert as_measured(double).problem == "spmv/f64"


def test_rows_read_back_as_exported(tmp_path: Path) -> None:
    rows = [as_measured(row) for row in (right("a", 8.0), failed(Status.WRONG_RESULT))]
    export(rows, tmp_path / "rows.parquet")
    assert measured(tmp_path / "rows.parquet") == rows


def test_the_rows_that_ship_are_those_of_the_rule_that_ships() -> None:
    rows = measured(PUBLISHED)
    tuning = {spec.name for spec in select("tuning")}
    assert {row.matrix for row in rows} <= tuning
    assert {row.author for row in rows} <= {author.name for author in AMONG}
    assert read(RULE).prices.keys() == {row.problem for row in rows}


@pytest.mark.slow
def test_prices_of_small_matrices_fitted_from_the_rows_that_ship_lose_little() -> None:
    mine = [row for row in measured(PUBLISHED) if row.problem == "spmm32/f32"]
    names = {row.matrix for row in mine if row.hot_us and row.hot_us < 20}
    known = {
        spec.name: Structure(spec.build().csr) for spec in select("tuning") if spec.name in names
    }
    data = table([row for row in mine if row.matrix in names], known)
    assert loss(read(RULE).prices["spmm32/f32"], data).mean() < 0.15
    assert loss(fit(data), data).mean() < 0.1
