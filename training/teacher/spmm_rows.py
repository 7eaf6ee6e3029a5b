"""SpMM by rows: a team of threads for each row, a vector of dense columns a thread."""

from __future__ import annotations

from suite.problem import Op
from training.teacher import dense
from training.teacher.parts import STREAM, Walk, entries, narrow_columns
from training.teacher.spmv_rows import csr_walk, start
from training.teacher.strategy import Choices, Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing

LONGEST = 16384  # entries that one team may be left with


def stream_hint(p: Parameters) -> str:
    """The load intrinsic for the matrix."""
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
    col = narrow_columns(w, draft, str(p["columns"]), "nnz", stream_hint(p))
    body = [
        *lines,
        *w.guarded(
            "row < rows && at < length",
            "row >= rows || at >= length",
            [
                *dense.pointers(w, p),
                *w.define("int", "begin", "row_ptr[row]"),
                *w.define("int", "end", "row_ptr[row + 1]"),
                *_sum(w, draft, p, csr_walk(w, col, stream_hint(p), 1)),
                *dense.store(w, draft, p, "row"),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _split(p: Parameters, w: Writing) -> Draft:
    lanes, split, fmt = int(p["lanes"]), int(p["split"]), str(p["format"])
    draft = start(
        p,
        Op.SPMM,
        fmt,
        f"{split} teams of {lanes} threads for each row, which take turns with its entries.",
    )
    draft.requires.append("longest <= 65536")
    width = int(p["vec"])
    if width > 1:
        draft.requires.append(f"n % {width} == 0")
    lane = w.over("threadIdx.x", "LANES", lanes)

    def slot(k: str) -> str:
        if fmt == "csr":
            return k
        return f"(size_t){f'({k})' if ' ' in k else k} * pitch + row"

    walk = Walk(
        "begin + lane" if fmt == "csr" else "lane",
        "end",
        "SPLIT",
        lambda k: w.fetch("col_idx", slot(k), stream_hint(p)),
        lambda k: w.fetch("vals", slot(k), stream_hint(p)),
    )
    bounds = w.define("int", "end", "row_len[row]")
    if fmt == "csr":
        bounds = w.define("int", "begin", "row_ptr[row]")
        bounds += w.define("int", "end", "row_ptr[row + 1]")
    inner = [*bounds, *_sum(w, draft, p, walk)[1:]]
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


def _ell(p: Parameters, w: Writing) -> Draft:
    draft = start(p, Op.SPMM, "ell", "A team of threads for each row of padded storage.")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    hint = stream_hint(p)

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
    hint = stream_hint(p)
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


def in_a_warp(p: Parameters) -> bool:
    """Whether the teams of a row are in one warp, besides what ``sensible`` asks."""
    return sensible(p) and int(p["lanes"]) * int(p["split"]) <= 32


SHAPE: Choices = {
    "bounds": ("none", "half"),
    "vec": (1, 4),
    "lanes": (8, 16, 32),
    "block": (128, 256, 512),
    "hint": ("none",),
    "store": ("plain", "stream"),
}
FORM: Choices = {"form": ("loop", "batch", "ahead"), "depth": (2, 4, 8)}
SPLIT: Choices = {**SHAPE, **FORM, "lanes": (8, 16), "split": (2, 4)}
STRATEGIES = (
    Strategy(
        "spmm csr rows",
        Op.SPMM,
        {**SHAPE, **FORM, "place": ("rows across", "slices inside"), "columns": ("wide",)},
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
        {**SPLIT, "format": ("csr",)},
        _split,
        in_a_warp,
    ),
    Strategy("spmm ell split", Op.SPMM, {**SPLIT, "format": ("ell",)}, _split, in_a_warp),
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
