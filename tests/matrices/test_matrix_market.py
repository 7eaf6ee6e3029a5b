"""What a Matrix Market file says is what the matrix holds, or it is refused."""

from __future__ import annotations

import io
import time
import tracemalloc

import numpy as np
import pytest

from suite.matrices import lines, matrix_market
from suite.matrices.base import MatrixError, canonical

REAL = "%%MatrixMarket matrix coordinate real general\n"


def load(text: str | bytes) -> np.ndarray:
    return csr(text).toarray()


def csr(text: str | bytes):
    data = text if isinstance(text, bytes) else text.encode()
    return canonical(matrix_market.read(io.BytesIO(data), "m.mtx"), "m.mtx")


def refusal(text: str | bytes) -> str:
    with pytest.raises(MatrixError) as caught:
        csr(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("m.mtx")
    return message


def test_symmetric_storage_is_expanded_once():
    entries = "1 1 4\n2 1 1\n2 2 4\n3 1 2\n3 2 1\n3 3 4\n4 1 3\n4 2 2\n4 3 1\n4 4 4\n"
    matrix = csr(f"%%MatrixMarket matrix coordinate real symmetric\n4 4 10\n{entries}")
    assert matrix.nnz == 16
    np.testing.assert_array_equal(matrix.toarray(), matrix.toarray().T)
    np.testing.assert_array_equal(matrix.diagonal(), [4, 4, 4, 4])


def test_symmetric_file_may_list_the_upper_triangle_instead():
    text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 7\n2 2 1\n"
    np.testing.assert_array_equal(load(text), [[0, 7], [7, 1]])


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
def test_file_that_lists_both_triangles_is_refused(symmetry):
    text = f"%%MatrixMarket matrix coordinate real {symmetry}\n2 2 2\n2 1 4\n1 2 4\n"
    message = refusal(text)
    assert "line 4" in message
    assert "triangle" in message


def test_both_triangles_are_noticed_across_blocks(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    entries = ["2 1 1.0\n", *(f"{i} {i} 1.0\n" for i in range(1, 40)), "1 2 1.0\n"]
    for order in (entries, entries[::-1]):
        text = "%%MatrixMarket matrix coordinate real symmetric\n99 99 41\n" + "".join(order)
        assert "line 43" in refusal(text)


def test_skew_symmetric_array_is_expanded_with_the_opposite_sign():
    matrix = csr("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n")
    np.testing.assert_array_equal(matrix.toarray(), [[0, -1, -2], [1, 0, -3], [2, 3, 0]])
    x = np.array([0.5, -2.0, 3.0])
    assert x @ (matrix @ x) == pytest.approx(0)


def test_skew_symmetric_nonzero_diagonal_is_refused():
    text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 1\n2 2 5\n"
    assert "line 4" in refusal(text)


def test_hermitian_of_real_values_is_symmetric():
    text = "%%MatrixMarket matrix coordinate integer hermitian\n2 2 1\n2 1 3\n"
    np.testing.assert_array_equal(load(text), [[0, 3], [3, 0]])


def test_array_layout_goes_by_columns_and_drops_zeros():
    matrix = csr("%%MatrixMarket matrix array integer general\n2 3\n1\n2\n0\n4\n5\n6\n")
    np.testing.assert_array_equal(matrix.toarray(), [[1, 0, 5], [2, 4, 6]])
    assert matrix.nnz == 5


def test_symmetric_array_lists_the_lower_triangle_by_columns():
    text = "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"
    np.testing.assert_array_equal(load(text), [[1, 2, 3], [2, 4, 5], [3, 5, 6]])


def test_array_values_may_have_plus_signs():
    text = "%%MatrixMarket matrix array real general\n2 1\n+1\n +2e+1\n"
    np.testing.assert_array_equal(load(text), [[1], [20]])


def test_pattern_entries_are_ones():
    matrix = csr("%%MatrixMarket matrix coordinate pattern general\n2 3 3\n1 1\n1 3\n2 2\n")
    np.testing.assert_array_equal(matrix @ np.ones(3), [2, 1])


def test_pattern_file_with_values_is_refused():
    text = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 5\n"
    assert "line 3" in refusal(text)


def test_duplicates_are_summed():
    matrix = csr(REAL + "2 2 3\n1 1 1\n1 1 2\n2 2 5\n")
    assert matrix.nnz == 2
    np.testing.assert_array_equal(matrix @ np.ones(2), [3, 5])


def test_explicit_zeros_stay():
    assert csr(REAL + "2 2 2\n1 1 0\n2 2 5\n").nnz == 2


PLAIN = REAL + "% a comment\n3 3 3\n1 1 1.5\n2 3 -2\n3 2 0.25\n"
DENSE = [[1.5, 0, 0], [0, 0, -2], [0, 0.25, 0]]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace("\n1", "\n\n  \n1").replace("\n3 2", "\n\n\n3 2"),
        PLAIN.replace("%%MatrixMarket matrix", "%%matrixMARKET Matrix").replace("real", "REAL"),
        PLAIN.rstrip("\n"),
        PLAIN.rstrip("\n").replace("\n", "\r\n"),
        PLAIN + "\n\n% the end",
        PLAIN.replace("2 3", "% among the data\n 2 3"),
        PLAIN.replace(" ", "\t").replace("\t", " ", 4),
        PLAIN.replace("1.5", "+1.5E+0"),
        PLAIN.replace("1.5", "+.15e1"),
        PLAIN.replace("-2\n", "-2. \n"),
        "\ufeff" + PLAIN,
    ],
    ids=[
        "CRLF",
        "CR",
        "blank lines",
        "mixed case",
        "no final newline",
        "CRLF without the last",
        "trailing comment",
        "comment among the data",
        "tabs",
        "plus signs",
        "leading point",
        "trailing point",
        "byte-order mark",
    ],
)
@pytest.mark.parametrize("block", [80, 1 << 22])
def test_spelling_does_not_change_the_matrix(text, block, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    np.testing.assert_array_equal(load(text), DENSE)


@pytest.mark.parametrize(
    ("size", "entries"),
    [
        ("2 2 18446744073709551615", "1 1 1\n"),
        ("2 2 1000000000000", "1 1 1\n"),
        ("2 2 50000", "1 1 1\n"),
        ("2 2 1", "1 1 1\n2 2 1\n"),
        ("2 2 0", "1 1 1\n"),
        ("2 2 1", ""),
        ("99999999999999 2 1", "1 1 1\n"),
        ("-1 2 0", ""),
        ("2 2 1 1", "1 1 1\n"),
        ("2 2.0 1", "1 1 1\n"),
        ("2 2", "1 1 1\n"),
        ("", ""),
    ],
)
def test_lying_counts_are_refused_at_once_and_in_little_memory(size, entries):
    tracemalloc.start()
    begun = time.perf_counter()
    refusal(f"{REAL}{size}\n{entries}")
    assert time.perf_counter() - begun < 1
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_counts_that_are_wrong_name_both_numbers_and_the_line():
    assert "ends after 1 entries, 3 are declared" in refusal(REAL + "2 2 3\n1 1 1\n")
    assert "line 5: one entry more than the 1" in refusal(REAL + "2 2 1\n1 1 1\n%\n2 2 1\n")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("integer", "1e+16"),
        ("integer", "1.0"),
        ("integer", "4611686018427387905"),
        ("integer", "9007199254740993"),
        ("integer", "9223372036854775807"),
        ("integer", "99999999999999999999999"),
        ("real", "1 junk"),
        ("real", "1 2"),
        ("real", "junk"),
        ("real", "1e9999"),
        ("real", "nan"),
        ("real", "inf"),
        ("real", "0x10"),
        ("real", "1,5"),
        ("real", "1-2"),
        ("real", "1.2.3"),
        ("real", "1e"),
        ("real", "."),
        ("real", "1\x00"),
        ("real", "\u0661"),
        ("real", ""),
    ],
)
def test_number_that_would_change_in_silence_is_refused_with_its_line(field, value):
    text = f"%%MatrixMarket matrix coordinate {field} general\n2 2 2\n\n1 1 1\n1 2 {value}\n"
    assert "line 5" in refusal(text)


