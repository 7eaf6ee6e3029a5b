"""SpMV on padded formats that are made on the device: vectors of entries and of blocks."""

from __future__ import annotations

from suite.problem import Op
from training.teacher.parts import LOAD, STREAM, kept
from training.teacher.spmv_rows import split_sum, start
from training.teacher.strategy import Choices, Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing

FIELDS = "xyzw"
VECTORS = {1: "real", 2: "real2", 4: "real4"}


def read_vector(kind: str, where: str, hint: str) -> str:
    """Reads a vector."""
    pointer = f"(const {kind}*)({where})"
    if hint == "load":
        return f"load({pointer}, kept)"
    return f"{hint}({pointer})" if hint else f"*{pointer}"


def _hinted(w: Writing, draft: Draft, p: Parameters, size: str, vectors: bool) -> tuple[str, Lines]:
    """The load intrinsic, and what has to be decided first; no such load takes four doubles."""
    if p["hint"] == "none":
        return "", []
    if vectors:
        draft.requires.append("itemsize == 4")
    if p["hint"] == "stream":
        return STREAM, []
    draft.functions += LOAD
    return "load", kept(w, size)


def _ell4(p: Parameters, w: Writing) -> Draft:
    lanes = int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        f"ell4 BITS={p['bits']}",
        "Rows of equal length, of which a thread takes four neighbouring entries at once.",
    )
    hint, decided = _hinted(w, draft, p, "longest * pitch * (sizeof(real) + sizeof(Code))", True)
    group = [
        *w.define("size_t", "slot", "4 * ((size_t)k * pitch + row)"),
        *w.define("Code4", "col", read_vector("Code4", "part_cols + slot", hint)),
        *w.define("real4", "val", read_vector("real4", "packed + slot", hint)),
        *[w.product("sum", f"val.{f}", f"from[col.{f}]") for f in FIELDS],
    ]
    rest = [
        *w.define("size_t", "slot", "(size_t)k * pitch + row"),
        w.product("sum", "packed[slot]", "from[part_cols[slot]]"),
    ]
    by = "LANES" if lanes > 1 else "1"
    first = "lane" if lanes > 1 else "0"
    row = [
        "const Code* part_cols = (const Code*)codes;",
        "const real* from = x + origin(row, cols);",
        *w.each("int", "k", first, "k < longest / 4", by, group, int(p["depth"])),
        *w.each(
            "int", "k", f"longest / 4 * 4{' + lane' if lanes > 1 else ''}", "k < longest", by, rest
        ),
    ]
    if lanes == 1:
        body = [
            *w.define("long long", "row", w.global_thread("BLOCK")),
            *w.guarded(
                "row < rows", "row >= rows", ["real sum = 0;", *decided, *row, "y[row] = sum;"]
            ),
        ]
        grid = "ceildiv(rows,BLOCK)"
    else:
        team = "(BLOCK / LANES)"
        body = [
            *w.define("int", "lane", f"threadIdx.x / {team}"),
            *w.define("long long", "row", f"(long long)blockIdx.x * {team} + threadIdx.x % {team}"),
            "real sum = 0;",
            *w.when("row < rows", [*decided, *row]),
            *split_sum(w, lanes, w.when("row < rows", ["y[row] = sum;"])),
        ]
        grid = "ceildiv(rows,BLOCK//LANES)"
    draft.launches.append(f"multiply grid={grid} block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _bell(p: Parameters, w: Writing) -> Draft:
    edge = int(p["edge"])
    wide = 4 if edge % 4 == 0 else 2 if edge % 2 == 0 else 1
    draft = start(
        p,
        Op.SPMV,
        f"bell EDGE={edge}",
        "Blocked ELLPACK: a thread takes its row of each block"
        " as vectors, and one column index serves a block.",
    )
    del draft.constants["EDGE"]  # the format's
    hint, decided = _hinted(w, draft, p, "width * EDGE * pitch * sizeof(real)", wide == 4)

    def piece(i: str) -> Lines:
        nth = "" if edge == wide else " * PIECES" + ("" if i == "0" else f" + {i}")
        where = f"(((size_t)k{nth}) * pitch + row) * WIDE" if nth else "((size_t)k * pitch + row)"
        if wide > 1 and not nth:
            where += " * WIDE"
        other = "col" if i == "0" else f"col + {i} * WIDE"
        if wide == 1:
            value = w.fetch("packed", where, hint)
            return [w.product("sum", value, f"x[{other}]")]
        kind = VECTORS[wide]
        return [
            *w.define(kind, "val", read_vector(kind, f"packed + {where}", hint)),
            *w.define(kind, "dense", f"*(const {kind}*)(x + {other})"),
            *[w.product("sum", f"val.{f}", f"dense.{f}") for f in FIELDS[:wide]],
        ]

    block = [
        *w.define(
            "int", "col", w.fetch("codes", "(size_t)k * block_rows + block_row", hint) + " * EDGE"
        ),
        *w.unrolled("i", "PIECES", edge // wide, piece),
    ]
    body = [
        *w.define("long long", "row", w.global_thread("BLOCK")),
        *w.guarded(
            "row < rows",
            "row >= rows",
            [
                *w.define("int", "block_row", "row / EDGE"),
                "real sum = 0;",
                *decided,
                *w.each("int", "k", "0", "k < width", "1", block, int(p["depth"])),
                "y[row] = sum;",
            ],
        ),
    ]
    draft.launches.append("multiply grid=ceildiv(rows,BLOCK) block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _sell16(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        f"sell16 SIGMA={p['sigma']}",
        "Slices of 32 rows, four entries of a row at once, columns as distances of 16 bits.",
    )
    hint, decided = _hinted(w, draft, p, "slots * (sizeof(real) + 2)", True)
    group = [
        *w.define("int", "slot", "begin + 4 * (k * 32 + lane)"),
        *w.define("ushort4", "col", read_vector("ushort4", "codes + slot", hint)),
        *w.define("real4", "val", read_vector("real4", "packed + slot", hint)),
        *w.choose("uchar4", "high", "wide", "*(const uchar4*)(highs + slot)", "uchar4()"),
        *w.choose("int4", "from", "wide", "int4()", "((const int4*)base)[k]"),
        *[
            w.product("sum", f"val.{f}", f"x[col.{f} + from.{f} + (high.{f} << 16)]")
            for f in FIELDS
        ],
    ]
    rest = [
        *w.define("int", "slot", "begin + k * 32 + lane"),
        *w.choose("int", "from", "wide", "highs[slot] << 16", "base[k]"),
        w.product("sum", "packed[slot]", "x[codes[slot] + from]"),
    ]
    body = [
        *w.define("int", "lane", w.rest("threadIdx.x", "32", 32)),
        *w.define("int", "slice", w.over(f"({w.global_thread('BLOCK')})", "32", 32)),
        *w.guarded(
            "slice < slices",
            "slice >= slices",
            [
                *w.define("int", "begin", "slice_ptr[slice]"),
                *w.define("int", "width_", "(slice_ptr[slice + 1] - begin) / 32"),
                "const int* base = bases + first_base(slice, begin);",
                *w.define("bool", "wide", "width_ > 0 && base[0] < 0"),
                "real sum = 0;",
                *decided,
                *w.each("int", "k", "0", "k < width_ / 4", "1", group, int(p["depth"])),
                *w.each("int", "k", "width_ / 4 * 4", "k < width_", "1", rest),
                *w.define("int", "row", "perm[slice * 32 + lane]"),
                *w.when("row >= 0", ["y[row] = sum;"]),
            ],
        ),
    ]
    draft.launches.append("multiply grid=ceildiv(slices,BLOCK//32) block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _kept(p: Parameters) -> bool:
    """Whether an amount is kept only where any is."""
    return p["hint"] == "keep" or p["keep"] == 24


KEEP: Choices = {
    "bounds": ("none", "half"),
    "depth": (1, 2, 4),
    "hint": ("none", "stream", "keep"),
    "keep": (12, 24, 36),
}
BLOCKS = (64, 128, 256)
STRATEGIES = (
    Strategy(
        "spmv ell4",
        Op.SPMV,
        {"bits": (16, 32), "lanes": (1, 2, 4), "block": BLOCKS, **KEEP},
        _ell4,
        _kept,
    ),
    Strategy(
        "spmv bell", Op.SPMV, {"edge": (2, 3, 4, 8, 16), "block": BLOCKS, **KEEP}, _bell, _kept
    ),
    Strategy(
        "spmv sell16", Op.SPMV, {"sigma": (1, 256, 1024), "block": BLOCKS, **KEEP}, _sell16, _kept
    ),
)
