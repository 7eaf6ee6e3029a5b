"""Strategies on flags, buckets and lists of equal work that are made on the device."""

from __future__ import annotations

from dataclasses import replace

from suite.problem import Op
from training.teacher import dense
from training.teacher.parts import ALL, STREAM, sum_lanes
from training.teacher.spmm_rows import SHAPE, stream_hint
from training.teacher.spmv_packed import read_vector
from training.teacher.spmv_rows import start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing, deeper


def _flags(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        "coo_runs ROUNDS=1",
        "Four entries a lane, with flags where rows begin instead of row indices; lanes of one row"
        " add up by a segmented sum.",
    )
    draft.init_zero = True
    hint = STREAM if p["hint"] == "stream" else ""
    flush = f"atomicAdd({w.at('y', 'run_rows[slot + row]')}, sum);"
    vectors = p["load"] == "vector"
    loads: Lines = []
    if vectors:
        draft.requires.append("itemsize == 4")
        loads = [
            "int4 col = int4();",
            "real4 val = real4();",
            *w.when(
                "k < nnz",
                [
                    f"col = {read_vector('int4', 'col_idx + k', hint)};",
                    f"val = {read_vector('real4', 'vals + k', hint)};",
                ],
            ),
        ]
        product = "((const real*)&val)[i] * x[((const int*)&col)[i]]"
    else:
        value, col = w.fetch("vals", "k + i", hint), w.fetch("col_idx", "k + i", hint)
        product = f"{value} * x[{col}]"
    entry = [
        *w.when("bits >> i & 1", [*w.when("i > 0", [flush]), "++row;", "sum = 0;"]),
        *w.when("k + i < nnz", [f"sum += {product};"]),
    ]
    take = [
        f"const real below = __shfl_up_sync({ALL}, sum, step);",
        f"const int run_row = __shfl_up_sync({ALL}, row, step);",
        *w.when("lane >= step && run_row == row", ["sum += below;"]),
    ]
    body = [
        *w.define("int", "lane", w.rest("threadIdx.x", "32", 32)),
        *w.define("long long", "share", w.over(f"({w.global_thread('BLOCK')})", "32", 32)),
        *w.define("long long", "slot", "share * 128"),
        *w.guarded(
            "slot < nnz",
            "slot >= nnz",
            [
                *w.define("long long", "k", "slot + lane * 4"),
                *w.define("unsigned", "bits", "heads[share * 32 + lane]"),
                "int row = count_heads(bits).x - 1;",
                "real sum = 0;",
                *loads,
                *w.unrolled("i", "4", 4, lambda _: entry),
                *w.double("step", "1", "32", take),
                f"const int next = __shfl_down_sync({ALL}, row, 1);",
                *w.when("lane == 31 || next != row", [flush]),
            ],
        ),
    ]
    draft.launches.append("multiply grid=ceildiv(nnz,BLOCK*4) block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _buckets(p: Parameters, w: Writing) -> Draft:
    w = replace(w, comments="none")  # it is long as it is
    draft = start(
        p,
        Op.SPMV,
        f"colbuckets SEGMENT_BYTES={p['segment']} TILE_BYTES={p['tile']}",
        "Products are formed tile by tile of columns, x in shared memory, then put back into the"
        " order of rows and summed.",
    )
    del draft.constants["TILE"]
    draft.init_zero = True
    draft.arrays.append(("workspace", "products", "real", "max_spots"))
    hint = STREAM if p["hint"] == "stream" else ""
    value = f"{w.fetch('tile_vals', 'k', hint)} * shared_x[{w.fetch('tile_cols', 'k', hint)}]"
    entry = [f"products[(size_t)chunk_to[k / CHUNK] * CHUNK + k % CHUNK] = {value};"]
    tiles = [
        "extern __shared__ real shared_x[];",
        "int first = share_chunk[blockIdx.x];",
        *w.define("int", "last", "share_chunk[blockIdx.x + 1]"),
        "while (first < last) {",
        *deeper(
            [
                *w.define("int", "at", "tile_of(first, tile_at, tiles_of(cols), 1, 0)"),
                *w.define("int", "end", "min(last, tile_at[at + 1])"),
                "__syncthreads();",
                *w.each(
                    "int",
                    "i",
                    "threadIdx.x",
                    "i < min(TILE, cols - at * TILE)",
                    "blockDim.x",
                    ["shared_x[i] = x[at * TILE + i];"],
                    4,
                ),
                "__syncthreads();",
                *w.each(
                    "int",
                    "k",
                    "first * CHUNK + threadIdx.x",
                    "k < end * CHUNK",
                    "blockDim.x",
                    entry,
                    int(p["depth"]),
                ),
                "first = end;",
            ]
        ),
        "}",
    ]
    sums = [
        "extern __shared__ real shared_x[];",
        *w.define(
            "size_t", "slot", "(size_t)blockIdx.x * (SEGMENT / CHUNK + tiles_of(cols)) * CHUNK"
        ),
        *w.each(
            "int",
            "i",
            "threadIdx.x",
            "i < segment_chunks[blockIdx.x] * CHUNK",
            "BLOCK",
            ["shared_x[spots[slot + i]] = products[slot + i];"],
            4,
        ),
        "__syncthreads();",
        *w.define("int", "first", "blockIdx.x * SEGMENT"),
        *w.define("int", "end", "min(nnz - first, SEGMENT) + first"),
        *w.define("int", "run_row", "continued[blockIdx.x]"),
        *w.when(
            "threadIdx.x < 32 && run_row >= 0",
            [
                "real sum = 0;",
                *w.each(
                    "int",
                    "k",
                    "first + threadIdx.x",
                    "k < min(row_ptr[run_row + 1], end)",
                    "32",
                    ["sum += shared_x[spot_of(k - first)];"],
                ),
                *sum_lanes(w, "32"),
                *w.when("threadIdx.x == 0", [f"atomicAdd({w.at('y', 'run_row')}, sum);"]),
            ],
        ),
        *w.each(
            "int",
            "row",
            "segment_row[blockIdx.x] + threadIdx.x",
            "row < segment_row[blockIdx.x + 1]",
            "BLOCK",
            [
                "real sum = 0;",
                *w.each(
                    "int",
                    "k",
                    "row_ptr[row]",
                    "k < min(row_ptr[row + 1], end)",
                    "1",
                    ["sum += shared_x[spot_of(k - first)];"],
                ),
                *w.when(
                    "row_ptr[row + 1] > end",
                    [f"atomicAdd({w.at('y', 'row')}, sum);"],
                    ["y[row] = sum;"],
                ),
            ],
        ),
    ]
    draft.launches += [
        "multiply grid=(rows>0)*sms*PER_SM block=1024//PER_SM shared=TILE_BYTES",
        "add_long grid=(rows>0)*segments block=BLOCK"
        " shared=SEGMENT_BYTES+SEGMENT_BYTES//128*itemsize+16",
    ]
    draft.kernels += [("multiply", "", tiles), ("add_long", "", sums)]
    return draft


def _pieces(p: Parameters, w: Writing) -> Draft:
    w = dense.briefly(replace(w, comments="none", signature="wrapped", add="plus"))
    draft = start(
        p,
        Op.SPMM,
        f"csr_pieces PIECE={p['piece']}",
        "Whole rows in pieces of about equal work, a team each, entry after entry; long rows by all"
        " teams of a block.",
    )
    draft.requires.append("longest <= 65536")
    lines, geometry = dense.place(w, draft, p, "pieces", "unit")
    hint, kind = stream_hint(p), dense.vector_of(p)
    zero = f"sum = {dense.zero_of(p)};"
    store = dense.store(w, draft, p, "row")

    def read(i: str) -> Lines:
        k = "k" if i == "0" else f"k + {i}"
        load = [
            f"val[{i}] = {w.fetch('vals', k, hint)};",
            f"dense[{i}] = {dense.from_b(p, w.fetch('col_idx', k, hint))};",
        ]
        return w.when(f"{k} < end", load)

    def use(i: str) -> Lines:
        k = "k" if i == "0" else f"k + {i}"
        next_row = [*store, zero, "++row;", "stop = next;", "next = row_ptr[min(row + 2, rows)];"]
        return [
            f"if ({k} >= end) break;",
            f"while ({k} == stop) {{",
            *deeper(next_row),
            "}",
            *dense.add(w, draft, p, f"val[{i}]", f"dense[{i}]"),
        ]

    piece = [
        "int row = first_row[unit], last = first_row[unit + 1];",
        "int stop = row_ptr[min(row + 1, rows)], next = row_ptr[min(row + 2, rows)];",
        *w.define("bool", "wide", "row < last && row_ptr[last] - row_ptr[last - 1] > PIECE"),
        *w.define("int", "end", "row_ptr[wide ? last - 1 : last]"),
        f"{kind} {zero}",
        *w.each(
            "int",
            "k",
            "row_ptr[row]",
            "k < end",
            "BATCH",
            [
                "real val[BATCH];",
                f"{kind} dense[BATCH];",
                *w.unrolled("i", "BATCH", 0, read),
                *w.unrolled("i", "BATCH", 0, use),
            ],
        ),
        "while (row < last) {",
        *deeper([*store, zero, "++row;"]),
        "}",
        *w.when("wide && threadIdx.x == 0", ["long_row[threadIdx.y] = last - 1;"]),
    ]
    product = dense.add(
        w, draft, p, w.fetch("vals", "k", hint), dense.from_b(p, w.fetch("col_idx", "k", hint))
    )
    together = [
        *w.define("int", "row", "long_row[i]"),
        "if (row < 0) continue;",
        f"{kind} {zero}",
        *w.each(
            "int",
            "k",
            "row_ptr[row] + threadIdx.y",
            "k < row_ptr[row + 1]",
            "BLOCK / LANES",
            product,
            4,
        ),
        *dense.add_to(w, draft, p, "row"),
    ]
    body = [
        "__shared__ int long_row[BLOCK / LANES];",
        *lines,
        *dense.pointers(w, p),
        "if (threadIdx.x == 0) long_row[threadIdx.y] = -1;",
        *w.when("unit < pieces && at < length", piece),
        "__syncthreads();",
        *w.when(
            "at < length",
            ["for (int i = 0; i < BLOCK / LANES; ++i) {", *deeper(together), "}"],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


BLOCKS = (64, 128, 256, 512)
STRATEGIES = (
    Strategy(
        "spmv coo flags",
        Op.SPMV,
        {"block": BLOCKS, "load": ("single", "vector"), "hint": ("none", "stream")},
        _flags,
    ),
    Strategy(
        "spmv colbuckets",
        Op.SPMV,
        {
            "segment": (32768, 131072),
            "tile": (98304,),
            "block": (256, 512, 1024),
            "depth": (2, 4),
            "hint": ("none", "stream"),
        },
        _buckets,
    ),
    Strategy(
        "spmm csr pieces",
        Op.SPMM,
        {
            **SHAPE,
            "piece": (64, 128, 256),
            "depth": (4, 8),
            "place": ("rows across", "slices inside"),
        },
        _pieces,
        lambda p: int(p["lanes"]) <= int(p["block"]),
    ),
)
