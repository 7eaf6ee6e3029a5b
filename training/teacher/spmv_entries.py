"""SpMV by entries: COO and HYB's tail, equal numbers of entries for all threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from suite.problem import Op
from training.teacher.parts import ALL, STREAM
from training.teacher.spmv_rows import BLOCKS, LOADS, ell_rows, sensible, start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing


@dataclass(frozen=True)
class Arrays:
    """Entries as coordinates: names of the arrays, and how many there are."""

    row: str = "row_idx"
    col: str = "col_idx"
    val: str = "vals"
    count: str = "nnz"


TAIL = Arrays("coo_row_idx", "coo_col_idx", "coo_vals", "tail")


def _product(w: Writing, a: Arrays, hint: str, index: str) -> str:
    return f"{w.fetch(a.val, index, hint)} * x[{w.fetch(a.col, index, hint)}]"


def _hint(p: Parameters) -> str:
    return STREAM if p["hint"] == "stream" else ""


def _each(w: Writing, p: Parameters, a: Arrays) -> Lines:
    """One addition to y for each entry."""
    hint = _hint(p)
    row = w.fetch(a.row, "k", hint)
    return [
        *w.define("long long", "k", w.global_thread("BLOCK")),
        *w.guarded(
            f"k < {a.count}",
            f"k >= {a.count}",
            [f"atomicAdd({w.at('y', row)}, {_product(w, a, hint, 'k')});"],
        ),
    ]


def _runs(w: Writing, p: Parameters, a: Arrays) -> Lines:
    """ITEMS neighbouring entries a thread; each run of equal rows is added to y once."""
    hint = _hint(p)
    body = [
        *w.define("int", "row", w.fetch(a.row, "k", hint)),
        *w.when(
            "row != run_row",
            [f"atomicAdd({w.at('y', 'run_row')}, sum);", "run_row = row;", "sum = 0;"],
        ),
        f"sum += {_product(w, a, hint, 'k')};",
    ]
    return [
        *w.define("long long", "first", f"({w.global_thread('BLOCK')}) * ITEMS"),
        *w.guarded(
            f"first < {a.count}",
            f"first >= {a.count}",
            [
                *w.define("long long", "end", f"min(first + ITEMS, (long long){a.count})"),
                f"int run_row = {a.row}[first];",
                "real sum = 0;",
                *w.each("long long", "k", "first", "k < end", "1", body, int(p["items"])),
                f"atomicAdd({w.at('y', 'run_row')}, sum);",
            ],
        ),
    ]


def scan_rows(w: Writing) -> Lines:
    """Adds ``sum`` up over lanes of equal ``row``; the last of each adds it to y."""
    take = [
        f"const real below = __shfl_up_sync({ALL}, sum, step);",
        f"const int run_row = __shfl_up_sync({ALL}, row, step);",
        *w.when("lane >= step && run_row == row", ["sum += below;"]),
    ]
    return [
        *w.double("step", "1", "32", take),
        f"const int next = __shfl_down_sync({ALL}, row, 1);",
        *w.when(
            "row >= 0 && (lane == 31 || next != row)", [f"atomicAdd({w.at('y', 'row')}, sum);"]
        ),
    ]


def _scan(w: Writing, p: Parameters, a: Arrays) -> Lines:
    """ITEMS times 32 entries a warp, whose lanes add up equal rows by a segmented sum."""
    hint, items = _hint(p), int(p["items"])
    body = [
        *w.define("long long", "k", "first + i * 32" if items > 1 else "first"),
        *w.choose("int", "row", f"k < {a.count}", w.fetch(a.row, "k", hint), "-1"),
        "real sum = 0;",
        *w.when(f"k < {a.count}", [f"sum = {_product(w, a, hint, 'k')};"]),
        *scan_rows(w),
    ]
    lane = w.rest("threadIdx.x", "32", 32)
    warp = w.over(f"({w.global_thread('BLOCK')})", "32", 32)
    loop = w.each("int", "i", "0", "i < ITEMS", "1", body) if items > 1 else body
    return [
        *w.define("int", "lane", lane),
        *w.define("long long", "first", f"{warp} * {'(32 * ITEMS)' if items > 1 else '32'} + lane"),
        *loop,
    ]


def _vectors(w: Writing, p: Parameters, a: Arrays) -> Lines:
    """Two neighbouring entries a lane, loaded as vectors, then a segmented sum over the warp."""
    hint = _hint(p)

    def load(kind: str, array: str) -> str:
        return f"{hint}(({kind}*)({array} + k))" if hint else f"*({kind}*)({array} + k)"

    return [
        *w.define("int", "lane", w.rest("threadIdx.x", "32", 32)),
        *w.define("long long", "k", f"({w.global_thread('BLOCK')}) * 2"),
        "int row = -1;",
        "real sum = 0;",
        *w.when(
            f"k < {a.count}",
            [
                *w.define("int2", "pair", load("const int2", a.row)),
                *w.define("int2", "col", load("const int2", a.col)),
                *w.define("real2", "val", load("const real2", a.val)),
                "row = pair.x;",
                "sum = val.x * x[col.x];",
                *w.when(
                    f"k + 1 < {a.count}",
                    [
                        *w.when(
                            "pair.y != row",
                            [f"atomicAdd({w.at('y', 'row')}, sum);", "row = pair.y;", "sum = 0;"],
                        ),
                        "sum += val.y * x[col.y];",
                    ],
                ),
            ],
        ),
        *scan_rows(w),
    ]


KINDS: Mapping[str, tuple[Callable[[Writing, Parameters, Arrays], Lines], str, str]] = {
    "each": (_each, "ceildiv({},BLOCK)", "A thread adds one entry."),
    "runs": (_runs, "ceildiv({},BLOCK*ITEMS)", "A thread adds a run of neighbouring entries."),
    "scan": (_scan, "ceildiv({},BLOCK*ITEMS)", "Lanes add up equal rows by a segmented sum."),
    "vectors": (_vectors, "ceildiv({},BLOCK*2)", "Pairs of entries, then a segmented sum."),
}


def _coo(p: Parameters, w: Writing) -> Draft:
    body, grid, idea = KINDS[str(p["kind"])]
    draft = start(p, Op.SPMV, "coo", f"{idea} Balanced whatever the rows.")
    draft.init_zero = True
    draft.launches.append(f"multiply grid={grid.format('nnz')} block=BLOCK")
    draft.kernels.append(("multiply", "", body(w, p, Arrays())))
    return draft


def _hyb(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        f"hyb percent={p['percent']}",
        "Rows up to a width as ELL, what is beyond as coordinates.",
    )
    body, grid, _ = KINDS[str(p["kind"])]
    draft.launches += [
        "multiply grid=ceildiv(rows,BLOCK) block=BLOCK",
        f"add_tail grid={grid.format('tail')} block=BLOCK",
    ]
    draft.kernels.append(("multiply", "", ell_rows(w, draft, p)))
    draft.kernels.append(("add_tail", "", body(w, p, TAIL)))
    return draft


def _few(p: Parameters) -> bool:
    """Whether only kinds that take several entries a thread have a number of those."""
    return p["kind"] in ("runs", "scan") or p["items"] == 4


STRATEGIES = (
    Strategy(
        "spmv coo each",
        Op.SPMV,
        {"kind": ("each",), "items": (4,), "block": BLOCKS, "hint": ("none", "stream")},
        _coo,
    ),
    Strategy(
        "spmv coo runs",
        Op.SPMV,
        {
            "kind": ("runs",),
            "items": (2, 4, 8, 16, 32),
            "block": BLOCKS,
            "hint": ("none", "stream"),
        },
        _coo,
    ),
    Strategy(
        "spmv coo scan",
        Op.SPMV,
        {
            "kind": ("scan", "vectors"),
            "items": (1, 2, 4, 8),
            "block": BLOCKS,
            "hint": ("none", "stream"),
        },
        _coo,
        _few,
    ),
    Strategy(
        "spmv hyb",
        Op.SPMV,
        {
            "percent": (67, 80, 90, 97),
            "kind": ("each", "runs", "scan", "vectors"),
            "items": (1, 4, 8),
            "block": (128, 256, 512),
            **(LOADS | {"hint": ("none", "stream")}),
            "depth": (1, 2, 4),
        },
        _hyb,
        lambda p: _few(p) and sensible(p),
    ),
)