@pytest.mark.parametrize(
    ("field", "value", "exact"),
    [
        ("real", "1.5D+02", 150),
        ("real", "15d1", 150),
        ("real", "0.1", 0.1),
        ("real", "1.7976931348623157e308", 1.7976931348623157e308),
        ("real", "5e-324", 5e-324),
        ("integer", "-9007199254740992", -(2**53)),
        ("integer", "4611686018427387904", 2**62),
        ("integer", "+7", 7),
    ],
)
def test_number_is_read_exactly(field, value, exact):
    text = f"%%MatrixMarket matrix coordinate {field} general\n1 1 1\n1 1 {value}\n"
    assert csr(text).data[0] == exact


@pytest.mark.parametrize(
    "entry", ["0 1 1", "3 1 1", "1 0 1", "1 9 1", f"{2**40} 1 1", "-1 1 1", "1.0 1 1"]
)
def test_index_outside_the_matrix_is_refused_with_its_line(entry):
    assert "line 4" in refusal(f"{REAL}2 2 2\n1 1 1\n{entry}\n")


@pytest.mark.parametrize("shape", [(0, 0), (0, 709), (3, 4), (709, 0)])
def test_empty_shapes_load(shape):
    matrix = csr(f"{REAL}{shape[0]} {shape[1]} 0\n")
    assert matrix.shape == shape
    assert matrix.nnz == 0


