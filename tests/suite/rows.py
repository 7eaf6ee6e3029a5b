"""Rows as a campaign would leave them, for tests of what is made of them."""

import dataclasses

from suite.author import Kind
from suite.evaluation import Status
from suite.problem import DType, Op
from suite.record import Row

BLANK = Row(
    campaign="c",
    test="t",
    op=Op.SPMV,
    label="spmv",
    matrix="m0",
    family="band",
    dtype=DType.FLOAT32,
    columns=1,
    author="mine",
    kind=Kind.BASELINE,
    sample=0,
    status=Status.OK,
)


def right(author: str, us: float, matrix: str = "m0", kind: Kind = Kind.BASELINE) -> Row:
    return dataclasses.replace(
        BLANK, author=author, matrix=matrix, kind=kind, hot_us=us, cold_us=2 * us, bytes_moved=4000
    )


def failed(
    status: Status, matrix: str = "m0", kind: Kind = Kind.BASELINE, author: str = "mine"
) -> Row:
    return dataclasses.replace(
        BLANK, author=author, matrix=matrix, kind=kind, status=status, error="because"
    )


def unanswered(matrix: str = "m0", author: str = "mine") -> Row:
    row = failed(Status.INFRASTRUCTURE_ERROR, matrix, author=author)
    return dataclasses.replace(row, unanswered=True)
