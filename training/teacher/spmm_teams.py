"""SpMM on CSR where a team loads entries together, and passes them round."""

from __future__ import annotations

from suite.problem import Op
from training.teacher import dense
from training.teacher.parts import ALL
from training.teacher.spmm_rows import LONGEST, SHAPE, sensible, stream_hint
from training.teacher.spmv_rows import start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing


def _passed_round(
    w: Writing, draft: Draft, p: Parameters, count: str, first: str = "begin"
) -> Lines:
    """Adds ``count`` entries from ``first`` on to ``sum``: each lane loads one, all use it.

    The lanes of a row are ``LANES * SPLIT``, of which each team of ``LANES`` takes every
    ``SPLIT``-th entry. All lanes of a warp take part, ``most`` entries long.
    """
    lanes, split, depth = int(p["lanes"]), int(p["split"]), int(p["depth"])
    hint, kind = stream_hint(p), dense.vector_of(p)
    wide = "LANES * SPLIT" if split > 1 else "LANES"

    def nth(i: str) -> str:
        at = i if depth == lanes else f"next + {i}" if i != "0" else "next"
        if split == 1:
            return at
        return f"{f'({at})' if ' ' in at else at} * SPLIT + team" if at != "0" else "team"

    def read(i: str) -> Lines:
        source = f"__shfl_sync({ALL}, col, {nth(i)}, {wide})"
        inside = f"inside && done + {nth(i)} < {count}"
        return [
            *w.define("size_t", "slot", f"(size_t){source} * length"),
            f"dense[{i}] = {inside} ? {_at_slot(p)} : {dense.zero_of(p)};",
        ]

    def add(i: str) -> Lines:
        value = f"__shfl_sync({ALL}, val, {nth(i)}, {wide})"
        return dense.add(w, draft, p, value, f"dense[{i}]")

    batch = [
        f"{kind} dense[BATCH];",
        *w.unrolled("i", "BATCH", 0, read),
        *w.unrolled("i", "BATCH", 0, add),
    ]
    if depth != lanes:
        batch = w.each("int", "next", "0", "next < LANES", "BATCH", batch)
    own = f"{first} + done + lane"
    return w.each(
        "int",
        "done",
        "0",
        "done < most",
        wide,
        [
            "int col = 0;",
            "real val = 0;",
            *w.when(
                f"done + lane < {count}",
                [
                    f"col = {w.fetch('col_idx', own, hint)};",
                    f"val = {w.fetch('vals', own, hint)};",
                ],
            ),
            *batch,
        ],
    )


def _at_slot(p: Parameters) -> str:
    return "B[slot + at]" if p["vec"] == 1 else "from[slot]"


