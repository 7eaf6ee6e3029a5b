"""SpMV on CSR for rows of very different lengths: tiles of entries, pieces of rows, blocks."""

from __future__ import annotations

from suite.problem import Op
from training.teacher.parts import STREAM, sum_lanes
from training.teacher.spmv_rows import start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing


def _hint(p: Parameters) -> str:
    return STREAM if p["hint"] == "stream" else ""


def _product(w: Writing, hint: str, index: str = "k") -> str:
    return f"{w.fetch('vals', index, hint)} * x[{w.fetch('col_idx', index, hint)}]"


def block_sum(w: Writing, block: int) -> Lines:
    """Adds ``sum`` over all threads of a block; the first has the sum."""
    if block == 32:
        return sum_lanes(w, "32")
    return [
        *sum_lanes(w, "32"),
        "__shared__ real part[BLOCK / 32];",
        *w.when(
            f"{w.rest('threadIdx.x', '32', 32)} == 0",
            [f"part[{w.over('threadIdx.x', '32', 32)}] = sum;"],
        ),
        "__syncthreads();",
        *w.when(
            "threadIdx.x == 0", w.each("int", "i", "1", "i < BLOCK / 32", "1", ["sum += part[i];"])
        ),
    ]


def _block(p: Parameters, w: Writing) -> Draft:
    draft = start(p, Op.SPMV, "csr", "A block for each row, for few and long rows.")
    add = [w.product("sum", *_product(w, _hint(p)).split(" * ", 1))]
    split = int(p["split"])
    if split == 1:
        bounds = [*w.define("int", "end", "row_ptr[blockIdx.x + 1]")]
        first, step = "row_ptr[blockIdx.x] + threadIdx.x", "BLOCK"
        store = "y[blockIdx.x] = sum;"
    else:
        bounds = [*w.define("int", "end", "row_ptr[blockIdx.x + 1]")]
        first, step = "row_ptr[blockIdx.x] + blockIdx.y * BLOCK + threadIdx.x", "BLOCK * SPLIT"
        store = f"atomicAdd({w.at('y', 'blockIdx.x')}, sum);"
        draft.init_zero = True
        draft.idea = f"{split} blocks for each row, which add to y: for very few and long rows."
    body = [
        *bounds,
        "real sum = 0;",
        *w.each("int", "k", first, "k < end", step, add, int(p["depth"])),
        *block_sum(w, int(p["block"])),
        *w.when("threadIdx.x == 0", [store]),
    ]
    draft.requires.append("rows <= 1048576" if split == 1 else "rows*SPLIT <= 1048576")
    draft.launches.append(f"multiply grid=rows{',SPLIT' if split > 1 else ''} block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _stream(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMV,
        "csr",
        "A block reads the entries of its rows side by side into shared"
        " memory, from where each thread adds up a row.",
    )
    draft.requires.append("longest <= 65536")
    hint = _hint(p)
    load = w.each(
        "int",
        "k",
        "first + threadIdx.x",
        "k < next",
        "BLOCK",
        [f"products[k - first] = {_product(w, hint)};"],
        int(p["depth"]),
    )
    add = w.each(
        "int", "k", "max(begin, first)", "k < min(end, next)", "1", ["sum += products[k - first];"]
    )
    body = [
        "__shared__ real products[TILE];",
        *w.define("long long", "base", "(long long)blockIdx.x * BLOCK"),
        *w.define("long long", "row", "base + threadIdx.x"),
        *w.define("int", "last", "row_ptr[min(base + BLOCK, (long long)rows)]"),
        *w.choose("int", "begin", "row < rows", "row_ptr[row]", "last"),
        *w.choose("int", "end", "row < rows", "row_ptr[row + 1]", "last"),
        "real sum = 0;",
        *w.each(
            "int",
            "first",
            "row_ptr[base]",
            "first < last",
            "TILE",
            [
                *w.define("int", "next", "min(first + TILE, last)"),
                *load,
                "__syncthreads();",
                *add,
                "__syncthreads();",
            ],
        ),
        *w.when("row < rows", ["y[row] = sum;"]),
    ]
    draft.launches.append("multiply grid=ceildiv(rows,BLOCK) block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


SEARCH = [
    "// The row that has the entry.",
    "__device__ int row_of(int entry, int rows, const int* __restrict__ row_ptr) {",
    "\tint low = 0, high = rows - 1;",
    "\twhile (low < high) {",
    "\t\tconst int middle = low + (high - low) / 2;",
    "\t\tif (row_ptr[middle + 1] <= entry)",
    "\t\t\tlow = middle + 1;",
    "\t\telse",
    "\t\t\thigh = middle;",
    "\t}",
    "\treturn low;",
    "}",
]


def search(w: Writing) -> Lines:
    """A function that finds the row of an entry."""
    return SEARCH if w.comments == "all" else SEARCH[1:]


def _tiles(p: Parameters, w: Writing) -> Draft:
    lanes = int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        "csr",
        "TILE entries a block wherever rows begin and end; rows that"
        " cross a border are finished by atomics.",
    )
    draft.init_zero = True
    draft.functions += search(w)
    hint = _hint(p)
    if p["search"] == "once":
        draft.arrays.append(("derived", "starts", "int", "ceildiv(nnz,TILE)+1"))
        draft.prepares.append("divide grid=ceildiv(ceildiv(nnz,TILE)+1,256)*(rows>0) block=256")
        draft.kernels.append(
            (
                "divide",
                "",
                [
                    *w.define("long long", "k", f"{w.global_thread('256')}"),
                    *w.when(
                        "k <= (nnz + TILE - 1LL) / TILE",
                        ["starts[k] = row_of((int)min(k * TILE, (long long)nnz), rows, row_ptr);"],
                    ),
                ],
            )
        )
        low, high = "starts[blockIdx.x]", "starts[blockIdx.x + 1]"
    else:
        low, high = "row_of(first, rows, row_ptr)", "row_of(end - 1, rows, row_ptr)"
    whole = [
        *w.define("int", "begin", "max(row_ptr[row], first)"),
        *w.define("int", "last", "min(row_ptr[row + 1], end)"),
    ]
    add = w.each(
        "int",
        "k",
        "begin + lane" if lanes > 1 else "begin",
        "k < last",
        "LANES" if lanes > 1 else "1",
        ["sum += products[k - first];"],
    )
    there = "row_ptr[row] >= first && row_ptr[row + 1] <= end"
    store = w.when(there, ["y[row] = sum;"], [f"atomicAdd({w.at('y', 'row')}, sum);"])
    if lanes == 1:
        rows = w.each(
            "int",
            "row",
            "low + threadIdx.x",
            "row <= high",
            "BLOCK",
            [*whole, "real sum = 0;", *add, *store],
        )
    else:
        rows = [
            *w.define("int", "lane", w.rest("threadIdx.x", "LANES", lanes)),
            *w.each(
                "int",
                "base",
                "low",
                "base <= high",
                "BLOCK / LANES",
                [
                    *w.define("int", "row", f"base + {w.over('threadIdx.x', 'LANES', lanes)}"),
                    "real sum = 0;",
                    *w.when("row <= high", [*whole, *add]),
                    *sum_lanes(w, "LANES"),
                    *w.when("lane == 0 && row <= high", store),
                ],
            ),
        ]
    body = [
        "__shared__ real products[TILE];",
        *w.define("int", "first", "blockIdx.x * TILE"),
        *w.define("int", "end", "min(nnz - first, TILE) + first"),
        *w.each(
            "int",
            "k",
            "first + threadIdx.x",
            "k < end",
            "BLOCK",
            [f"products[k - first] = {_product(w, hint)};"],
            int(p["depth"]),
        ),
        *w.define("int", "low", low),
        *w.define("int", "high", high),
        "__syncthreads();",
        *rows,
    ]
    draft.launches.append("multiply grid=ceildiv(nnz,TILE) block=BLOCK")
    draft.kernels.append(("multiply", "", body))
    return draft


