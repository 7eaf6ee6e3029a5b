"""SpMV on formats that are made on the device: vectors of entries, blocks, tiles of columns."""

from __future__ import annotations

from suite.problem import Op
from training.teacher.parts import ALL, LOAD, STREAM, kept, sum_lanes
from training.teacher.spmv_rows import split_sum, start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing

FIELDS = "xyzw"
VECTORS = {1: "real", 2: "real2", 4: "real4"}


def _vector(kind: str, where: str, hint: str) -> str:
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
        *w.define("Code4", "col", _vector("Code4", "part_cols + slot", hint)),
        *w.define("real4", "val", _vector("real4", "packed + slot", hint)),
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
            *w.define(kind, "val", _vector(kind, f"packed + {where}", hint)),
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
        *w.define("ushort4", "col", _vector("ushort4", "codes + slot", hint)),
        *w.define("real4", "val", _vector("real4", "packed + slot", hint)),
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


def _coltile(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        f"coltile TILE={p['tile']}",
        "Entries by tiles of columns, whose x lies in shared memory: gathers cost next to nothing.",
    )
    del draft.constants["TILE"]
    draft.init_zero = True
    hint = STREAM if p["hint"] == "stream" else ""
    add = f"atomicAdd({w.at('y', 'first_row + tile_rows[slot + row]')}, sum);"
    each = [
        *w.when("heads >> i & 1", [*w.when("i > 0", [add]), "++row;", "sum = 0;"]),
        "sum += ((const real*)val)[i] * shared_x[((const unsigned short*)&col)[i]];",
    ]
    if p["finish"] == "scan":
        take = [
            f"const real below = __shfl_up_sync({ALL}, sum, step);",
            f"const int run_row = __shfl_up_sync({ALL}, row, step);",
            *w.when("lane >= step && run_row == row", ["sum += below;"]),
        ]
        last = [
            *w.double("step", "1", "32", take),
            f"const int next = __shfl_down_sync({ALL}, row, 1);",
            *w.when("lane == 31 || next != row", [add]),
        ]
    else:
        last = [add]
    chunk = [
        *w.define("size_t", "slot", "(size_t)k * CHUNK"),
        *w.define("int", "first_row", "(chunk_info[k] >> 12) * ROW_BLOCK"),
        *w.define("unsigned", "heads", w.fetch("tile_heads", "(size_t)k * 32 + lane", hint)),
        *w.define("uint4", "col", _vector("uint4", "tile_cols + slot + lane * EACH", hint)),
        "uint4 val[EACH / VECTOR];",
        *w.unrolled(
            "i",
            "EACH / VECTOR",
            0,
            lambda i: [
                f"val[{i}] = {_vector('uint4', f'tile_vals + slot + ({i} * 32 + lane) * VECTOR', hint)};"
            ],
        ),
        "int row = (int)(heads >> 8) - 1;",
        "real sum = 0;",
        *w.unrolled("i", "EACH", 0, lambda _: each),
        *last,
    ]
    body = [
        "extern __shared__ real shared_x[];",
        *w.define("int", "lane", w.rest("threadIdx.x", "32", 32)),
        *w.define("int", "row_blocks", "row_blocks_of(rows)"),
        *w.define("int4", "span", "((const int4*)spans)[blockIdx.x]"),
        "int first = span.x, end = span.y, at = span.z;",
        "while (first < span.w) {",
        *(
            "\t" + line if line[0] != "#" else line
            for line in [
                "__syncthreads();",
                *w.each(
                    "int",
                    "i",
                    "threadIdx.x",
                    "i < min(COLS, cols - at * COLS)",
                    "BLOCK",
                    ["shared_x[i] = x[at * COLS + i];"],
                    int(p["depth"]),
                ),
                "__syncthreads();",
                *w.each(
                    "int",
                    "k",
                    f"first + {w.over('threadIdx.x', '32', 32)}",
                    "k < end",
                    "BLOCK / 32",
                    chunk,
                ),
                "first = end;",
                "if (first >= span.w) break;",
                "do {",
                f"\t{w.count('at', '1')};",
                "} while (bucket_chunk[(at + 1) * row_blocks] <= first);",
                "end = min(span.w, bucket_chunk[(at + 1) * row_blocks]);",
            ]
        ),
        "}",
    ]
    draft.launches.append("multiply grid=min(max_shares,nnz) block=TILE//144 shared=TILE")
    draft.kernels.append(("multiply", "", body))
    return draft


