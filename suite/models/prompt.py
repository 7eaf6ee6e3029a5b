"""A problem as token ids: what is asked, how large the matrix is, and some of its nonzeros.

    // write spmm n 32 f32 sm_90
    // rows 76 cols 76 nnz 85 longest 5 filled 76 reach 44
    // lengths 3 5 5 5 5 5 5 5
    // entries
    ⟨256 coordinates⟩
    // program

Sizes are levels: exact up to 8, then a quarter of a doubling each, so that 2³¹ is level 120 and no
number takes more than a few tokens. For ``Encoding.TEXT`` the same entries stand there as text, a
line for each row: its index, then its columns. The model goes on with the program and an end token.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from suite.models.coordinates import coordinate_ids
from suite.models.sampler import SHOWN, Scale, Shown, sample, scale
from suite.problem import Op, Problem

EXACT = 8  # levels up to here are the number itself
STEPS = 4  # levels for each doubling above

Parts = tuple[str | list[int], ...]  # text that is still to be encoded, and coordinates


class Encoding(StrEnum):
    """How a model is told where the nonzeros are."""

    COORDINATES = "coordinates"  # one token each, see ``embedding``
    TEXT = "text"


@dataclass(frozen=True)
class PromptStyle:
    """What a model was trained to read.

    Attributes:
        encoding: Of the nonzeros.
        shown: How many nonzeros, at most.
        vocabulary: V, from which on ids are coordinates.
    """

    encoding: Encoding
    vocabulary: int
    shown: int = SHOWN


def level(number: int) -> int:
    """A number on the scale of the prompt: exact up to 8, then four levels for each doubling."""
    if number <= EXACT:
        return number
    return EXACT + round(STEPS * math.log2(number / EXACT))


def prompt(
    problem: Problem, arch: str, style: PromptStyle, encode: Callable[[str], Sequence[int]]
) -> list[int]:
    """The prompt for a problem.

    Args:
        problem: What is asked.
        arch: The architecture to write for, ``sm_90``.
        style: What the model reads.
        encode: Text to token ids, without special tokens.
    """
    return assembled(told(problem, arch, style), encode)


def told(problem: Problem, arch: str, style: PromptStyle) -> Parts:
    """What a prompt says; see ``prompt``."""
    csr = problem.matrix.csr
    head = header(problem.op, problem.columns, problem.dtype.short, arch, scale(csr))
    return parts(head, sample(csr, style.shown), style)


def assembled(parts: Parts, encode: Callable[[str], Sequence[int]]) -> list[int]:
    """A prompt from its pieces; see ``prompt``."""
    return [id for part in parts for id in (encode(part) if isinstance(part, str) else part)]


def parts(head: str, shown: Shown, style: PromptStyle) -> Parts:
    """A prompt in pieces: text that is still to be encoded, and coordinates."""
    if style.encoding is Encoding.TEXT:
        return (f"{head}{as_text(shown)}{END}",)
    return head, coordinate_ids(shown.rows, shown.cols, style.vocabulary).tolist(), END


END = "// program\n"


def header(op: Op, columns: int, dtype: str, arch: str, size: Scale) -> str:
    """The lines above the nonzeros."""
    asked = op.value if op is Op.SPMV else f"{op.value} n {columns}"
    sizes = " ".join(f"{name} {level(number)}" for name, number in size.sizes.items())
    lengths = " ".join(str(level(length)) for length in size.lengths)
    return f"// write {asked} {dtype} {arch}\n// {sizes}\n// lengths {lengths}\n// entries\n"


def as_text(shown: Shown) -> str:
    """The nonzeros as text: a line for each row."""
    pairs = zip(shown.rows.tolist(), shown.cols.tolist(), strict=True)
    lines = [
        f"{row}: {' '.join(str(col) for _, col in group)}\n"
        for row, group in itertools.groupby(pairs, key=lambda pair: pair[0])
    ]
    return "".join(lines)
