"""SpMV on formats with few or no indices: diagonals and dense blocks."""

from __future__ import annotations

from suite.problem import Op
from training.teacher.parts import ALL, STREAM, load_of
from training.teacher.spmv_rows import BLOCKS, start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing

VECTORS = {2: "real2", 4: "real4"}
FIELDS = "xyzw"


def _dia(p: Parameters, w: Writing) -> Draft:
    rows = int(p["rows"])
    draft = start(p, Op.SPMV, "dia", f"{rows} rows a thread" if rows > 1 else "A row a thread")
    draft.idea += ", diagonal by diagonal: no column indices are read."
    hint = load_of(draft, p, "diags * pitch * sizeof(real)")

    def shift(text: str, i: str) -> str:
        return text if i == "0" else f"{text} + {i} * BLOCK"

    def diagonals(safe: bool) -> Lines:
        def add(i: str) -> Lines:
            value = w.fetch("vals", shift("slot", i), hint)
            product = w.product("sum" if rows == 1 else f"sum[{i}]", value, f"x[{shift('col', i)}]")
            if safe:
                return [product]
            col, row = shift("col", i), shift("row", i)
            conditions = f"{col} >= 0 && {col} < cols"
            more = f"{row} < rows && " if rows > 1 else ""
            return w.when(f"{more}{conditions}", [product])

        body = [
            *w.define("long long", "col", "row + offsets[k]"),
            *w.define("size_t", "slot", "(size_t)k * pitch + row"),
            *w.repeat_each("i", "ROWS", rows, add),
        ]
        return w.each("int", "k", "0", "k < diags", "1", body, int(p["depth"]))

    def store(i: str) -> Lines:
        row = shift("row", i)
        line = f"y[{row}] = sum{'' if rows == 1 else f'[{i}]'};"
        return [line] if rows == 1 else w.when(f"{row} < rows", [line])

    per_block = "BLOCK * ROWS" if rows > 1 else "BLOCK"
    base = [
        *w.define(
            "long long",
            "base",
            f"(long long)blockIdx.x * {'(BLOCK * ROWS)' if rows > 1 else 'BLOCK'}",
        )
    ]
    work = ["real sum = 0;" if rows == 1 else "real sum[ROWS] = {};"]
    inside = f"base >= reach && base + {per_block} <= rows && base + {per_block} + reach <= cols"
    work += [
        *w.note("No diagonal of these rows leaves the matrix."),
        *w.define("bool", "inside", inside),
        *w.when("inside", diagonals(True), diagonals(False)),
    ]
    work += w.repeat_each("i", "ROWS", rows, store)
    body = [
        *base,
        *w.define("long long", "row", "base + threadIdx.x"),
        *w.guarded("row < rows", "row >= rows", work),
    ]
    draft.launches.append(
        f"multiply grid=ceildiv(rows,{'BLOCK*ROWS' if rows > 1 else 'BLOCK'}) block=BLOCK"
    )
    draft.kernels.append(("multiply", "", body))
    return draft


def _dia_vectors(p: Parameters, w: Writing) -> Draft:
    rows = int(p["rows"])
    vector = VECTORS[rows]
    draft = start(
        p,
        Op.SPMV,
        "dia",
        f"{rows} neighbouring rows a thread, whose values on a diagonal are one vector.",
    )
    draft.requires.append("rows + cols < 2147480000")
    streams = p["hint"] == "stream" and rows == 2  # there is no such load of four doubles
    where = f"(const {vector}*)(vals + (size_t)k * pitch + row)"
    load = f"{STREAM}({where})" if streams else f"*{where}"

    def add(i: int) -> Lines:
        product = w.product(f"sum[{i}]", f"val.{FIELDS[i]}", f"x[col + {i}]" if i else "x[col]")
        at = f"col + {i}" if i else "col"
        return w.when(f"{at} >= 0 && {at} < cols", [product])

    body = [
        *w.define("int", "col", "row + offsets[k]"),
        *w.define(vector, "val", load),
        *[line for i in range(rows) for line in add(i)],
    ]
    stores = [
        line
        for i in range(rows)
        for line in (
            w.when(f"row + {i} < rows", [f"y[row + {i}] = sum[{i}];"])
            if i
            else ["y[row] = sum[0];"]
        )
    ]
    draft.launches.append("multiply grid=ceildiv(rows,BLOCK*ROWS) block=BLOCK")
    draft.kernels.append(
        (
            "multiply",
            "",
            [
                *w.define("int", "row", "(blockIdx.x * BLOCK + threadIdx.x) * ROWS"),
                *w.guarded(
                    "row < rows",
                    "row >= rows",
                    [
                        "real sum[ROWS] = {};",
                        *w.each("int", "k", "0", "k < diags", "1", body, int(p["depth"])),
                        *stores,
                    ],
                ),
            ],
        )
    )
    return draft