def _bins(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        f"csr_bins PIECE={p['piece']}",
        "Rows listed by length: as many lanes for"
        " each as suit it, and pieces of long rows, which add to y.",
    )
    hint = STREAM if p["hint"] == "stream" else ""
    product = w.product("sum", w.fetch("vals", "k", hint), f"x[{w.fetch('col_idx', 'k', hint)}]")
    short = [
        "int kind = 0;",
        "while (kind < CLASSES && (int)blockIdx.x >= bins[8 + kind + 1]) ++kind;",
        "if (kind == CLASSES) return;",
        *w.choose("int", "lanes", "kind < LONG", "1 << kind", "1"),
        *w.define(
            "int",
            "unit",
            "bins[kind] + ((blockIdx.x - bins[8 + kind]) * 256 + threadIdx.x) / lanes",
        ),
        *w.define("bool", "inside", "unit < bins[kind + 1]"),
        *w.choose("int", "row", "inside", "units[unit]", "0"),
        *w.note("The first piece of a long row clears what all its pieces add to."),
        *w.when(
            "kind == LONG",
            [
                *w.when("inside && piece_from[unit - bins[LONG]] == row_ptr[row]", ["y[row] = 0;"]),
                "return;",
            ],
        ),
        *w.define("int", "lane", "threadIdx.x & (lanes - 1)"),
        *w.choose("int", "end", "inside", "row_ptr[row + 1]", "0"),
        "real sum = 0;",
        *w.each("int", "k", "row_ptr[row] + lane", "k < end", "lanes", [product], int(p["depth"])),
        *w.halve("step", "lanes / 2", [f"sum += __shfl_{w.reduce}_sync({ALL}, sum, step, lanes);"])[
            1:
        ],
        *w.when("inside && lane == 0", ["y[row] = sum;"]),
    ]
    long = [
        *w.define("int", "unit", "bins[LONG] + blockIdx.x"),
        *w.guarded(
            "unit < bins[CLASSES]",
            "unit >= bins[CLASSES]",
            [
                *w.define("int", "row", "units[unit]"),
                *w.define("int", "first", "piece_from[blockIdx.x]"),
                *w.define("int", "end", "min(first + PIECE, row_ptr[row + 1])"),
                "real sum = 0;",
                *w.each(
                    "int",
                    "k",
                    "first + threadIdx.x",
                    "k < end",
                    "BLOCK",
                    [product],
                    int(p["depth"]),
                ),
                *sum_lanes(w, "32"),
                *w.when(
                    f"{w.rest('threadIdx.x', '32', 32)} == 0",
                    [f"atomicAdd({w.at('y', 'row')}, sum);"],
                ),
            ],
        ),
    ]
    draft.launches += [
        "multiply grid=(rows>0)*bin_blocks block=256",
        "add_long grid=(longest>PIECE)*max_pieces block=BLOCK",
    ]
    draft.kernels += [("multiply", "", short), ("add_long", "", long)]
    return draft


def _hyb(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        f"hyb_pieces WIDTH={p['width']}",
        "Short rows as ELLPACK, what is longer in"
        " pieces of equal size, whose sums are added at the end.",
    )
    draft.arrays.append(("workspace", "piece_sum", "real", "max_pieces"))
    hint = STREAM if p["hint"] == "stream" else ""
    ell = w.product(
        "sum",
        w.fetch("ell_val", "slot + k * 32", hint),
        f"x[{w.fetch('ell_col', 'slot + k * 32', hint)}]",
    )
    rows = [
        *w.define("long long", "row", w.global_thread("BLOCK")),
        *w.guarded(
            "row < rows",
            "row >= rows",
            [
                *w.define(
                    "size_t",
                    "slot",
                    f"(size_t){w.over('row', '32', 32)} * (32 * WIDTH) + {w.rest('row', '32', 32)}",
                ),
                *w.define("int", "length", "ell_len[row]"),
                "real sum = 0;",
                *w.each("int", "k", "0", "k < length", "1", [ell], int(p["depth"])),
                "y[row] = sum;",
            ],
        ),
    ]
    product = w.product("sum", w.fetch("vals", "k", hint), f"x[{w.fetch('col_idx', 'k', hint)}]")
    lane = w.rest("threadIdx.x", "32", 32)
    warp = w.over(f"({w.global_thread('BLOCK')})", "32", 32)
    by = w.over(f"gridDim.x * {w.threads('BLOCK')}", "32", 32)
    pieces = w.each(
        "int",
        "i",
        warp,
        "i < counts[1]",
        by,
        [
            *w.define("int", "first", "piece_start[i]"),
            *w.define("int", "end", "first + piece_size[i]"),
            "real sum = 0;",
            *w.each("int", "k", f"first + {lane}", "k < end", "32", [product], int(p["depth"])),
            *sum_lanes(w, "32"),
            *w.when(f"{lane} == 0", ["piece_sum[i] = sum;"]),
        ],
    )
    tails = w.each(
        "int",
        "i",
        warp,
        "i < counts[0]",
        by,
        [
            *w.define("int", "row", "long_row[i]"),
            *w.define("int", "first", "long_first[i]"),
            *w.define("int", "end", "first + pieces_of(row_ptr[row + 1] - row_ptr[row])"),
            "real sum = 0;",
            *w.each("int", "k", f"first + {lane}", "k < end", "32", ["sum += piece_sum[k];"]),
            *sum_lanes(w, "32"),
            *w.when(f"{lane} == 0", ["y[row] += sum;"]),
        ],
    )
    draft.launches += [
        "multiply grid=ceildiv(rows,BLOCK) block=BLOCK",
        "add_long grid=(longest>WIDTH)*4*sms block=BLOCK",
        "add_tail grid=(longest>WIDTH)*sms block=BLOCK",
    ]
    draft.kernels += [("multiply", "", rows), ("add_long", "", pieces), ("add_tail", "", tails)]
    return draft


def _kept(p: Parameters) -> bool:
    """Whether an amount is kept only where any is."""
    return p["hint"] == "keep" or p["keep"] == 24


KEEP = {"depth": (1, 2, 4), "hint": ("none", "stream", "keep"), "keep": (12, 24, 36)}
LIGHT = {"depth": (1, 2, 4), "hint": ("none", "stream")}
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
    Strategy(
        "spmv coltile",
        Op.SPMV,
        {"tile": (36864, 73728, 147456), "finish": ("scan", "each"), **LIGHT},
        _coltile,
    ),
    Strategy(
        "spmv csr bins",
        Op.SPMV,
        {"piece": (1024, 2048, 8192), "block": (128, 256, 512), **LIGHT},
        _bins,
    ),
    Strategy(
        "spmv hyb pieces", Op.SPMV, {"width": (4, 8, 16, 32), "block": (128, 256), **LIGHT}, _hyb
    ),
)
