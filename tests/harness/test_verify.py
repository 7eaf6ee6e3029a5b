"""The bound passes every correct float32 result and rejects what is not one."""

import numpy as np
import pytest
from scipy import sparse

from suite.harness.inputs import Stream, exact_bits
from suite.harness.verify import compare


def matrix(seed: int = 0, rows: int = 300, cols: int = 400) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    a = sparse.random_array((rows, cols), density=0.05, rng=rng, format="csr")
    a.data = rng.standard_normal(a.nnz) * 10.0 ** rng.integers(-6, 7, a.nnz)
    return a


def judged(
    a: sparse.csr_array, output: np.ndarray, dtype: str = "float32", columns: int = 1, seed: int = 3
):
    dense = Stream(seed).take(a.shape[1] * columns, dtype)
    args = (a.indptr, a.indices, a.data.astype(dtype), dense, output)
    return compare(*args, a.shape[0], columns, np.dtype(dtype))


def product(
    a: sparse.csr_array, dtype: str = "float32", columns: int = 1, seed: int = 3
) -> np.ndarray:
    dense = Stream(seed).take(a.shape[1] * columns, dtype).reshape(-1, columns)
    return (a.astype(dtype) @ dense).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 5])
def test_a_product_in_working_precision_is_right(dtype: str, columns: int) -> None:
    found = judged(matrix(), product(matrix(), dtype, columns), dtype, columns)
    assert found.wrong == 0
    assert 0 < found.ratio < 0.7


def test_entries_summed_in_the_opposite_order_are_right() -> None:
    a = matrix()
    dense = Stream(3).take(a.shape[1], "float32")
    vals = a.data.astype("float32")
    y = np.zeros(a.shape[0], "float32")
    for i in range(a.shape[0]):
        for p in reversed(range(a.indptr[i], a.indptr[i + 1])):
            y[i] += vals[p] * dense[a.indices[p]]
    assert judged(a, y).wrong == 0


def test_half_precision_is_wrong() -> None:
    a = matrix()
    a.data = np.clip(a.data, -1e3, 1e3)
    rounded = sparse.csr_array(
        (a.data.astype("float16").astype("float32"), a.indices, a.indptr), a.shape
    )
    assert judged(a, product(rounded)).wrong > a.shape[0] / 2


def test_tensor_float_inputs_are_wrong() -> None:
    a = matrix()
    bits = a.data.astype("float32").view(np.uint32) & np.uint32(0xFFFFE000)
    assert (
        judged(
            a, product(sparse.csr_array((bits.view("float32"), a.indices, a.indptr), a.shape))
        ).wrong
        > 100
    )


def test_zeros_are_wrong_in_every_row_that_has_entries() -> None:
    a = matrix()
    found = judged(a, np.zeros(a.shape[0], "float32"))
    assert found.wrong == np.count_nonzero(np.diff(a.indptr))


def test_one_missing_entry_is_seen_in_its_row() -> None:
    a = matrix()
    y = product(a)
    row = int(np.argmax(np.diff(a.indptr)))
    begin, end = a.indptr[row], a.indptr[row + 1]
    p = begin + int(np.argmax(np.abs(a.data[begin:end])))
    y[row] -= np.float32(a.data[p]) * Stream(3).take(a.shape[1], "float32")[a.indices[p]]
    found = judged(a, y)
    assert (found.wrong, found.row) == (1, row)


def test_an_unwritten_element_is_counted_and_infinitely_wrong() -> None:
    y = product(matrix())
    y[17] = np.nan
    found = judged(matrix(), y)
    assert (found.wrong, found.unwritten, found.row, found.ratio) == (1, 1, 17, np.inf)


def test_infinity_is_wrong_even_where_the_bound_is_large() -> None:
    y = product(matrix())
    y[5] = np.inf
    found = judged(matrix(), y)
    assert (found.row, found.unwritten, found.ratio) == (5, 0, np.inf)


def test_an_empty_row_must_be_exactly_zero() -> None:
    a = sparse.csr_array((3, 3))
    assert judged(a, np.zeros(3, "float32")).wrong == 0
    assert judged(a, np.array([0, 1e-30, 0], "float32")).row == 1