def _bsr_rows(p: Parameters, w: Writing) -> Draft:
    edge, lanes = int(p["edge"]), int(p["lanes"])
    draft = start(
        p,
        Op.SPMV,
        f"bsr b={edge}",
        "A thread for each row of a block"
        + (f", {lanes} blocks of a block row side by side." if lanes > 1 else "."),
    )
    draft.requires += ["cols < 2147483600", "longest <= 65536"]
    vals = w.fetch("vals", "slot + j", STREAM if p["hint"] == "stream" else "")
    vals0 = w.fetch("vals", "slot", STREAM if p["hint"] == "stream" else "")

    def add(j: str) -> Lines:
        col = "col" if j == "0" else f"col + {j}"
        value = vals0 if j == "0" else vals.replace("slot + j", f"slot + {j}")
        return [w.product("sum", value, f"x[min({col}, cols - 1)]")]

    body = [
        *w.define("int", "col", "col_idx[k] * EDGE"),
        *w.define("size_t", "slot", "((size_t)k * EDGE + row) * EDGE"),
        *w.repeat_each("j", "EDGE", edge, add),
    ]
    loop = [
        *w.define("int", "end", "row_ptr[block_row + 1]"),
        *w.each(
            "int",
            "k",
            "row_ptr[block_row]" + (" + lane" if lanes > 1 else ""),
            "k < end",
            "LANES" if lanes > 1 else "1",
            body,
            int(p["depth"]),
        ),
    ]
    where = [
        *w.define("long long", "unit", w.global_thread("BLOCK")),
        *w.define("int", "row", w.rest("unit", "EDGE", edge)),
    ]
    if lanes == 1:
        inner = ["real sum = 0;", *loop, "y[unit] = sum;"]
        kernel = [
            *where,
            *w.guarded(
                "unit < rows",
                "unit >= rows",
                [*w.define("int", "block_row", w.over("unit", "EDGE", edge)), *inner],
            ),
        ]
        grid = "ceildiv(rows,BLOCK)"
    else:
        kernel = [
            *where,
            *w.define("int", "lane", w.rest(w.over("unit", "EDGE", edge), "LANES", lanes)),
            *w.define("long long", "block_row", "unit / (EDGE * LANES)"),
            "real sum = 0;",
            *w.when("block_row < block_rows", loop),
            *w.note("Lanes that hold the same row are EDGE apart."),
            *w.halve(
                "step",
                "EDGE * LANES / 2",
                [f"sum += __shfl_{w.reduce}_sync({ALL}, sum, step);"],
                "EDGE - 1",
            ),
            *w.when(
                "lane == 0 && block_row * EDGE + row < rows", ["y[block_row * EDGE + row] = sum;"]
            ),
        ]
        grid = "ceildiv(block_rows*EDGE*LANES,BLOCK)"
    draft.launches.append(f"multiply grid={grid} block=BLOCK")
    draft.kernels.append(("multiply", "", kernel))
    return draft


