"""Integer arithmetic over named sizes, as it stands in a program's header lines.

The text is parsed into Python's syntax tree and walked by a table of the few node kinds that are
allowed; nothing is ever passed to ``eval``.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache

LIMIT = 2**63
MAX_LENGTH = 300
REMEMBERED = 1024  # expressions: programs say the same few over and over

_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
}


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated; the message says which part."""


@lru_cache(maxsize=REMEMBERED)
def names_in(text: str) -> frozenset[str]:
    """Names of the sizes that the expression uses (functions left out).

    Raises:
        ExpressionError: The expression cannot be read.
    """
    tree = _parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called
    )


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """Value of the expression.

    Args:
        text: The expression.
        sizes: Value of each name it may use.

    Returns:
        An integer in [0, 2⁶³).

    Raises:
        ExpressionError: Not readable, an unknown name, a division by zero, or a result out of
        range.
    """
    value = _value(_parse(text).body, sizes, text)
    if not 0 <= value < LIMIT:
        raise ExpressionError(f"{text!r} is {value}; it must be at least 0 and below 2^63")
    return value


@lru_cache(maxsize=REMEMBERED)
def _parse(text: str) -> ast.Expression:
    """The tree, which nobody changes."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression of {len(text)} characters; at most {MAX_LENGTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # "1or(2)" is read, if odd
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{text!r} is not an arithmetic expression") from None
    _refuse_strangers(tree, text)
    return tree


def _refuse_strangers(tree: ast.Expression, text: str) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and type(node.op) not in _BINARY:
            hint = "; write //" if isinstance(node.op, ast.Div) else ""
            raise ExpressionError(f"{text!r}: only + - * // % are known{hint}")
        if isinstance(node, ast.Constant) and type(node.value) is not int:
            raise ExpressionError(f"{text!r}: {node.value!r} is not an integer")
        if isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name)
            and node.func.id in _FUNCTIONS
            and len(node.args) == 2
            and not node.keywords
        ):
            raise ExpressionError(
                f"{text!r}: known functions are ceildiv(a,b), max(a,b) and min(a,b)"
            )
        if not isinstance(node, _ALLOWED):
            raise ExpressionError(f"{text!r}: {type(node).__name__} is not allowed in arithmetic")


_ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Call),
    *(
        ast.BinOp,
        ast.UnaryOp,
        ast.USub,
        ast.UAdd,
        ast.Not,
        ast.Compare,
        ast.BoolOp,
        ast.And,
        ast.Or,
    ),
    *_BINARY,
    *_COMPARE,
)


def _value(node: ast.expr, sizes: Mapping[str, int], text: str) -> int:
    match node:
        case ast.Constant(value=int(value)):
            result = value
        case ast.Name(id=name):
            if name not in sizes:
                raise ExpressionError(
                    f"{text!r}: unknown name {name!r}; known are {', '.join(sorted(sizes))}"
                )
            result = sizes[name]
        case ast.BinOp(left=left, op=op, right=right):
            result = _apply(
                _BINARY[type(op)], _value(left, sizes, text), _value(right, sizes, text), text
            )
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            result = _apply(
                _FUNCTIONS[name], _value(left, sizes, text), _value(right, sizes, text), text
            )
        case ast.UnaryOp(op=op, operand=operand):
            inner = _value(operand, sizes, text)
            result = (
                int(not inner)
                if isinstance(op, ast.Not)
                else -inner
                if isinstance(op, ast.USub)
                else inner
            )
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [_value(part, sizes, text) for part in (left, *comparators)]
            result = int(
                all(
                    _COMPARE[type(op)](a, b)
                    for op, a, b in zip(ops, values, values[1:], strict=False)
                )
            )
        case ast.BoolOp(op=op, values=parts):
            every = [bool(_value(part, sizes, text)) for part in parts]
            result = int(all(every) if isinstance(op, ast.And) else any(every))
        case _:
            raise ExpressionError(f"{text!r}: {type(node).__name__} is not allowed in arithmetic")
    if abs(result) >= LIMIT:
        raise ExpressionError(f"{text!r}: an intermediate result is beyond 2^63")
    return result


def _apply(function: Callable[[int, int], int], a: int, b: int, text: str) -> int:
    try:
        return function(a, b)
    except ZeroDivisionError:
        raise ExpressionError(f"{text!r} divides by zero") from None
