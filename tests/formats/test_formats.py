"""Every format holds the same matrix, says its size beforehand, and refuses to blow up."""

from __future__ import annotations

import contextlib
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from suite.formats import formats, make
from suite.formats.base import PADDING, Format, NotApplicableError, refuse_blow_up
from suite.matrices.base import INT32_MAX, canonical
from suite.matrices.splits import Split, sampled
from tests.formats.reading import READERS, slots

CHOICES: dict[str, list[dict[str, int]]] = {
    "sell": [{"c": 32, "sigma": 1024}, {"c": 4, "sigma": 1}, {"c": 3, "sigma": 8}, {"sigma": 5}],
    "bsr": [{"b": 1}, {"b": 2}, {"b": 3}, {"b": 4}, {"b": 8}, {"b": 50}],
    "hyb": [{"percent": 1}, {"percent": 67}, {"percent": 100}],
}
EVERY_FORMAT = [make(name, p) for name in formats() for p in CHOICES.get(name, [{}])]
each_format = pytest.mark.parametrize("form", EVERY_FORMAT, ids=repr)


@st.composite
def matrices(draw: st.DrawFn) -> sparse.csr_array:
    """Any small matrix: empty, flat or tall, with empty and dense rows, zeros and duplicates."""
    rows = draw(st.integers(0, 40))
    columns = draw(st.integers(0, 40))
    count = draw(st.integers(0, 60)) if rows and columns else 0
    cells = st.tuples(st.integers(0, max(rows - 1, 0)), st.integers(0, max(columns - 1, 0)))
    where = draw(st.lists(cells, min_size=count, max_size=count))
    cross = draw(st.booleans())
    if where and cross:  # a long row and a long column
        where += [(where[0][0], j) for j in range(columns)]
        where += [(i, where[0][1]) for i in range(rows)]
    row = np.array([i for i, _ in where], np.int32)
    column = np.array([j for _, j in where], np.int32)
    values = np.arange(len(where)) % 7 - 3.0  # has zeros, which are structure
    return canonical(sparse.coo_array((values, (row, column)), shape=(rows, columns)), "drawn")


EMPTY = [
    canonical(sparse.csr_array(shape), f"{shape[0]}x{shape[1]}")
    for shape in ((0, 0), (0, 709), (709, 0), (3, 4), (1, 1))
]


