"""SpMM by rows: a team of threads for each row, a vector of dense columns a thread."""

from __future__ import annotations

from suite.problem import Op
from training.teacher import dense
from training.teacher.parts import ALL, STREAM, Walk, entries, narrow_columns
from training.teacher.spmv_rows import csr_walk, start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing

LONGEST = 16384  # entries that one team may be left with


def _hint(p: Parameters) -> str:
    return STREAM if p["hint"] == "stream" else ""


def _sum(w: Writing, draft: Draft, p: Parameters, walk: Walk) -> Lines:
    """The sum over a row's entries."""

    def add(value: str, other: str) -> Lines:
        combine = dense.add if value.startswith("val[") else dense.named
        return combine(w, draft, p, value, other)

    return [
        f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
        *entries(
            w,
            walk,
            str(p["form"]),
            int(p["depth"]),
            lambda col: dense.from_b(p, col),
            add,
            dense.vector_of(p),
        ),
    ]


def _csr(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p, Op.SPMM, "csr", "A team of threads for each row, neighbouring columns a thread."
    )
    draft.requires.append(f"longest <= {LONGEST}")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    col = narrow_columns(w, draft, str(p["columns"]), "nnz", _hint(p))
    body = [
        *lines,
        *w.guarded(
            "row < rows && at < length",
            "row >= rows || at >= length",
            [
                *dense.pointers(w, p),
                *w.define("int", "begin", "row_ptr[row]"),
                *w.define("int", "end", "row_ptr[row + 1]"),
                *_sum(w, draft, p, csr_walk(w, col, _hint(p), 1)),
                *dense.store(w, draft, p, "row"),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _split(p: Parameters, w: Writing) -> Draft:
    lanes, split = int(p["lanes"]), int(p["split"])
    draft = start(
        p,
        Op.SPMM,
        "csr",
        f"{split} teams of {lanes} threads for each row, which take turns with its entries.",
    )
    draft.requires.append("longest <= 65536")
    width = int(p["vec"])
    if width > 1:
        draft.requires.append(f"n % {width} == 0")
    lane = w.over("threadIdx.x", "LANES", lanes)
    walk = Walk(
        "begin + lane",
        "end",
        "SPLIT",
        lambda k: w.fetch("col_idx", k, _hint(p)),
        lambda k: w.fetch("vals", k, _hint(p)),
    )
    inner = [
        *w.define("int", "begin", "row_ptr[row]"),
        *w.define("int", "end", "row_ptr[row + 1]"),
        *_sum(w, draft, p, walk)[1:],
    ]
    body = [
        *w.define("int", "length", f"n / {width}" if width > 1 else "n"),
        *w.define("int", "lane", lane),
        *w.define("int", "at", f"blockIdx.y * LANES + {w.rest('threadIdx.x', 'LANES', lanes)}"),
        *w.define("long long", "row", "(long long)blockIdx.x * blockDim.y + threadIdx.y"),
        *dense.pointers(w, p),
        f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
        *w.when("row < rows && at < length", inner),
        *dense.sum_teams(w, p, "LANES * SPLIT / 2", "LANES - 1"),
        *w.when("lane == 0 && row < rows && at < length", dense.store(w, draft, p, "row")),
    ]
    wide = f"ceildiv(n,{width}*LANES)" if width > 1 else "ceildiv(n,LANES)"
    draft.launches.append(
        f"multiply grid=ceildiv(rows,BLOCK//(LANES*SPLIT)),{wide}"
        " block=LANES*SPLIT,BLOCK//(LANES*SPLIT)"
    )
    draft.kernels.append(("multiply", "", body))
    return draft


def _team(p: Parameters, w: Writing) -> Draft:
    lanes, depth = int(p["lanes"]), int(p["depth"])
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "Each thread of a team loads an entry of the row, and shuffles pass"
        " them round: a line of the matrix is read once.",
    )
    draft.requires.append(f"longest <= {LONGEST}")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    hint, kind = _hint(p), dense.vector_of(p)

    def read(i: str) -> Lines:
        where = "first" if i == "0" else f"first + {i}"
        source = f"__shfl_sync({ALL}, col, {where}, LANES)"
        return [f"dense[{i}] = {dense.from_b(p, source)};"]

    def add(i: str) -> Lines:
        where = "first" if i == "0" else f"first + {i}"
        value = f"__shfl_sync({ALL}, val, {where}, LANES)"
        if p["vec"] == 1 or w.helper == "function":
            return dense.add(w, draft, p, value, f"dense[{i}]")
        return [
            "{",
            *(
                f"\t{line}"
                for line in [
                    *w.define("real", "part", value),
                    *dense.add(w, draft, p, "part", f"dense[{i}]"),
                ]
            ),
            "}",
        ]

    inner = [
        f"{kind} dense[BATCH];",
        *w.repeat_each("i", "BATCH", depth, read),
        *w.repeat_each("i", "BATCH", depth, add),
    ]
    body = [
        *lines,
        *w.define("bool", "inside", "row < rows && at < length"),
        *w.note("Entries past the end have value 0, and all lanes take part in the shuffles."),
        *w.choose("int", "end", "row < rows", "row_ptr[row + 1]", "0"),
        *(
            [f"const {kind}* from = (const {kind}*)B + (inside ? at : 0);"]
            if p["vec"] != 1
            else w.choose("int", "cell", "at < length", "at", "0")
        ),
        f"{kind} sum = {dense.zero_of(p)};",
        *w.choose("int", "k", "row < rows", "row_ptr[row]", "0")[:0],
        "int k = row < rows ? row_ptr[row] : 0;",
        *w.each(
            "",
            "k",
            "",
            f"__any_sync({ALL}, k < end)",
            "LANES",
            [
                "int col = 0;",
                "real val = 0;",
                *w.when(
                    "k + threadIdx.x < end",
                    [
                        f"col = {w.fetch('col_idx', 'k + threadIdx.x', hint)};",
                        f"val = {w.fetch('vals', 'k + threadIdx.x', hint)};",
                    ],
                ),
                *w.each("int", "first", "0", "first < LANES", "BATCH", inner),
            ],
        ),
        *w.when("inside", dense.store(w, draft, p, "row")),
    ]
    if p["vec"] == 1:
        body = [
            line.replace("* length + at]", "* length + cell]") if "dense[" in line else line
            for line in body
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
    hint = _hint(p)
    add = dense.named(w, draft, p, "part[threadIdx.y][i]", dense.from_b(p, "slot[threadIdx.y][i]"))
    unroll = int(p["depth"])
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
                                f"slot[threadIdx.y][threadIdx.x] = {w.fetch('col_idx', 'k + threadIdx.x', hint)};",
                                f"part[threadIdx.y][threadIdx.x] = {w.fetch('vals', 'k + threadIdx.x', hint)};",
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


def _ell(p: Parameters, w: Writing) -> Draft:
    draft = start(p, Op.SPMM, "ell", "A team of threads for each row of padded storage.")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    hint = _hint(p)

    def slot(index: str) -> str:
        return f"(size_t){f'({index})' if ' ' in index else index} * pitch + row"

    end = "row_len[row]" if p["stop"] == "length" else "width"
    col = narrow_columns(w, draft, str(p["columns"]), "width*pitch", hint)
    walk = Walk(
        "0",
        "end" if p["stop"] == "length" else "width",
        "1",
        lambda k: col(slot(k)),
        lambda k: w.fetch("vals", slot(k), hint),
    )
    body = [
        *lines,
        *w.guarded(
            "row < rows && at < length",
            "row >= rows || at >= length",
            [
                *dense.pointers(w, p),
                *(w.define("int", "end", end) if p["stop"] == "length" else []),
                *_sum(w, draft, p, walk),
                *dense.store(w, draft, p, "row"),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _sell(p: Parameters, w: Writing) -> Draft:
    height = int(p["c"])
    draft = start(
        p,
        Op.SPMM,
        f"sell c={height} sigma={p['sigma']}",
        "A team of threads for each row; neighbours in a block have rows of like length.",
    )
    draft.requires.append(f"longest <= {LONGEST}")
    draft.constants["SLICE"] = height
    lines, geometry = dense.place(w, draft, p, "slices*SLICE", "unit")
    hint = _hint(p)
    col = narrow_columns(w, draft, str(p["columns"]), "slots", hint)
    walk = Walk("begin", "end", "SLICE", col, lambda k: w.fetch("vals", k, hint))
    body = [
        *lines,
        *w.guarded(
            "unit < (long long)slices * SLICE && at < length",
            "unit >= (long long)slices * SLICE || at >= length",
            [
                *w.define("int", "row", "perm[unit]"),
                *w.when(
                    "row >= 0",
                    [
                        *dense.pointers(w, p),
                        *w.define("int", "slice", w.over("unit", "SLICE", height)),
                        *w.define(
                            "int", "begin", f"slice_ptr[slice] + {w.rest('unit', 'SLICE', height)}"
                        ),
                        *w.define("int", "end", "slice_ptr[slice + 1]"),
                        *_sum(w, draft, p, walk),
                        *dense.store(w, draft, p, "row"),
                    ],
                ),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def sensible(p: Parameters) -> bool:
    """Whether batches have more than one entry and fit the registers, and teams a block."""
    if p["form"] != "loop" and (int(p["depth"]) == 1 or int(p["depth"]) * int(p["vec"]) > 32):
        return False
    return int(p["lanes"]) * int(p.get("split", 1)) <= int(p["block"])


SHAPE = {
    "vec": (1, 2, 4),
    "lanes": (4, 8, 16, 32),
    "block": (64, 128, 256, 512),
    "hint": ("none", "stream"),
    "store": ("plain", "stream"),
}
FORM = {"form": ("loop", "batch", "ahead"), "depth": (1, 2, 4, 8)}
STRATEGIES = (
    Strategy(
        "spmm csr rows",
        Op.SPMM,
        {**SHAPE, **FORM, "place": dense.PLACES, "columns": ("wide",)},
        _csr,
        sensible,
    ),
    Strategy(
        "spmm csr rows narrow",
        Op.SPMM,
        {**SHAPE, **FORM, "place": ("rows across", "slices inside"), "columns": ("narrow",)},
        _csr,
        sensible,
    ),
    Strategy(
        "spmm csr split",
        Op.SPMM,
        {**SHAPE, **FORM, "lanes": (4, 8, 16), "split": (2, 4, 8)},
        _split,
        lambda p: sensible(p) and int(p["lanes"]) * int(p["split"]) <= 32,
    ),
    Strategy(
        "spmm csr team",
        Op.SPMM,
        {**SHAPE, "lanes": (8, 16, 32), "form": ("batch",), "depth": (4, 8), "place": dense.PLACES},
        _team,
        sensible,
    ),
    Strategy(
        "spmm csr staged",
        Op.SPMM,
        {**SHAPE, "lanes": (32,), "form": ("loop",), "depth": (1, 2, 4, 8), "place": dense.PLACES},
        _staged,
        sensible,
    ),
    Strategy(
        "spmm ell rows",
        Op.SPMM,
        {
            **SHAPE,
            **FORM,
            "place": ("rows across", "slices inside"),
            "stop": ("length", "width"),
            "columns": ("wide", "narrow"),
        },
        _ell,
        sensible,
    ),
    Strategy(
        "spmm sell rows",
        Op.SPMM,
        {
            **SHAPE,
            **FORM,
            "place": ("rows across", "slices inside"),
            "c": (8, 32),
            "sigma": (1, 1024),
            "columns": ("wide", "narrow"),
        },
        _sell,
        sensible,
    ),
)
