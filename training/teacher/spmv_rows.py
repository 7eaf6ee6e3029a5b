"""SpMV by rows: CSR, ELL, SELL and HYB, a team of threads for each row."""

from __future__ import annotations

from suite.problem import Op
from training.teacher.parts import (
    MAPS,
    Index,
    Walk,
    entries,
    hinted,
    in_grid,
    narrow_columns,
    sum_lanes,
)
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing

BOUNDS = {  # registers: as the compiler likes, at most 128, 64
    "none": "",
    "quarter": "__launch_bounds__(BLOCK, 512 / BLOCK)",
    "half": "__launch_bounds__(BLOCK, 1024 / BLOCK)",
}
LOADS = {
    "bounds": ("none", "half"),
    "form": ("loop", "batch", "ahead"),
    "depth": (1, 2, 4, 8),
    "hint": ("none", "stream", "keep"),
    "keep": (24,),
}


def sensible(p: Parameters) -> bool:
    """Whether batches have more than one entry."""
    return p["form"] == "loop" or int(p["depth"]) > 1


def start(p: Parameters, op: Op, fmt: str, idea: str) -> Draft:
    """A draft with the constants that the parameters give."""
    names = {"lanes", "block", "keep", "edge", "split", "items", "limit", "tile", "rows"}
    draft = Draft(
        op, fmt, idea, {k.upper(): v for k, v in p.items() if k in names and isinstance(v, int)}
    )
    draft.bounds = BOUNDS[str(p.get("bounds", "none"))]
    if p.get("form") != "loop" and "depth" in p:
        draft.constants["BATCH"] = int(p["depth"])
    return draft


def loads(w: Writing, p: Parameters, walk: Walk, x: str = "x") -> Lines:
    """Adds the entries of a row to ``sum``."""
    return entries(
        w,
        walk,
        str(p["form"]),
        int(p["depth"]),
        lambda col: f"{x}[{col}]",
        lambda value, other: [w.product("sum", value, other)],
    )


def csr_walk(w: Writing, col: Index, hint: str, lanes: int) -> Walk:
    """The entries of a row of CSR, whose bounds are ``begin`` and ``end``."""
    return Walk(
        "begin + lane" if lanes > 1 else "begin",
        "end",
        "LANES" if lanes > 1 else "1",
        col,
        lambda index: w.fetch("vals", index, hint),
    )