def _team(p: Parameters, w: Writing) -> Draft:
    lanes, split, width = int(p["lanes"]), int(p["split"]), int(p["vec"])
    w = dense.briefly(w)
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "Each thread of a team loads an entry of the row, and shuffles pass"
        " them round: a line of the matrix is read once.",
    )
    if split > 1:
        draft.idea += f" {split} teams take turns with the entries of a row."
    draft.requires.append(f"longest <= {LONGEST}")
    if split == 1:
        lines, geometry = dense.place(w, draft, p, "rows", "row")
        lines += w.define("int", "lane", "threadIdx.x")
    else:
        if width > 1:
            draft.requires.append(f"n % {width} == 0")
        wide = f"ceildiv(n,{width}*LANES)" if width > 1 else "ceildiv(n,LANES)"
        geometry = (
            f"grid=ceildiv(rows,BLOCK//(LANES*SPLIT)),{wide} block=LANES*SPLIT,BLOCK//(LANES*SPLIT)"
        )
        lines = [
            *w.define("int", "length", f"n / {width}" if width > 1 else "n"),
            *w.define("int", "lane", "threadIdx.x"),
            *w.define("int", "team", w.over("lane", "LANES", lanes)),
            *w.define("int", "at", f"blockIdx.y * LANES + {w.rest('lane', 'LANES', lanes)}"),
            *w.define("long long", "row", "(long long)blockIdx.x * blockDim.y + threadIdx.y"),
        ]
    sums = dense.sum_teams(w, p, "LANES * SPLIT / 2", "LANES - 1") if split > 1 else []
    first = "team == 0 && " if split > 1 else ""
    body = [
        *lines,
        *w.define("bool", "inside", "at < length"),
        *dense.pointers(w, p),
        *w.choose("int", "begin", "row < rows", "row_ptr[row]", "0"),
        *w.choose("int", "count", "row < rows", "row_ptr[row + 1] - begin", "0"),
        *w.note("All lanes of a warp take part in the shuffles."),
        *w.define("int", "most", f"__reduce_max_sync({ALL}, count)"),
        f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
        *_passed_round(w, draft, p, "count"),
        *sums,
        *w.when(f"{first}inside && row < rows", dense.store(w, draft, p, "row")),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _staged(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "A warp a row: 32 entries at a time go through shared memory, from"
        " where all lanes read them.",
    )
    draft.requires.append(f"longest <= {LONGEST}")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    hint = stream_hint(p)
    add = dense.named(w, draft, p, "part[threadIdx.y][i]", dense.from_b(p, "slot[threadIdx.y][i]"))
    unroll = int(p["depth"])
    own_col = w.fetch("col_idx", "k + threadIdx.x", hint)
    own_val = w.fetch("vals", "k + threadIdx.x", hint)
    body = [
        "__shared__ int slot[BLOCK / LANES][LANES];",
        "__shared__ real part[BLOCK / LANES][LANES];",
        *lines,
        *w.note("A warp has one row, so that all of it returns or none."),
        *w.guarded(
            "row < rows",
            "row >= rows",
            [
                *dense.pointers(w, p),
                *w.define("int", "end", "row_ptr[row + 1]"),
                f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
                *w.each(
                    "int",
                    "k",
                    "row_ptr[row]",
                    "k < end",
                    "LANES",
                    [
                        *w.when(
                            "k + threadIdx.x < end",
                            [
                                f"slot[threadIdx.y][threadIdx.x] = {own_col};",
                                f"part[threadIdx.y][threadIdx.x] = {own_val};",
                            ],
                        ),
                        "__syncwarp();",
                        *w.when(
                            "at < length",
                            w.each("int", "i", "0", "i < min(end - k, LANES)", "1", add, unroll),
                        ),
                        "__syncwarp();",
                    ],
                ),
                *w.when("at < length", dense.store(w, draft, p, "row")),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _march(p: Parameters, w: Writing) -> Draft:
    width = int(p["vec"])
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "A few blocks a multiprocessor, each with a share of neighbouring rows, so that rows of B"
        " that they have in common stay in its L1.",
    )
    draft.constants["WAVES"] = int(p["waves"])
    draft.requires.append(f"longest <= {LONGEST}")
    if width > 1:
        draft.requires.append(f"n % {width} == 0")
    hint = stream_hint(p)
    product = dense.named(
        w, draft, p, w.fetch("vals", "k", hint), dense.from_b(p, w.fetch("col_idx", "k", hint))
    )
    teams = p["load"] == "team"
    row = [
        *w.define("int", "end", "row_ptr[row + 1]"),
        f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
        *w.each("int", "k", "row_ptr[row]", "k < end", "1", product, int(p["depth"])),
        *dense.store(w, draft, p, "row"),
    ]
    if teams:  # which all take part in the shuffles
        row = [
            *w.define("long long", "row", "first + threadIdx.y"),
            *w.choose("int", "begin", "row < last", "row_ptr[row]", "0"),
            *w.choose("int", "count", "row < last", "row_ptr[row + 1] - begin", "0"),
            *w.define("int", "most", f"__reduce_max_sync({ALL}, count)"),
            f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
            *_passed_round(w, draft, p, "count"),
            *w.when("inside && row < last", dense.store(w, draft, p, "row")),
        ]
    body = [
        *w.define("int", "length", f"n / {width}" if width > 1 else "n"),
        *w.define("int", "slices_", "(length + LANES - 1) / LANES"),
        *w.define("int", "at", "blockIdx.x % slices_ * LANES + threadIdx.x"),
        *w.define("int", "share", "blockIdx.x / slices_"),
        *w.define("int", "high", "gridDim.x / slices_"),
        *w.define("long long", "last", "(long long)rows * (share + 1) / high"),
    ]
    step = "BLOCK / LANES"
    if teams:
        body += [
            *w.define("int", "lane", "threadIdx.x"),
            *w.define("bool", "inside", "at < length"),
            *dense.pointers(w, p),
            *w.each(
                "long long", "first", "(long long)rows * share / high", "first < last", step, row
            ),
        ]
    else:
        body += w.guarded(
            "at < length",
            "at >= length",
            [
                *dense.pointers(w, p),
                *w.each(
                    "long long",
                    "row",
                    "(long long)rows * share / high + threadIdx.y",
                    "row < last",
                    step,
                    row,
                ),
            ],
        )
    wide = f"ceildiv(n,{width}*LANES)" if width > 1 else "ceildiv(n,LANES)"
    draft.launches.append(
        f"multiply grid={wide}*max(1,sms*WAVES//max(1,{wide})) block=LANES,BLOCK//LANES"
    )
    draft.kernels.append(("multiply", "", body))
    return draft


def _in_flight(p: Parameters) -> bool:
    """Whether a batch is a team's entries or fewer, and what a row needs is within a warp."""
    return (
        sensible(p)
        and int(p["depth"]) <= int(p["lanes"])
        and int(p["lanes"]) * int(p["split"]) <= 32
    )


STRATEGIES = (
    Strategy(
        "spmm csr march",
        Op.SPMM,
        {
            **SHAPE,
            "load": ("each",),
            "form": ("loop",),
            "depth": (2, 4, 8),
            "block": (256, 512, 1024),
            "waves": (1, 2),
        },
        _march,
        lambda p: sensible(p) and (p["block"] != 1024 or p["bounds"] == "half"),
    ),
    Strategy(
        "spmm csr march team",
        Op.SPMM,
        {
            **SHAPE,
            "load": ("team",),
            "hint": ("none", "stream"),
            "form": ("batch",),
            "depth": (4, 8),
            "lanes": (8, 16),
            "split": (1,),
            "block": (512, 1024),
            "waves": (1, 2),
        },
        _march,
        lambda p: _in_flight(p) and (p["block"] != 1024 or p["bounds"] == "half"),
    ),
    Strategy(
        "spmm csr team",
        Op.SPMM,
        {
            **SHAPE,
            "hint": ("none", "stream"),
            "form": ("batch",),
            "depth": (4, 8),
            "split": (1,),
            "place": ("rows across", "slices inside"),
        },
        _team,
        _in_flight,
    ),
    Strategy(
        "spmm csr teams",
        Op.SPMM,
        {
            **SHAPE,
            "hint": ("none", "stream"),
            "lanes": (8, 16),
            "form": ("batch",),
            "depth": (4, 8),
            "split": (2, 4),
            "place": ("rows across",),
        },
        _team,
        _in_flight,
    ),
    Strategy(
        "spmm csr staged",
        Op.SPMM,
        {
            **SHAPE,
            "hint": ("none", "stream"),
            "lanes": (32,),
            "form": ("loop",),
            "depth": (2, 4, 8),
            "place": dense.PLACES,
        },
        _staged,
        sensible,
    ),
)
