"""SpMV on padded formats that are made on the device: vectors of entries and of blocks."""

from __future__ import annotations

from suite.problem import Op
from training.teacher.parts import load_of
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


def _loads(draft: Draft, p: Parameters, size: str, wide: bool) -> str:
    """The load intrinsic; no such load takes four doubles."""
    if wide and p["hint"] != "none":
        draft.requires.append("itemsize == 4")
    return load_of(draft, p, size)


def all_before(w: Writing, read: Lines, use: Lines) -> Lines:
    """A batch whose loads of the matrix all stand before those of x.

    Args:
        w: Writing.
        read: Loads the i-th; one that is not there is 0, in a column that is.
        use: Uses the i-th.
    """

    def each(lines: Lines) -> Lines:
        return w.unrolled("i", "BATCH", 0, lambda _: lines)

    return [
        *each(read),
        *w.note("The compiler mixes no loads across this and a branch."),
        "__syncwarp();",
        *w.when("inside", each(use)),
    ]


def _ell4(p: Parameters, w: Writing) -> Draft:
    lanes, depth, batch = int(p["lanes"]), int(p["depth"]), p["form"] == "batch"
    draft = start(
        p,
        Op.SPMV,
        f"ell4 BITS={p['bits']}",
        "Rows of equal length, of which a thread takes four neighbouring entries at once.",
    )
    hint = _loads(draft, p, "longest * pitch * (sizeof(real) + sizeof(Code))", True)
    by = "LANES" if lanes > 1 else "1"
    row = "mine" if batch else "row"
    group = w.define("size_t", "slot", f"4 * ((size_t){'at' if batch else 'k'} * pitch + {row})")
    code = read_vector("Code4", "part_cols + slot", hint)
    four = read_vector("real4", "packed + slot", hint)
    single = w.define("size_t", "slot", f"(size_t)j * pitch + {row}")
    rest = [*single, w.product("sum", "packed[slot]", "from[part_cols[slot]]")]
    first = "lane" if lanes > 1 else "0"
    tail = f"longest / 4 * 4{' + lane' if lanes > 1 else ''}"
    if batch:
        ahead = f"k + i{' * LANES' if lanes > 1 else ''}"
        body = [
            "Code4 col[BATCH];",
            "real4 val[BATCH];",
            *all_before(
                w,
                [
                    *w.define("int", "at", f"min({ahead}, longest / 4 - 1)"),
                    *group,
                    f"col[i] = {code};",
                    f"val[i] = {ahead} < longest / 4 ? {four} : real4();",
                ],
                [w.product("sum", f"val[i].{f}", f"from[col[i].{f}]") for f in FIELDS],
            ),
        ]
        step = "BATCH * LANES" if lanes > 1 else "BATCH"
        groups = w.each("int", "k", first, "k < longest / 4", step, body)
    else:
        body = [
            *group,
            *w.define("Code4", "col", code),
            *w.define("real4", "val", four),
            *[w.product("sum", f"val.{f}", f"from[col.{f}]") for f in FIELDS],
        ]
        groups = w.each("int", "k", first, "k < longest / 4", by, body, depth)
    adding = [
        "const Code* part_cols = (const Code*)codes;",
        f"const real* from = x + origin({row}, cols);",
        *groups,
        *w.each("int", "j", tail, "j < longest", by, rest),
    ]
    clamp = [
        *w.define("bool", "inside", "row < rows"),
        *w.define("int", "mine", "(int)min(row, rows - 1LL)"),
    ]
    there = "inside" if batch else "row < rows"
    store = w.when(there, ["y[row] = sum;"])
    if lanes == 1:
        draft.launches.append("multiply grid=ceildiv(rows,BLOCK) block=BLOCK")
        where = w.define("long long", "row", w.global_thread("BLOCK"))
        if batch:
            kernel = [*where, *clamp, "real sum = 0;", *adding, *store]
        else:
            own = ["real sum = 0;", *adding, "y[row] = sum;"]
            kernel = [*where, *w.guarded("row < rows", "row >= rows", own)]
    else:
        draft.launches.append("multiply grid=ceildiv(rows,BLOCK//LANES) block=BLOCK")
        team = "(BLOCK / LANES)"
        kernel = [
            *w.define("int", "lane", f"threadIdx.x / {team}"),
            *w.define("long long", "row", f"(long long)blockIdx.x * {team} + threadIdx.x % {team}"),
            *(clamp if batch else []),
            "real sum = 0;",
            *(adding if batch else w.when("row < rows", adding)),
            *split_sum(w, lanes, store),
        ]
    draft.kernels.append(("multiply", "", kernel))
    return draft


