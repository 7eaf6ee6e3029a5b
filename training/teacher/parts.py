"""Building blocks that strategies share: walks over entries, rows of threads, sums of lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.teacher.strategy import Draft, Parameters
from training.teacher.writing import Lines, Writing

ALL = "0xffffffffu"
STREAM = "__ldcs"
FORMS = ("loop", "batch", "ahead")
MAPS = ("direct", "stride", "share")

LOAD = [
    "template <typename T>",
    "__device__ T load(const T* from, bool kept) {",
    "\treturn kept ? *from : __ldcs(from);",
    "}",
]

Index = Callable[[str], str]


@dataclass(frozen=True)
class Walk:
    """How one goes through the entries of a row: k from ``start`` while less than ``end``.

    Attributes:
        start: First k.
        end: Past the last k.
        step: From entry to entry, an expression.
        col: Column of the entry at an expression.
        val: Its value.
        kind: Type of k.
    """

    start: str
    end: str
    step: str
    col: Index
    val: Index
    kind: str = "int"

    def ahead(self, i: str) -> str:
        """The i-th entry from here."""
        if i == "0":
            return "k"
        return f"k + {i}" if self.step == "1" else f"k + {i} * {self.step}"


def entries(
    w: Writing,
    walk: Walk,
    form: str,
    depth: int,
    gather: Index,
    add: Callable[[str, str], Lines],
    vector: str = "real",
) -> Lines:
    """Adds all entries of a row.

    Args:
        w: Writing.
        walk: The entries.
        form: ``loop``, one by one; ``batch``, full batches of ``BATCH`` that are loaded before any
            is used, then the rest; ``ahead``, batches of which the last has a rest.
        depth: ``BATCH``, or how often a loop is unrolled.
        gather: What an entry in this column is multiplied by.
        add: Statements that add a value times what was gathered.
        vector: Type of what is gathered.
    """
    one = add(walk.val("k"), gather(walk.col("k")))
    if form == "loop":
        return w.each(walk.kind, "k", walk.start, f"k < {walk.end}", walk.step, one, depth)
    by = "BATCH" if walk.step == "1" else f"BATCH * {walk.step}"

    def read(i: str) -> Lines:
        here = walk.ahead(i)
        if not i.isdigit():
            return [*w.define(walk.kind, "next", here), *get(i, "next")]
        return get(i, here)

    def get(i: str, here: str) -> Lines:
        if form == "batch":
            return [f"val[{i}] = {walk.val(here)};", f"dense[{i}] = {gather(walk.col(here))};"]
        inside = f"{here} < {walk.end}"
        nothing = "0" if vector == "real" else f"{vector}()"
        return [
            f"val[{i}] = {inside} ? {walk.val(here)} : 0;",
            f"dense[{i}] = {inside} ? {gather(walk.col(here))} : {nothing};",
        ]

    body = ["real val[BATCH];", f"{vector} dense[BATCH];"]
    body += w.repeat_each("i", "BATCH", depth, read)
    body += w.repeat_each("i", "BATCH", depth, lambda i: add(f"val[{i}]", f"dense[{i}]"))
    if form == "ahead":
        return w.each(walk.kind, "k", walk.start, f"k < {walk.end}", by, body)
    last = f"{depth - 1}" if walk.step == "1" else f"{depth - 1} * {walk.step}"
    return [
        f"{walk.kind} k = {walk.start};",
        *w.each("", "k", "", f"k < {walk.end} - {last}", by, body),
        *w.each("", "k", "", f"k < {walk.end}", walk.step, one),
    ]


def hinted(draft: Draft, p: Parameters, size: str, lines: Callable[[str], Lines]) -> Lines:
    """Statements that read the matrix with a load hint.

    Args:
        draft: Learns that blocks differ in how they load.
        p: ``hint``: ``none``; ``stream``, past the caches; ``keep``, but for about ``KEEP``
            megabytes.
        size: Number of slots of the matrix, of which each has a value and an index.
        lines: The statements, given the load intrinsic.
    """
    return lines(load_of(draft, p, f"{size} * (sizeof(real) + 4)"))


def load_of(draft: Draft, p: Parameters, size: str) -> str:
    """The load intrinsic that ``hint`` asks for, of ``size`` bytes of matrix; empty for none."""
    if p["hint"] == "keep":
        draft.kept = size
        draft.functions += LOAD if LOAD[1] not in draft.functions else []
    return {"none": "", "stream": STREAM, "keep": "load"}[str(p["hint"])]


def sum_lanes(w: Writing, lanes: str, variable: str = "sum", least: str = "0") -> Lines:
    """Adds up a variable over neighbouring lanes; the first has the sum."""
    half = w.over(lanes, "2", 2) if not lanes.isdigit() else str(int(lanes) // 2)
    width = "" if lanes == "32" or least != "0" else f", {lanes}"
    move = f"{variable} += __shfl_{w.reduce}_sync({ALL}, {variable}, step{width});"
    return w.halve("step", half.strip("()"), [move], least)


def in_grid(
    w: Writing,
    draft: Draft,
    mapping: str,
    per_block: str,
    rows: str,
    body: Callable[[str], Lines],
) -> tuple[Lines, str]:
    """Lets the blocks of a grid take ``per_block`` rows each time: ``first`` and those after it.

    Args:
        w: Writing.
        draft: Gets the constant ``WAVES``.
        mapping: ``direct``, every block once; ``stride``, again a grid further on; ``share``, a
            contiguous share to each block.
        per_block: Rows a block, an expression.
        rows: How many there are.
        body: Statements for the rows from ``first`` on, given the end of all.

    Returns:
        Statements of the kernel, and its grid.
    """
    full = f"ceildiv({rows},{per_block})"
    if mapping == "direct":
        return w.define("long long", "first", f"(long long)blockIdx.x * {per_block}") + body(
            rows
        ), full
    draft.constants["WAVES"] = 8
    grid = f"min({full},sms*WAVES)"
    if mapping == "stride":
        start, limit, by = (
            f"(long long)blockIdx.x * {per_block}",
            rows,
            f"(long long)gridDim.x * {per_block}",
        )
        before: Lines = []
    else:
        start, limit, by = f"(long long){rows} * blockIdx.x / gridDim.x", "last", per_block
        before = w.define("long long", "last", f"(long long){rows} * (blockIdx.x + 1) / gridDim.x")
    loop = w.each("long long", "first", start, f"first < {limit}", by, body(limit))
    return before + loop, grid


def narrow_columns(w: Writing, draft: Draft, how: str, count: str, hint: str) -> Index:
    """How the column of an entry is read.

    Args:
        w: Writing.
        draft: Gets what makes 16-bit columns, unless they are there.
        how: ``wide``, as they are; ``narrow``, in 16 bits, made once.
        count: Number of column indices.
        hint: Load intrinsic.
    """
    if how == "wide":
        return lambda index: w.fetch("col_idx", index, hint)
    spaced = count.replace("*", " * ")
    if not draft.prepares:
        draft.requires.append("cols <= 65536")
        draft.arrays.append(("derived", "short_cols", "ushort", count))
        draft.prepares.append(f"narrow grid=ceildiv({count},256) block=256")
        draft.kernels.append(
            (
                "narrow",
                "",
                [
                    f"const long long k = {w.global_thread('256')};",
                    *w.when(f"k < {spaced}", ["short_cols[k] = (unsigned short)col_idx[k];"]),
                ],
            )
        )
    return lambda index: w.fetch("short_cols", index, hint)
