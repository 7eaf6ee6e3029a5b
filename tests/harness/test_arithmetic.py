"""The arithmetic of header lines computes what it says and refuses everything else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.harness.arithmetic import ExpressionError, evaluate, names_in

SIZES = {"rows": 1000, "cols": 7, "n": 0, "LANES": 8}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("256", 256),
        ("rows*LANES", 8000),
        ("ceildiv(rows*LANES,256)", 32),
        ("ceildiv(n,32)", 0),
        ("max(min(rows,cols),1)", 7),
        ("rows // 3 % 5", 3),
        ("rows - cols + 1", 994),
        ("n % 4 == 0", 1),
        ("n % 4 == 0 and rows > 2000", 0),
        ("not n or cols < 0", 1),
        ("1 < cols <= 7", 1),
    ],
)
def test_an_expression_has_its_value(text: str, value: int) -> None:
    assert evaluate(text, SIZES) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rows/2", "write //"),
        ("2**40", "only"),
        ("1 << 3", "only"),
        ("rows % n", "divides by zero"),
        ("ceildiv(1,0)", "divides by zero"),
        ("height", "unknown name 'height'; known are LANES, cols, n, rows"),
        ("cols - rows", "at least 0"),
        ("9223372036854775807+1", "beyond 2^63"),
        ("rows*rows*rows*rows*rows*rows*rows", "beyond 2^63"),
        ("1.5", "not an integer"),
        ("True", "not an integer"),
        ("'rows'", "not an integer"),
        ("abs(rows)", "known functions"),
        ("min(rows)", "known functions"),
        ("min(a=1,b=2)", "known functions"),
        ("__import__('os').system('id')", "known functions"),
        ("rows.real", "Attribute is not allowed"),
        ("[rows][0]", "is not allowed"),
        ("(lambda: 1)()", "known functions"),
        ("rows if n else cols", "IfExp is not allowed"),
        ("", "is not an arithmetic expression"),
        ("rows rows", "is not an arithmetic expression"),
        ("(" * 250 + ")" * 20, "is not an arithmetic expression"),
        ("1" + "+1" * 200, "at most 300"),
    ],
)
def test_anything_else_is_refused_with_its_reason(text: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says.replace("(", r"\(").replace("^", r"\^")):
        evaluate(text, SIZES)


def test_names_leave_functions_out() -> None:
    assert names_in("ceildiv(rows*LANES, min(n, 4))") == {"rows", "LANES", "n"}


@given(st.text(max_size=40))
def test_no_text_does_anything_but_evaluate_or_be_refused(text: str) -> None:
    with suppress(ExpressionError):
        assert evaluate(text, SIZES) >= 0