def _bell(p: Parameters, w: Writing) -> Draft:
    edge, depth, batch = int(p["edge"]), int(p["depth"]), p["form"] == "batch"
    wide = 4 if edge % 4 == 0 else 2 if edge % 2 == 0 else 1
    draft = start(
        p,
        Op.SPMV,
        f"bell EDGE={edge}",
        "Blocked ELLPACK: a thread takes its row of each block"
        " as vectors, and one column index serves a block.",
    )
    del draft.constants["EDGE"]  # the format's
    hint = _loads(draft, p, "width * EDGE * pitch * sizeof(real)", wide == 4)
    row = "mine" if batch else "row"
    k = "(k + i)" if batch else "k"

    def value(j: str) -> str:
        nth = f"{k} * PIECES{'' if j == '0' else f' + {j}'}" if edge > wide else k
        where = f"((size_t){f'({nth})' if ' ' in nth and nth != k else nth} * pitch + {row})"
        if wide == 1:
            return w.fetch("packed", where[1:-1], hint)
        return read_vector(VECTORS[wide], f"packed + {where} * WIDE", hint)

    def product(j: str, col: str, val: str) -> Lines:
        at = col if j == "0" else f"{col} + {j} * WIDE"
        if wide == 1:
            return [w.product("sum", val, f"x[{at}]")]
        return [
            *w.define(VECTORS[wide], "dense", f"*(const {VECTORS[wide]}*)(x + {at})"),
            *[w.product("sum", f"{val}.{f}", f"dense.{f}") for f in FIELDS[:wide]],
        ]

    def piece(j: str) -> Lines:
        if wide == 1:
            return product(j, "col", value(j))
        return [*w.define(VECTORS[wide], "val", value(j)), *product(j, "col", "val")]

    code = w.fetch("codes", f"(size_t){k} * block_rows + block_row", hint) + " * EDGE"
    pieces = edge // wide
    if batch:
        held = "" if pieces == 1 else " * PIECES"
        zero = "0" if wide == 1 else f"{VECTORS[wide]}()"

        def spot(j: str) -> str:
            return f"val[i{held}{'' if j == '0' else f' + {j}'}]"

        body = [
            "int col[BATCH];",
            f"{VECTORS[wide]} val[BATCH{held}];",
            *all_before(
                w,
                [
                    f"col[i] = k + i < width ? {code} : 0;",
                    *w.unrolled(
                        "j",
                        "PIECES",
                        pieces,
                        lambda j: [f"{spot(j)} = k + i < width ? {value(j)} : {zero};"],
                    ),
                ],
                w.unrolled("j", "PIECES", pieces, lambda j: product(j, "col[i]", spot(j))),
            ),
        ]
        blocks = w.each("int", "k", "0", "k < width", "BATCH", body)
    else:
        body = [*w.define("int", "col", code), *w.unrolled("j", "PIECES", pieces, piece)]
        blocks = w.each("int", "k", "0", "k < width", "1", body, depth)
    adding = [*w.define("int", "block_row", f"{row} / EDGE"), "real sum = 0;", *blocks]
    kernel = w.define("long long", "row", w.global_thread("BLOCK"))
    if batch:
        kernel += w.define("bool", "inside", "row < rows")
        kernel += w.define("int", "mine", "(int)min(row, rows - 1LL)")
        kernel += [*adding, *w.when("inside", ["y[row] = sum;"])]
    else:
        kernel += w.guarded("row < rows", "row >= rows", [*adding, "y[row] = sum;"])
    draft.launches.append("multiply grid=ceildiv(rows,BLOCK) block=BLOCK")
    draft.kernels.append(("multiply", "", kernel))
    return draft