def _long(p: Parameters, w: Writing) -> Draft:
    lanes = int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        "csr",
        "A team for each row of up to LIMIT entries; longer rows are cut"
        " into pieces with a block each, which add to y.",
    )
    hint = _hint(p)
    draft.functions += search(w)
    product = w.product("sum", *_product(w, hint).split(" * ", 1))
    team = w.each(
        "int",
        "k",
        "begin + lane" if lanes > 1 else "begin",
        "k < end",
        "LANES" if lanes > 1 else "1",
        [product],
        int(p["depth"]),
    )
    short = [
        *w.define("int", "begin", "row_ptr[row]"),
        *w.define("int", "end", "row_ptr[row + 1]"),
        *w.when("end - begin <= LIMIT", team),
    ]
    if lanes == 1:
        one = [
            *w.define("long long", "row", w.global_thread("BLOCK")),
            *w.guarded("row < rows", "row >= rows", ["real sum = 0;", *short, "y[row] = sum;"]),
        ]
    else:
        one = [
            *w.define("long long", "row", w.over(f"({w.global_thread('BLOCK')})", "LANES", lanes)),
            *w.define("int", "lane", w.rest("threadIdx.x", "LANES", lanes)),
            "real sum = 0;",
            *w.when("row < rows", short),
            *sum_lanes(w, "LANES"),
            *w.when("lane == 0 && row < rows", ["y[row] = sum;"]),
        ]
    piece = [
        *w.define("int", "first", "blockIdx.x * LIMIT"),
        *w.define("int", "last", "min(nnz - first, LIMIT) + first"),
        *w.define("int", "low", "row_of(first, rows, row_ptr)"),
        *w.define("int", "high", "row_of(last - 1, rows, row_ptr)"),
        *w.note("Only the first and the last row of a piece can be long."),
        *w.each(
            "int",
            "row",
            "low",
            "row <= high",
            "max(high - low, 1)",
            [
                *w.define("int", "begin", "row_ptr[row]"),
                *w.define("int", "end", "row_ptr[row + 1]"),
                *w.when(
                    "end - begin > LIMIT",
                    [
                        "real sum = 0;",
                        *w.each(
                            "int",
                            "k",
                            "max(begin, first) + threadIdx.x",
                            "k < min(end, last)",
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
            ],
        ),
    ]
    draft.launches += [
        f"multiply grid=ceildiv(rows{'*LANES' if lanes > 1 else ''},BLOCK) block=BLOCK",
        "add_long grid=(longest>LIMIT)*ceildiv(nnz,LIMIT) block=BLOCK",
    ]
    draft.kernels += [("multiply", "", one), ("add_long", "", piece)]
    return draft


LIGHT = {"depth": (1, 2, 4), "hint": ("none", "stream")}
STRATEGIES = (
    Strategy(
        "spmv csr block",
        Op.SPMV,
        {"block": (64, 128, 256, 512, 1024), "split": (1, 2, 4, 8, 16), **LIGHT},
        _block,
    ),
    Strategy(
        "spmv csr stream",
        Op.SPMV,
        {"block": (64, 128, 256, 512), "tile": (512, 1024, 2048, 4096), **LIGHT},
        _stream,
        lambda p: int(p["tile"]) >= 2 * int(p["block"]),
    ),
    Strategy(
        "spmv csr tiles",
        Op.SPMV,
        {
            "block": (64, 128, 256, 512),
            "tile": (512, 1024, 2048, 4096),
            "lanes": (1, 2, 4, 8, 32),
            "search": ("once", "always"),
            **LIGHT,
        },
        _tiles,
        lambda p: int(p["tile"]) >= 2 * int(p["block"]),
    ),
    Strategy(
        "spmv csr long",
        Op.SPMV,
        {
            "block": (128, 256, 512),
            "lanes": (1, 2, 4, 8, 16, 32),
            "limit": (512, 2048, 8192),
            **LIGHT,
        },
        _long,
    ),
)