@pytest.mark.parametrize("shape", [(0, 0), (0, 7), (7, 0)])
def test_empty_arrays_load(shape):
    text = f"%%MatrixMarket matrix array real general\n{shape[0]} {shape[1]}\n"
    assert csr(text).shape == shape


def test_twenty_entries_in_a_thousand_rows_load():
    entries = "".join(f"{50 * k} {k} {k}\n" for k in range(1, 21))
    matrix = csr(f"{REAL}1000 1000 20\n{entries}")
    assert matrix.nnz == 20
    assert matrix[99, 1] == 2


def test_order_of_entries_does_not_matter():
    by_rows = [(i, j, 10 * i + j) for i in (1, 2, 3) for j in (1, 2)]
    by_columns = sorted(by_rows, key=lambda entry: entry[1])
    one, other = (
        csr(REAL + "3 2 6\n" + "".join("{} {} {}\n".format(*e) for e in order))
        for order in (by_rows, by_columns)
    )
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.data, other.data)


@pytest.mark.parametrize(
    ("banner", "says"),
    [
        ("%%MatrixMarket matrix coordinate complex general", "complex"),
        ("%%MatrixMarket matrix coordinate complex hermitian", "complex"),
        ("%%MatrixMarket matrix array pattern general", "pattern"),
        ("%%MatrixMarket matrix coordinate pattern skew-symmetric", "skew-symmetric"),
        ("%%MatrixMarket matrix coordinate quaternion general", "quaternion"),
        ("%%MatrixMarket matrix ell real general", "ell"),
        ("%%MatrixMarket vector coordinate real general", "MatrixMarket"),
        ("%MatrixMarket matrix coordinate real general", "MatrixMarket"),
        ("", "MatrixMarket"),
    ],
)
def test_unknown_banner_is_refused_by_name(banner, says):
    message = refusal(banner + "\n1 1 1\n1 1 1\n")
    assert "line 1" in message
    assert says in message


def test_symmetric_matrix_is_square():
    assert "square" in refusal("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n")


def test_file_without_line_ends_is_refused_before_it_fills_memory(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1000)
    assert "longer than" in refusal(REAL + "1 1 1\n" + "1" * 5000)


def test_endless_comments_are_refused(monkeypatch):
    monkeypatch.setattr(matrix_market, "COMMENT_BYTES", 1000)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    assert "comments" in refusal(REAL + "% nothing\n" * 300)
    assert "far longer" in refusal(REAL + "1 1 0\n" + "% nothing\n" * 300)


@pytest.mark.parametrize("block", range(80, 100))
def test_line_numbers_count_crlf_once_wherever_a_block_ends(block, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    text = f"{REAL}1 1 100\n% words\n" + "1 1 1\n" * 60 + "1 x 1\n"
    assert "line 64" in refusal(text.replace("\n", "\r\n"))


def test_line_numbers_hold_beyond_the_first_block(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    entries = ["1 1 1\n"] * 100
    entries[70] = "1 x 1\n"
    assert "line 73" in refusal(f"{REAL}1 1 100\n{''.join(entries)}")
    entries[70] = "1 2 1\n"
    assert "line 73" in refusal(f"{REAL}1 1 100\n{''.join(entries)}")
