"""The tables say, by hand-computable numbers, who is fastest where and when storage is repaid."""

import math
from dataclasses import replace

import pytest

from reports.markdown import markdown
from reports.tables import by_family, by_matrix, preparation_us, repaid, repayment
from suite.author import Kind
from suite.evaluation import Status
from tests.suite.rows import failed, right

PLAIN = replace(right("plain", 20.0, "a"), format="csr", conversion_ms=0.1)
TILES = replace(
    right("tiles", 10.0, "a"), format="coo", conversion_ms=0.5, derived_bytes=8, prepare_us=500.0
)
ROWS = [
    right("cusparse_best", 40.0, "a", Kind.LIBRARY),
    right("cusparse_best", 30.0, "b", Kind.LIBRARY),
    PLAIN,
    replace(PLAIN, matrix="b", hot_us=10.0, cold_us=20.0),
    TILES,
    replace(TILES, matrix="b", hot_us=25.0),
    replace(right("short", 15.0, "a"), format="csr", derived_bytes=8, prepare_us=20.0),
    failed(Status.NOT_APPLICABLE, "b", author="short"),
]


def test_storage_is_repaid_by_what_it_saves_against_plain_csr() -> None:
    found = repaid(ROWS, "spmv")
    assert found["tiles"] == [pytest.approx((500 + 500) / (20 - 10)), math.inf]
    assert found["short"] == [pytest.approx(20 / (20 - 15))]  # reading CSR itself costs nothing
    assert "plain" not in found
    assert preparation_us(PLAIN) == 0


def test_the_table_counts_where_it_pays_and_says_never_where_it_does_not() -> None:
    short, tiles = markdown(repayment(ROWS, "spmv"))[2:]
    assert tiles == "| `tiles` | coo + derived | 1,000 | 1 of 2 | 100 |"
    assert short == "| `short` | csr + derived | 20 | 1 of 1 | 4 |"
    worse = [row for row in ROWS if row.matrix == "b"]
    assert markdown(repayment(worse, "spmv"))[2].endswith("| 0 of 1 | never |")


def test_a_device_format_is_named_and_a_conversion_to_its_csr_costs_nothing() -> None:
    slices = replace(
        right("slices", 10.0, "a"),
        format="ell4 BITS=16",
        conversion_ms=0.5,
        derived_bytes=8,
        prepare_us=30.0,
    )
    assert preparation_us(slices) == 30
    assert preparation_us(replace(slices, format="coltile TILE=147456")) == 530  # made of COO
    found = markdown(repayment([PLAIN, slices], "spmv"))[2:]
    assert found == ["| `slices` | ell4 BITS=16 | 30 | 1 of 1 | 3 |"]


def test_a_family_has_its_mean_its_worst_matrix_and_its_winners() -> None:
    (line,) = markdown(by_family(ROWS, "spmv"))[2:]
    mean = math.sqrt((40 / 10) * (30 / 10))
    assert line == f"| band | 2 | {mean:.2f} | {mean:.2f} | 3.00 (`b`) | `tiles`, `plain` |"


def test_a_matrix_on_which_no_baseline_is_right_is_not_left_out_of_its_family() -> None:
    rows = [
        *ROWS,
        right("cusparse_best", 30.0, "c", Kind.LIBRARY),
        failed(Status.WRONG_RESULT, "c", author="tiles"),
        right("cusparse_best", 30.0, "d", Kind.LIBRARY),
        failed(Status.NOT_APPLICABLE, "d", author="tiles"),
    ]
    (line,) = markdown(by_family(rows, "spmv"))[2:]
    mean = (4 * 3 * 0.1) ** (1 / 3)
    assert line == f"| band | 3 | {mean:.2f} | {mean:.2f} | 0.10 (`c`) | `tiles`, `plain` |"


def test_without_the_reference_its_columns_are_empty() -> None:
    rows = [row for row in ROWS if row.kind is Kind.BASELINE]
    assert markdown(by_family(rows, "spmv"))[2] == "| band | 2 |  |  |  | `tiles`, `plain` |"
    assert "| 20.00 |  | 0 |" in markdown(by_matrix(rows, "spmv"))[2]


def test_a_matrix_has_the_traffic_of_the_program_that_is_fastest_hot() -> None:
    measured = [replace(row, copy_gbps=4.0) if row.author == "tiles" else row for row in ROWS]
    first, second = markdown(by_matrix(measured, "spmv"))[2:]
    # 4,000 bytes in 10 and 20 us.
    assert first == "| a | 0 | `tiles` | 10.00 | 20.00 | 4.00 | 0 | 0 | 5% |"
    assert "`plain` | 10.00 |" in second
    assert second.endswith("| 0 | 0 |  |")  # nobody measured it there


def test_a_matrix_on_which_nothing_is_right_says_so() -> None:
    rows = [right("cusparse_best", 40.0, "a", Kind.LIBRARY), failed(Status.WRONG_RESULT, "a")]
    assert markdown(by_matrix(rows, "spmv"))[2] == "| a | 0 | none is right |" + "  |" * 6
