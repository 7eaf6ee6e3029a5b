"""SpMV on formats that are made on the device for scattered columns and uneven rows."""

from __future__ import annotations

from dataclasses import replace

from suite.problem import Op
from training.teacher.parts import ALL, STREAM, sum_lanes
from training.teacher.spmv_packed import read_vector
from training.teacher.spmv_rows import start
from training.teacher.strategy import Choices, Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing, deeper


def _coltile(p: Parameters, w: Writing) -> Draft:
    # It is long as it is.
    w = replace(w, comments="none", signature="wrapped", repeat="pragma", step="before")
    w = replace(w, braces="few", add="plus", address="element", local="plain")
    staged, ahead = p["finish"] == "stage", p["form"] == "ahead"
    draft = start(
        p,
        Op.SPMV,
        f"coltile TILE={p['tile']}",
        "Entries by tiles of columns, whose x lies in shared memory: gathers cost next to nothing.",
    )
    if staged or ahead:
        draft.idea = ""
    del draft.constants["TILE"]
    draft.constants.pop("BATCH", None)
    draft.init_zero = True
    first_row = "(chunk_info[k] >> 12) * ROW_BLOCK"
    to = f"{first_row} + tile_rows[slot + i]"
    hint = STREAM if p["hint"] == "stream" else ""
    add = f"atomicAdd({w.at('y', 'first_row + tile_rows[slot + row]')}, sum);"
    # Members have names that are nothing else's, since those are not replaced after a dot.
    names = ("flags", "columns", "values") if ahead else ("heads", "col", "val")
    held = [f"unsigned {names[0]};", f"uint4 {names[1]}, {names[2]}[EACH / VECTOR];"]
    own = "next." if ahead else ""
    values = read_vector("uint4", "tile_vals + slot + (i * 32 + lane) * VECTOR", hint)
    ask = [
        *w.define("size_t", "slot", f"(size_t){'min(wanted, end - 1)' if ahead else 'k'} * CHUNK"),
        f"{own}{names[0]} = {w.fetch('tile_heads', 'slot / 8 + lane', hint)};",
        f"{own}{names[1]} = {read_vector('uint4', 'tile_cols + slot + lane * EACH', hint)};",
        *w.each("int", "i", "0", "i < EACH / VECTOR", "1", [f"{own}{names[2]}[i] = {values};"]),
    ]
    bits = "now.flags" if ahead else "heads"
    number = "((const unsigned short*)&col)[i]"
    value = "((const real*)val)[i]"
    if ahead:
        number = number.replace("col", "now.columns")
        value = value.replace("val", "now.values")
        draft.functions += ["struct Share {", *deeper(held), "};"]
    each = [
        *w.when(
            f"{bits} >> i & 1",
            [
                *(
                    ["if (row < before)", "\tlead = sum;", "else", "\tstage[row + row / 32] = sum;"]
                    if staged
                    else w.when("i > 0", [add])
                ),
                "++row;",
                "sum = 0;",
            ],
        ),
        f"sum += {value} * shared_x[{number}];",
    ]
    take = [
        "const real below = __shfl_up_sync(~0u, sum, step);",
        "const int run_row = __shfl_up_sync(~0u, row, step);",
        *w.when("lane >= step && run_row == row", ["sum += below;"]),
    ]
    scan = w.double("step", "1", "32", take)
    if staged:
        finish = [
            *scan,
            "const real carry = __shfl_up_sync(~0u, sum, 1);",
            *w.when(
                "row >= before && before > 0",
                ["stage[before - 1 + (before - 1) / 32] = carry + lead;"],
            ),
            *w.when("lane == 31", ["stage[row + row / 32] = sum;"]),
            "__syncwarp();",
            *w.each(
                "int",
                "i",
                "lane",
                "i < (chunk_info[k] & 4095)",
                "32",
                [f"atomicAdd({w.at('y', to)}, stage[i + i / 32]);"],
                4,
            ),
            "__syncwarp();",
        ]
    elif p["finish"] == "scan":
        finish = [
            *scan,
            "const int next_row = __shfl_down_sync(~0u, row, 1);",
            *w.when("lane == 31 || next_row != row", [add]),
        ]
    else:
        finish = [add]
    if ahead:
        load = [
            "Share now = next;",
            "ask(k + BLOCK / 32);",
            *w.define("size_t", "slot", "(size_t)k * CHUNK"),
        ]
    else:
        load = [*held, *ask]
    chunk = [
        *load,
        *([] if staged else w.define("int", "first_row", first_row)),
        *(w.define("int", "before", f"{bits} >> 8") if staged else []),
        "int row = before - 1;" if staged else f"int row = (int)({bits} >> 8) - 1;",
        "real sum = 0;" if not staged else "real sum = 0, lead = 0;",
        *w.unrolled("i", "EACH", 0, lambda _: each),
        *finish,
    ]
    after = "bucket_chunk[(at + 1) * row_blocks_of(rows)]"  # where the next tile begins
    body = [
        "extern __shared__ real shared_x[];",
        *w.define("int", "lane", w.rest("threadIdx.x", "32", 32)),
        *w.define("int", "warp", "threadIdx.x / 32"),
        *(["real* stage = shared_x + COLS + warp * (CHUNK + CHUNK / 32);"] if staged else []),
        *w.define("int4", "span", "((const int4*)spans)[blockIdx.x]"),
        "int first = span.x, at = span.z, end;",
        *(
            ["Share next;", "const auto ask = [&](int wanted) {", *deeper(ask), "};"]
            if ahead
            else []
        ),
        "while (first < span.w) {",
        *deeper(
            [
                f"while ({after} <= first) {w.count('at', '1')};",
                f"end = min(span.w, {after});",
                *(["ask(first + warp);"] if ahead else []),
                "__syncthreads();",
                *w.each(
                    "int",
                    "i",
                    "threadIdx.x",
                    "i < min(COLS, cols - at * COLS)",
                    "BLOCK",
                    ["shared_x[i] = x[at * COLS + i];"],
                ),
                "__syncthreads();",
                *w.each("int", "k", "first + warp", "k < end", "BLOCK / 32", chunk),
                "first = end;",
            ]
        ),
        "}",
    ]
    more = "+TILE//144*33*itemsize//4" if staged else ""
    draft.launches.append(f"multiply grid=min(max_shares,nnz) block=TILE//144 shared=TILE{more}")
    draft.kernels.append(("multiply", "__launch_bounds__(BLOCK)", body))
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
        *w.define(
            "long long", "row", "(long long)(blockIdx.x - tail_blocks) * BLOCK + threadIdx.x"
        ),
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

    def each_warp(count: str, blocks: str, body: Lines) -> Lines:
        by = w.over(f"{blocks} * {w.threads('BLOCK')}", "32", 32)
        return w.each("int", "i", warp, f"i < {count}", by, body)

    pieces = each_warp(
        "counts[1]",
        "tail_blocks",
        [
            *w.define("int", "first", "piece_start[i]"),
            *w.define("int", "end", "first + piece_size[i]"),
            "real sum = 0;",
            *w.each("int", "k", f"first + {lane}", "k < end", "32", [product], int(p["depth"])),
            *sum_lanes(w, "32"),
            *w.when(f"{lane} == 0", ["piece_sum[i] = sum;"]),
        ],
    )
    tails = each_warp(
        "counts[0]",
        "gridDim.x",
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
    both = [
        *w.note("The first blocks take the pieces, while the others take the short rows."),
        *w.choose("int", "tail_blocks", "longest > WIDTH", "WAVES * sms", "0"),
        *w.when("blockIdx.x < tail_blocks", [*pieces, "return;"]),
        *rows,
    ]
    draft.constants["WAVES"] = int(p["waves"])
    draft.launches += [
        "multiply grid=(longest>WIDTH)*WAVES*sms+ceildiv(rows,BLOCK) block=BLOCK",
        "add_tail grid=(longest>WIDTH)*sms block=BLOCK",
    ]
    draft.kernels += [("multiply", "", both), ("add_tail", "", tails)]
    return draft


def _planes(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        "csr",
        "For short and empty rows: 32 rows have one start, and their lengths stand in bit planes,"
        " so that next to nothing is read for a row.",
    )
    draft.requires.append("longest <= 15")
    draft.arrays += [
        ("derived", "planes", "unsigned", "4*ROWS*ceildiv(rows,32*ROWS)"),
        ("derived", "starts", "int", "ROWS*ceildiv(rows,32*ROWS)"),
    ]
    draft.prepares.append("divide grid=ceildiv(rows,32*ROWS) block=32*ROWS")
    hint = STREAM if p["hint"] == "stream" else ""
    pack = [
        *w.define("long long", "row", "(long long)blockIdx.x * (32 * ROWS) + threadIdx.x"),
        *w.choose("int", "length", "row < rows", "row_ptr[row + 1] - row_ptr[row]", "0"),
        *w.each(
            "int",
            "i",
            "0",
            "i < 4",
            "1",
            [
                *w.define("unsigned", "bits", f"__ballot_sync({ALL}, length >> i & 1)"),
                *w.when(
                    "threadIdx.x % 32 == 0",
                    ["planes[i * (gridDim.x * ROWS) + row / 32] = bits;"],
                ),
            ],
        ),
        *w.when(
            "threadIdx.x % 32 == 0", ["starts[row / 32] = row_ptr[min(row, (long long)rows)];"]
        ),
    ]

    def find(i: str) -> Lines:
        word = "word" if i == "0" else f"word + {i}"
        return [
            f"begin[{i}] = {w.fetch('starts', word, hint)};",
            f"length[{i}] = 0;",
            "#pragma unroll",
            "for (int j = 0; j < 4; ++j) {",
            *deeper(
                [
                    *w.define("unsigned", "bits", w.fetch("planes", f"j * words + {word}", hint)),
                    f"length[{i}] += (bits >> lane & 1) << j;",
                    f"begin[{i}] += __popc(bits & ((1u << lane) - 1)) << j;",
                ]
            ),
            "}",
        ]

    def entry(i: str) -> Lines:
        slot = f"begin[{i}] + k"
        product = f"x[{w.fetch('col_idx', slot, hint)}]"
        add = w.product(f"sum[{i}]", w.fetch("vals", slot, hint), product)
        return w.when(f"k < length[{i}]", [add])

    def store(i: str) -> Lines:
        row = "row" if i == "0" else f"row + {i} * 32"
        return w.when(f"{row} < rows", [f"y[{row}] = sum[{i}];"])

    body = [
        *w.define("int", "lane", w.rest("threadIdx.x", "32", 32)),
        *w.define(
            "long long", "word", f"{w.over('(' + w.global_thread('BLOCK') + ')', '32', 32)} * ROWS"
        ),
        *w.guarded(
            "word * 32 < rows",
            "word * 32 >= rows",
            [
                *w.define("int", "words", "((rows - 1) / (32 * ROWS) + 1) * ROWS"),
                "int begin[ROWS], length[ROWS];",
                "real sum[ROWS] = {};",
                *w.unrolled("i", "ROWS", 0, find),
                *w.each("int", "k", "0", "k < longest", "1", w.unrolled("i", "ROWS", 0, entry)),
                *w.define("long long", "row", "word * 32 + lane"),
                *w.unrolled("i", "ROWS", 0, store),
            ],
        ),
    ]
    draft.launches.append("multiply grid=ceildiv(rows,BLOCK*ROWS) block=BLOCK")
    draft.kernels += [("divide", "", pack), ("multiply", "", body)]
    return draft


LIGHT: Choices = {"depth": (1, 2, 4), "hint": ("none", "stream")}
STRATEGIES = (
    Strategy(
        "spmv coltile",
        Op.SPMV,
        {
            "tile": (73728, 147456),
            "finish": ("stage", "scan", "each"),
            "form": ("loop", "ahead"),
            "hint": ("none", "stream"),
        },
        _coltile,
        lambda p: p["hint"] == "none" or (p["finish"], p["form"]) != ("stage", "ahead"),
    ),
    Strategy(
        "spmv csr bins",
        Op.SPMV,
        {"piece": (1024, 2048, 8192), "block": (128, 256, 512), **LIGHT},
        _bins,
    ),
    Strategy(
        "spmv hyb pieces",
        Op.SPMV,
        {"width": (4, 8, 16, 32), "waves": (4,), "block": (128, 256), **LIGHT, "depth": (2, 4, 8)},
        _hyb,
    ),
    Strategy(
        "spmv csr planes",
        Op.SPMV,
        {"rows": (1, 2, 4, 8), "block": (128, 256, 512), "hint": ("none", "stream")},
        _planes,
    ),
)