def _bsr_values(p: Parameters, w: Writing) -> Draft:
    edge, wide, lanes = int(p["edge"]), int(p["wide"]), int(p["lanes"])
    team = edge * (edge // wide) * lanes
    draft = start(
        p,
        Op.SPMV,
        f"bsr b={edge}",
        "A team for each block row, a vector of a block's"
        " values to each thread, so that the values are read without a gap.",
    )
    draft.requires += ["cols < 2147483600", "longest <= 65536"]
    draft.constants |= {"PER_ROW": edge // wide, "TEAM": team, "WIDE": wide}
    hint = STREAM if p["hint"] == "stream" and wide < 4 else ""
    if wide == 1:
        add = [w.product("sum", w.fetch("vals", "slot", hint), "x[min(col, cols - 1)]")]
    else:
        where = f"(const {VECTORS[wide]}*)(vals + slot)"
        add = w.define(VECTORS[wide], "val", f"{hint}({where})" if hint else f"*{where}")
        for j in range(wide):
            col = f"col + {j}" if j else "col"
            add = [*add, w.product("sum", f"val.{FIELDS[j]}", f"x[min({col}, cols - 1)]")]
    per_row = edge // wide
    corner = "cell % PER_ROW * WIDE" if wide > 1 else "cell % PER_ROW"
    if per_row == 1:
        corner = "0"
    body = [
        *w.define("int", "col", "col_idx[k] * EDGE" + (f" + {corner}" if corner != "0" else "")),
        *w.define(
            "size_t", "slot", "(size_t)k * (EDGE * EDGE) + cell" + (" * WIDE" if wide > 1 else "")
        ),
        *add,
    ]
    same = f"sum += __shfl_xor_sync({ALL}, sum, step);"
    sums: Lines = []
    if lanes > 1:
        sums += w.halve("step", "TEAM / 2", [same], "EDGE * PER_ROW - 1")
    if per_row > 1:
        sums += w.halve("step", "PER_ROW / 2", [same])
    first = "row_ptr[block_row]"
    if lanes > 1:
        first += " + lane / (EDGE * PER_ROW)"
    mine = "lane < EDGE * PER_ROW && " if lanes > 1 else ""
    if per_row > 1:
        mine += "cell % PER_ROW == 0 && "
    kernel = [
        *w.define("long long", "unit", w.global_thread("BLOCK")),
        *w.define("long long", "block_row", w.over("unit", "TEAM", team)),
        *w.define("int", "lane", w.rest("threadIdx.x", "TEAM", team)),
        *w.define("int", "cell", "lane % (EDGE * PER_ROW)" if lanes > 1 else "lane"),
        "real sum = 0;",
        *w.when(
            "block_row < block_rows",
            [
                *w.define("int", "end", "row_ptr[block_row + 1]"),
                *w.each(
                    "int",
                    "k",
                    first,
                    "k < end",
                    "LANES" if lanes > 1 else "1",
                    body,
                    int(p["depth"]),
                ),
            ],
        ),
        *sums,
        *w.define(
            "long long", "row", "block_row * EDGE + cell" + (" / PER_ROW" if per_row > 1 else "")
        ),
        *w.when(f"{mine}row < rows", ["y[row] = sum;"]),
    ]
    draft.launches.append("multiply grid=ceildiv(block_rows*TEAM,BLOCK) block=BLOCK")
    draft.kernels.append(("multiply", "", kernel))
    return draft


def _within_a_warp(p: Parameters) -> bool:
    return int(p["edge"]) * int(p["lanes"]) <= 32


def _team_fits(p: Parameters) -> bool:
    """Whether a team is within a warp, and each of its threads has a whole vector of a row."""
    edge, wide = int(p["edge"]), int(p["wide"])
    return edge % wide == 0 and edge * (edge // wide) * int(p["lanes"]) <= 32


LIGHT = {"depth": (1, 2, 4), "hint": ("none", "stream")}
STRATEGIES = (
    Strategy(
        "spmv dia rows",
        Op.SPMV,
        {
            "block": BLOCKS,
            "bounds": ("half",),  # also a licence for the registers of a batch
            "rows": (2, 4, 8),
            "depth": (2, 4),
            "hint": ("none", "stream", "keep"),
            "keep": (24,),
        },
        _dia,
        lambda p: int(p["rows"]) * int(p["depth"]) <= 16,
    ),
    Strategy(
        "spmv dia vectors",
        Op.SPMV,
        {"block": BLOCKS, "rows": (2, 4), "depth": (1, 2, 4), "hint": ("none", "stream")},
        _dia_vectors,
        lambda p: p["rows"] == 2 or p["hint"] == "none",
    ),
    Strategy(
        "spmv bsr rows",
        Op.SPMV,
        {"edge": (2, 3, 4, 5, 8, 16), "lanes": (1, 2, 4, 8), "block": BLOCKS, **LIGHT},
        _bsr_rows,
        lambda p: p["lanes"] == 1 or (p["edge"] in (2, 4, 8) and _within_a_warp(p)),
    ),
    Strategy(
        "spmv bsr values",
        Op.SPMV,
        {"edge": (2, 4, 8), "wide": (1, 2, 4), "lanes": (1, 2, 4), "block": BLOCKS, **LIGHT},
        _bsr_values,
        _team_fits,
    ),
)