@pytest.mark.parametrize("entries", [1, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bound_is_a_rounding_for_each_entry_and_two_more(entries: int, dtype: str) -> None:
    a = sparse.csr_array(np.linspace(1, 2, entries)[None, :])
    working = np.longdouble if dtype == "float64" else np.float64
    dense = Stream(3).take(entries, dtype)
    products = a.data.astype(dtype).astype(working) * dense.astype(working)
    bound = (entries + 2) * np.finfo(dtype).eps / 2 * np.abs(products).sum()
    for share, wrong in ((0.5, 0), (1.5, 1)):  # far enough from 1 for the rounding of y itself
        y = np.array([products.sum() + share * bound], dtype)
        assert judged(a, y, dtype).wrong == wrong


def test_products_that_underflow_are_right() -> None:
    a = matrix()
    a.data = np.sign(a.data) * 3e-45
    assert judged(a, product(a)).wrong == 0


def test_nothing_to_compute_is_right() -> None:
    assert judged(sparse.csr_array((0, 709)), np.zeros(0, "float32")).wrong == 0


def test_inputs_are_never_zero_exact_in_float32_and_alike_in_both_precisions() -> None:
    single, double = (Stream(11).take(100_000, dtype) for dtype in ("float32", "float64"))
    assert np.array_equal(single.astype("float64"), double)
    assert np.all(single != 0)
    assert np.all(np.abs(single) < 1)
    assert abs(single.mean()) < 0.01


def test_inputs_can_be_made_anywhere_in_the_stream() -> None:
    whole = Stream(5).take(1000, "float32")
    assert np.array_equal(Stream(5).take(10, "float32", start=990), whole[990:])
    assert np.array_equal(Stream(5).at(np.array([[3, 7]]), "float32"), whole[[[3, 7]]])
    assert not np.array_equal(Stream(6).take(1000, "float32"), whole)


def test_a_stream_of_one_bit_is_plus_and_minus_one() -> None:
    signs = Stream(1, bits=1, exponent=0).take(10_000, "float32")
    assert set(signs) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.05


@pytest.mark.parametrize(
    ("longest", "dtype", "bits"),
    [
        (0, "float32", 23),
        (1, "float32", 23),
        (2, "float32", 23),
        (3, "float32", 22),
        (4, "float32", 22),
        (5, "float32", 21),
        (2048, "float32", 13),
        (419_430, "float32", 5),
        (1 << 24, "float32", 0),
        (5, "float64", 23),
        (1 << 30, "float64", 23),
    ],
)
def test_exact_inputs_leave_room_for_every_partial_sum(longest: int, dtype: str, bits: int) -> None:
    assert exact_bits(longest, dtype) == bits
    assert longest * (2**bits - 1) <= 2 ** (np.finfo(dtype).nmant + 1)


def exact(a: sparse.csr_array, output: np.ndarray, dense: np.ndarray):
    args = (a.indptr, a.indices, a.data.astype("float32"), dense, output.astype("float32"))
    return compare(*args, a.shape[0], 1, np.dtype("float32"), exact=True)


def long_rows(entries: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Four full rows of −1 and 1, with the exact dense input for them."""
    values = Stream(1, bits=1, exponent=0).take(4 * entries, "float64").reshape(4, entries)
    bits = exact_bits(entries, "float32")
    return sparse.csr_array(values), Stream(2, bits=bits, exponent=0).take(entries, "float32")


@pytest.mark.parametrize("entries", [1, 100, 2048, 100_000])
def test_on_exact_inputs_any_order_of_summation_is_exact(entries: int) -> None:
    a, x = long_rows(entries)
    products = a.toarray().astype("float32") * x
    for order in (products, products[:, ::-1], np.sort(products, axis=1)):
        y = np.add.accumulate(order, axis=1, dtype="float32")[:, -1]
        assert exact(a, y, x).wrong == 0


def test_on_exact_inputs_a_missing_entry_of_a_very_long_row_is_wrong() -> None:
    a, x = long_rows(100_000)
    y = a @ x.astype("float64")
    assert exact(a, y, x).wrong == 0
    assert exact(a, y - a.toarray()[:, -1] * x[-1], x).wrong == 4
    assert exact(a, np.zeros(4), x).wrong == 4


def test_on_exact_inputs_half_precision_of_a_long_row_is_wrong() -> None:
    a, x = long_rows(2048)
    assert exact(a, a @ x.astype("float16").astype("float64"), x).wrong == 4