def check(form: Format, csr: sparse.csr_array) -> None:
    """The layout has the promised names, types and sizes, and holds exactly the matrix."""
    before = (csr.indptr.copy(), csr.indices.copy(), csr.data.copy())
    footprint = form.footprint(csr)
    layout = form.convert(csr)

    assert tuple(layout.sizes) == form.size_names
    assert {n: str(a.dtype) for n, a in layout.index.items()} == dict(form.index_names)
    assert tuple(layout.values) == form.value_names
    assert all(a.ndim == 1 and a.flags.c_contiguous for a in layout.index.values())
    assert all(m is None or m.dtype == np.int32 for m in layout.values.values())
    assert footprint.index_bytes == sum(a.nbytes for a in layout.index.values())
    assert footprint.value_slots == sum(
        csr.nnz if m is None else m.size for m in layout.values.values()
    )

    read = slots(form, layout, csr)
    filled = sorted((s.row, s.col, s.entry) for s in read if s.entry != PADDING)
    coo = csr.tocoo()
    assert filled == list(zip(coo.row.tolist(), coo.col.tolist(), range(csr.nnz), strict=True))
    assert all(0 <= s.col < max(csr.shape[1], 1) for s in read)
    for array, kept in zip((csr.indptr, csr.indices, csr.data), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@each_format
@settings(max_examples=25, deadline=None)
@given(csr=matrices())
def test_a_layout_holds_exactly_the_matrix_and_has_the_size_it_announced(
    form: Format, csr: sparse.csr_array
) -> None:
    check(form, csr)


@each_format
@pytest.mark.parametrize("csr", EMPTY, ids=lambda m: "x".join(map(str, m.shape)))
def test_a_matrix_without_entries_converts_to_arrays_of_the_right_shape(
    form: Format, csr: sparse.csr_array
) -> None:
    check(form, csr)
    assert all(m is None or m.size == 0 for m in form.convert(csr).values.values())


def test_every_format_has_a_reader_to_be_checked_against() -> None:
    assert set(READERS) == set(formats())


def test_padding_repeats_the_last_column_of_its_row() -> None:
    rows = [[5, 5, 7, 9], [2, 1, 3, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    layout = make("ell", {}).convert(canonical(sparse.csr_array(rows), "four rows"))
    columns = layout.index["col_idx"].reshape(4, 32)[:, :4]
    assert columns.tolist() == [[0, 0, 1, 0], [1, 1, 2, 0], [2, 2, 2, 0], [3, 2, 2, 0]]


def test_sell_puts_the_longest_rows_of_a_window_first_and_keeps_the_order_of_equals() -> None:
    csr = canonical(sparse.csr_array(np.tri(6)), "growing rows")
    assert make("sell", {"c": 2, "sigma": 4}).convert(csr).index["perm"].tolist() == [
        3,
        2,
        1,
        0,
        5,
        4,
    ]
    assert make("sell", {"c": 4, "sigma": 1}).convert(csr).index["perm"].tolist() == [
        *range(6),
        -1,
        -1,
    ]


@pytest.mark.parametrize(
    ("percent", "width", "tail"), [(1, 1, 7), (30, 1, 7), (31, 2, 6), (60, 4, 4), (100, 8, 0)]
)
def test_hyb_takes_the_smallest_width_that_holds_the_share(
    percent: int, width: int, tail: int
) -> None:
    dense = np.eye(3, 8)
    dense[0] = 1  # rows of 8, 1 and 1 entries: width 1 holds 3 of 10, each further one 1 more
    layout = make("hyb", {"percent": percent}).convert(canonical(sparse.csr_array(dense), "arrow"))
    assert (layout.sizes["width"], layout.sizes["tail"]) == (width, tail)


def one_dense_row(rows: int) -> sparse.csr_array:
    """A diagonal and a dense first row."""
    indices = np.concatenate([np.arange(rows), np.arange(1, rows)]).astype(np.int32)
    indptr = np.concatenate([[0], np.arange(rows, 2 * rows)]).astype(np.int32)
    return sparse.csr_array((np.ones(indices.size), indices, indptr), shape=(rows, rows))


@pytest.mark.parametrize(
    "form",
    [
        make("ell", {}),
        make("dia", {}),
        make("sell", {"c": 1024, "sigma": 1}),
        make("bsr", {"b": 32}),
        make("hyb", {"percent": 100}),
    ],
    ids=repr,
)
def test_a_blow_up_is_refused_by_name_before_anything_of_its_size_is_allocated(
    form: Format,
) -> None:
    csr = one_dense_row(40_000)
    tracemalloc.start()
    try:
        with pytest.raises(NotApplicableError, match=rf"^{form.name} .* would store [\d,]+ values"):
            form.footprint(csr)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * csr.nnz


@pytest.mark.parametrize(("name", "parameter"), [("sell", "c"), ("bsr", "b")])
def test_an_absurd_parameter_is_refused_instead_of_allocated(name: str, parameter: str) -> None:
    csr = canonical(sparse.eye_array(3).tocsr(), "identity")
    with pytest.raises(NotApplicableError, match=name):
        make(name, {parameter: 10**12}).footprint(csr)


def test_slots_that_int32_cannot_count_are_refused_even_without_padding() -> None:
    refuse_blow_up("ell", INT32_MAX, INT32_MAX)
    with pytest.raises(NotApplicableError, match=r"^ell would store 2,147,483,648 .* int32"):
        refuse_blow_up("ell", INT32_MAX + 1, INT32_MAX)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("csr5", {}, r"unknown format 'csr5'; known are bsr, coo, csr, dia, ell, hyb, sell"),
        ("csr", {"b": 4}, r"format csr has no parameter 'b'; it takes none"),
        ("sell", {"width": 4}, r"format sell has no parameter 'width'; it takes c, sigma"),
        ("bsr", {"b": 0}, r"format bsr: b must be at least 1, not 0"),
        ("hyb", {"percent": 101}, r"format hyb: percent must be at most 100, not 101"),
    ],
)
def test_a_wrong_format_line_is_refused_with_what_would_be_right(
    name: str, parameters: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        make(name, parameters)


FAMILIES = sorted({spec.family for spec in itertools.islice(sampled(Split.TRAIN), 60)})


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_every_format_holds_matrices_of_every_family(family: str, seed: int) -> None:
    specs = sampled(Split.TRAIN, entries=(100, 600), seed=seed)
    csr = next(spec for spec in specs if spec.family == family).build().csr
    for form in EVERY_FORMAT:
        with contextlib.suppress(NotApplicableError):
            check(form, csr)


@pytest.mark.parametrize("given", [("csr", {}), ("bsr", {"b": 3}), ("sell", {"c": 8})])
def test_a_format_spells_itself_as_a_header_line_would(given: tuple[str, dict[str, int]]) -> None:
    fmt = make(*given)
    name, *parameters = fmt.spelling.split()
    pairs = (word.split("=") for word in parameters)
    assert make(name, {key: int(value) for key, value in pairs}) == fmt