def _csr(p: Parameters, w: Writing) -> Draft:
    lanes, shared = int(p["lanes"]), p.get("x") == "shared"
    idea = "A thread" if lanes == 1 else f"{lanes} threads"
    draft = start(p, Op.SPMV, "csr", f"{idea} for each row.")
    draft.requires.append(f"longest <= {4096 if lanes == 1 else 65536}")
    if shared:
        draft.idea += " All of x lies in shared memory, where gathers cost little."
        draft.requires.append("cols*itemsize <= 98304")
    per_block = "(BLOCK / LANES)" if lanes > 1 else "BLOCK"

    def row_sum(hint: str) -> Lines:
        col = narrow_columns(w, draft, str(p["columns"]), "nnz", hint)
        return loads(w, p, csr_walk(w, col, hint, lanes), "shared_x" if shared else "x")

    def row(limit: str) -> Lines:
        inner = [
            *w.define("int", "begin", "row_ptr[row]"),
            *w.define("int", "end", "row_ptr[row + 1]"),
            *hinted(draft, p, "nnz", row_sum),
        ]
        if lanes == 1:
            own = ["real sum = 0;", *inner, "y[row] = sum;"]
            if p["map"] == "direct":
                guarded = w.guarded(f"row < {limit}", f"row >= {limit}", own)
            else:
                guarded = w.when(f"row < {limit}", own)
            return [*w.define("long long", "row", "first + threadIdx.x"), *guarded]
        return [
            *w.define("long long", "row", f"first + {w.over('threadIdx.x', 'LANES', lanes)}"),
            *w.define("int", "lane", w.rest("threadIdx.x", "LANES", lanes)),
            "real sum = 0;",
            *w.when(f"row < {limit}", inner),
            *w.note("All lanes of a warp take part in a shuffle."),
            *sum_lanes(w, "LANES"),
            *w.when(f"lane == 0 && row < {limit}", ["y[row] = sum;"]),
        ]

    body, grid = in_grid(w, draft, str(p["map"]), per_block, "rows", row)
    if shared:
        body = [
            "extern __shared__ real shared_x[];",
            *w.each("int", "i", "threadIdx.x", "i < cols", "BLOCK", ["shared_x[i] = x[i];"]),
            "__syncthreads();",
            *body,
        ]
    grid = grid.replace("(BLOCK / LANES)", "BLOCK//LANES")
    more = " shared=cols*itemsize" if shared else ""
    draft.launches.append(f"multiply grid={grid} block=BLOCK{more}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _padded_walk(w: Writing, col: Index, hint: str, end: str, prefix: str = "") -> Walk:
    """A row of column-major storage."""

    def slot(index: str) -> str:
        inner = f"({index})" if " " in index else index
        return f"(size_t){inner} * pitch + row"

    return Walk(
        "lane",
        end,
        "LANES",
        lambda index: col(slot(index)),
        lambda index: w.fetch(f"{prefix}vals", slot(index), hint),
    )


def split_sum(w: Writing, lanes: int, store: Lines) -> Lines:
    """Adds ``sum`` over the LANES threads that are ``BLOCK / LANES`` apart, and stores it."""
    return [
        "__shared__ real part[BLOCK];",
        "part[threadIdx.x] = sum;",
        "__syncthreads();",
        *w.when(
            "lane == 0",
            [
                *w.each(
                    "int",
                    "i",
                    "1",
                    "i < LANES",
                    "1",
                    ["sum += part[i * (BLOCK / LANES) + threadIdx.x];"],
                ),
                *store,
            ],
        ),
    ]


def ell_rows(w: Writing, draft: Draft, p: Parameters) -> Lines:
    """A thread for each row of HYB's ELL part."""

    def row_sum(hint: str) -> Lines:
        walk = _padded_walk(
            w, lambda index: w.fetch("ell_col_idx", index, hint), hint, "width", "ell_"
        )
        return loads(w, p, Walk("0", "width", "1", walk.col, walk.val))

    body = ["real sum = 0;", *hinted(draft, p, "width * pitch", row_sum), "y[row] = sum;"]
    return [
        *w.define("long long", "row", w.global_thread("BLOCK")),
        *w.guarded("row < rows", "row >= rows", body),
    ]


def _ell(p: Parameters, w: Writing) -> Draft:
    lanes = int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        "ell",
        "Columns of padded rows, so that neighbouring threads read neighbouring entries.",
    )
    end = "length" if p["stop"] == "length" else "width"

    def row_sum(hint: str) -> Lines:
        col = narrow_columns(w, draft, str(p["columns"]), "width*pitch", hint)
        walk = _padded_walk(w, col, hint, end)
        if lanes == 1:
            walk = Walk("0", end, "1", walk.col, walk.val)
        return loads(w, p, walk)

    inner = w.define("int", "length", "row_len[row]") if end == "length" else []
    inner = [*inner, *hinted(draft, p, "nnz", row_sum)]
    if lanes == 1:
        own = ["real sum = 0;", *inner, "y[row] = sum;"]
        body = [
            *w.define("long long", "row", w.global_thread("BLOCK")),
            *w.guarded("row < rows", "row >= rows", own),
        ]
        grid = "ceildiv(rows,BLOCK)"
    else:
        team = "BLOCK / LANES"
        body = [
            *w.define("int", "lane", f"threadIdx.x / ({team})"),
            *w.define(
                "long long", "row", f"(long long)blockIdx.x * ({team}) + threadIdx.x % ({team})"
            ),
            "real sum = 0;",
            *w.when("row < rows", inner),
            *split_sum(w, lanes, w.when("row < rows", ["y[row] = sum;"])),
        ]
        grid = "ceildiv(rows,BLOCK//LANES)"
    draft.launches.append(f"multiply grid={grid} block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _sell(p: Parameters, w: Writing) -> Draft:
    height, lanes = int(p["c"]), int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        f"sell c={height} sigma={p['sigma']}",
        f"Slices of {height} rows of about equal length, padded to the longest of each.",
    )
    draft.requires.append("longest <= 65536")
    draft.constants["SLICE"] = height

    def row_sum(hint: str) -> Lines:
        col = narrow_columns(w, draft, str(p["columns"]), "slots", hint)
        walk = Walk(
            "slice_ptr[slice] + "
            + w.rest("unit", "SLICE", height)
            + (" + lane * SLICE" if lanes > 1 else ""),
            "end",
            "LANES * SLICE" if lanes > 1 else "SLICE",
            col,
            lambda index: w.fetch("vals", index, hint),
        )
        walk = Walk("begin", walk.end, walk.step, walk.col, walk.val)
        return loads(w, p, walk)

    place = w.rest("unit", "SLICE", height) + (" + lane * SLICE" if lanes > 1 else "")
    inner = [
        *w.define("int", "slice", w.over("unit", "SLICE", height)),
        *w.define("int", "begin", f"slice_ptr[slice] + {place}"),
        *w.define("int", "end", "slice_ptr[slice + 1]"),
        *hinted(draft, p, "slots", row_sum),
    ]
    direct = p["sigma"] == 1  # rows are where they were
    row = [] if direct else w.define("int", "row", "perm[unit]")
    out = "unit" if direct else "row"
    there = "unit < rows" if direct else "row >= 0"
    total = "rows" if direct else "(long long)slices * SLICE"
    grid_rows = "rows" if direct else "slices*SLICE"
    if lanes == 1:
        store = [f"y[{out}] = sum;"] if direct else [*row, *w.when(there, [f"y[{out}] = sum;"])]
        body = [
            *w.define("long long", "unit", w.global_thread("BLOCK")),
            *w.guarded(f"unit < {total}", f"unit >= {total}", ["real sum = 0;", *inner, *store]),
        ]
        grid = f"ceildiv({grid_rows},BLOCK)"
    else:
        team = "BLOCK / LANES"
        store = w.when(
            f"unit < {total}",
            [*row, *w.when(there, [f"y[{out}] = sum;"])] if not direct else [f"y[{out}] = sum;"],
        )
        body = [
            *w.define("int", "lane", f"threadIdx.x / ({team})"),
            *w.define(
                "long long", "unit", f"(long long)blockIdx.x * ({team}) + threadIdx.x % ({team})"
            ),
            "real sum = 0;",
            *w.when(f"unit < {total}", inner),
            *split_sum(w, lanes, store),
        ]
        grid = f"ceildiv({grid_rows},BLOCK//LANES)"
    draft.launches.append(f"multiply grid={grid} block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


BLOCKS = (64, 128, 256, 512)
STRATEGIES = (
    Strategy(
        "spmv csr scalar",
        Op.SPMV,
        {"lanes": (1,), "block": BLOCKS, "map": MAPS, "columns": ("wide", "narrow"), **LOADS},
        _csr,
        sensible,
    ),
    Strategy(
        "spmv csr team",
        Op.SPMV,
        {
            "lanes": (2, 4, 8, 16, 32),
            "block": BLOCKS,
            "map": ("direct", "stride"),
            "columns": ("wide", "narrow"),
            **LOADS,
        },
        _csr,
        sensible,
    ),
    Strategy(
        "spmv csr shared x",
        Op.SPMV,
        {
            "lanes": (1, 4, 8, 16, 32),
            "block": (512, 1024),
            "map": ("stride", "share"),
            "columns": ("wide", "narrow"),
            "x": ("shared",),
            **LOADS,
        },
        _csr,
        lambda p: sensible(p) and (p["block"] == 512 or p["bounds"] != "none"),
    ),
    Strategy(
        "spmv ell rows",
        Op.SPMV,
        {
            "lanes": (1,),
            "block": BLOCKS,
            "stop": ("length", "width"),
            "columns": ("wide", "narrow"),
            **LOADS,
        },
        _ell,
        sensible,
    ),
    Strategy(
        "spmv ell split",
        Op.SPMV,
        {
            "lanes": (2, 4, 8),
            "block": (128, 256, 512),
            "stop": ("length", "width"),
            "columns": ("wide", "narrow"),
            **LOADS,
        },
        _ell,
        sensible,
    ),
    Strategy(
        "spmv sell rows",
        Op.SPMV,
        {
            "lanes": (1,),
            "block": BLOCKS,
            "c": (8, 32),
            "sigma": (1, 1024),
            "columns": ("wide", "narrow"),
            **LOADS,
        },
        _sell,
        sensible,
    ),
    Strategy(
        "spmv sell split",
        Op.SPMV,
        {
            "lanes": (2, 4, 8),
            "block": (128, 256, 512),
            "c": (32,),
            "sigma": (1, 1024),
            "columns": ("wide", "narrow"),
            **LOADS,
        },
        _sell,
        sensible,
    ),
)