def _sell16(p: Parameters, w: Writing) -> Draft:
    lanes = int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        f"sell16 SIGMA={p['sigma']}",
        "Slices of 32 rows, four entries of a row at once, columns as distances of 16 bits.",
    )
    if lanes > 1:
        draft.idea += f" {lanes} warps take turns with the entries of a slice."
    hint = _loads(draft, p, "slots * (sizeof(real) + 2)", True)
    by = "LANES" if lanes > 1 else "1"
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
    adding = [
        *w.define("int", "begin", "slice_ptr[slice]"),
        *w.define("int", "width_", "(slice_ptr[slice + 1] - begin) / 32"),
        "const int* base = bases + first_base(slice, begin);",
        *w.define("bool", "wide", "width_ > 0 && base[0] < 0"),
        *w.each(
            "int",
            "k",
            "share" if lanes > 1 else "0",
            "k < width_ / 4",
            by,
            group,
            int(p["depth"]),
        ),
        *w.each(
            "int",
            "k",
            f"width_ / 4 * 4{' + share' if lanes > 1 else ''}",
            "k < width_",
            by,
            rest,
        ),
    ]
    store = [
        *w.define("int", "row", "perm[slice * 32 + lane]"),
        *w.when("row >= 0", ["y[row] = sum;"]),
    ]
    warp = w.over(f"({w.global_thread('BLOCK')})", "32", 32)
    kernel = w.define("int", "lane", w.rest("threadIdx.x", "32", 32))
    if lanes == 1:
        kernel += w.define("int", "slice", warp)
        own = ["real sum = 0;", *adding, *store]
        kernel += w.guarded("slice < slices", "slice >= slices", own)
    else:
        kernel += [
            *w.define("int", "share", f"{w.over('threadIdx.x', '32', 32)} % LANES"),
            *w.define("int", "slice", f"{warp} / LANES"),
            "real sum = 0;",
            *w.when("slice < slices", adding),
            "__shared__ real part[BLOCK];",
            "part[threadIdx.x] = sum;",
            "__syncthreads();",
            *w.when(
                "slice < slices && share == 0",
                [
                    *w.each(
                        "int", "i", "1", "i < LANES", "1", ["sum += part[threadIdx.x + i * 32];"]
                    ),
                    *store,
                ],
            ),
        ]
    of = "slices*LANES" if lanes > 1 else "slices"
    draft.launches.append(f"multiply grid=ceildiv({of},BLOCK//32) block=BLOCK")
    draft.kernels.append(("multiply", "", kernel))
    return draft


def _sensible(p: Parameters) -> bool:
    """Whether several vectors are under way, and a batch has room."""
    edge, depth = int(p["edge"]), int(p["depth"])
    return (depth > 1 or edge == 16) and edge * depth <= 16


HINTS: Choices = {"hint": ("none", "keep"), "keep": (24,)}
BLOCKS = (64, 128, 256)
PACKED: Choices = {
    "form": ("loop", "batch"),
    "depth": (2, 4),
    **HINTS,
}
STRATEGIES = (
    Strategy(
        "spmv ell4",
        Op.SPMV,
        {"bits": (16, 32), "lanes": (1, 2), "block": BLOCKS, **PACKED},
        _ell4,
    ),
    Strategy(
        "spmv bell",
        Op.SPMV,
        {"edge": (2, 3, 4, 8, 16), "block": BLOCKS, **PACKED, "depth": (1, 2, 4)},
        _bell,
        _sensible,
    ),
    Strategy(
        "spmv sell16",
        Op.SPMV,
        {
            "bounds": ("half",),  # a licence for the registers of a batch
            "sigma": (1, 1024),
            "lanes": (1, 2),
            "block": (128, 256),
            **PACKED,
            "form": ("loop",),
        },
        _sell16,
    ),
)
