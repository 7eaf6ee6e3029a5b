"""SpMM on diagonals and dense blocks, with vectors of values that serve several rows."""

from __future__ import annotations

from dataclasses import replace

from suite.problem import Op
from training.teacher import dense
from training.teacher.parts import ALL
from training.teacher.spmm_rows import SHAPE, stream_hint
from training.teacher.spmv_packed import VECTORS, read_vector
from training.teacher.spmv_rows import start
from training.teacher.strategy import Choices, Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing, deeper


def _short(w: Writing) -> Writing:
    """The same in few words, for programs that are long as they are."""
    return dense.briefly(
        replace(w, comments="none", signature="wrapped", repeat="pragma", add="plus")
    )


def _window(p: Parameters, w: Writing) -> Draft:
    rows = int(p["rows"])
    w = _short(w)
    draft = start(
        p,
        Op.SPMM,
        "dia",
        "Along neighbouring diagonals a window of rows of B slides through registers.",
    )
    draft.requires.append("rows + cols < 2147480000")
    draft.arrays.append(("derived", "runs", "int", "diags"))
    draft.prepares.append("find_runs grid=diags block=1")
    find = [
        *w.define("int", "first", "blockIdx.x"),
        "int next = first + 1;",
        "while (next < diags && offsets[next] - offsets[first] == next - first) ++next;",
        "runs[first] = next - first;",
    ]
    lines, geometry = dense.place(w, draft, p, "ceildiv(rows,ROWS)", "unit", "int")
    kind, vector = dense.vector_of(p), VECTORS[rows]

    inside = "(size_t)min(max(row, 0), cols - 1) * length"
    source = f"B[{inside} + at]" if p["vec"] == 1 else f"from[{inside}]"

    def below(i: str) -> Lines:
        return [f"dense[{i}] = below({'col' if i == '0' else f'col + {i}'});"]

    where = "vals + (size_t)(k + i) * pitch + row"
    step = [
        f"const auto below = [&](int row) {{ return {source}; }};",
        "const auto slide = [&](int k, int col, int count) {",
        *deeper(
            [
                f"{vector} val[ROWS];",
                f"{kind} next[ROWS];",
                *w.unrolled(
                    "i",
                    "ROWS",
                    0,
                    lambda _: w.when(
                        "i < count",
                        [
                            "next[i] = below(col + i + ROWS - 1);",
                            f"val[i] = {read_vector(vector, where, stream_hint(p))};",
                        ],
                    ),
                ),
                *w.unrolled(
                    "i",
                    "ROWS",
                    0,
                    lambda _: w.when(
                        "i < count",
                        [
                            "dense[(i + ROWS - 1) % ROWS] = next[i];",
                            *w.unrolled(
                                "j",
                                "ROWS",
                                0,
                                lambda j: dense.add(
                                    w,
                                    draft,
                                    p,
                                    f"((const real*)&val[i])[{j}]",
                                    f"dense[(i + {j}) % ROWS]",
                                    f"sum[{j}]",
                                ),
                            ),
                        ],
                    ),
                ),
            ]
        ),
        "};",
    ]

    def put(i: str) -> Lines:
        row = "row" if i == "0" else f"(row + {i})"
        return w.when(f"{row.strip('()')} < rows", dense.store(w, draft, p, row, f"sum[{i}]"))

    body = [
        *lines,
        *w.define("int", "row", "unit * ROWS"),
        *w.guarded(
            "row < rows && at < length",
            "row >= rows || at >= length",
            [
                *dense.pointers(w, p),
                f"{kind} sum[ROWS] = {{}};",
                f"{kind} dense[ROWS];",
                *step,
                *w.each(
                    "int",
                    "first",
                    "0",
                    "first < diags",
                    "runs[first]",
                    [
                        *w.define("int", "end", "first + runs[first]"),
                        "int k = first, col = row + offsets[first];",
                        *w.repeat_each("i", "ROWS - 1", rows - 1, below),
                        "for (; k + ROWS <= end; k += ROWS, col += ROWS) slide(k, col, ROWS);",
                        "#pragma unroll",
                        "for (int i = 1; i < ROWS; ++i)",
                        "\tif (end - k == i) slide(k, col, i);",
                    ],
                ),
                *w.repeat_each("i", "ROWS", rows, put),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels += [("find_runs", "", find), ("multiply", "", body)]
    return draft


def _tile(p: Parameters, w: Writing) -> Draft:
    edge, lanes, batch = int(p["edge"]), int(p["lanes"]), int(p["depth"])
    w = _short(w)
    pieces = -(-batch * edge * edge // 4 // lanes)
    draft = start(
        p,
        Op.SPMM,
        f"bsr b={edge}",
        f"A team for each block row. Values pass through shared memory, whence every thread reads"
        f" vectors; rows of B of {batch} blocks are in registers, the next values on their way.",
    )
    draft.requires += ["cols < 2147483600", "longest <= 65536"]
    draft.constants |= {"BATCH": batch, "PIECES": pieces, "AREA": edge * edge // 4}
    lines, geometry = dense.place(w, draft, p, "block_rows", "block_row")
    kind, per = dense.vector_of(p), "AREA"

    def col_of(b: str, k: str) -> Lines:
        return [f"col[{b}] = {k} < end ? col_idx[{k}] : 0;"]

    def fetch(i: str) -> Lines:
        return [
            *w.define("int", "slot", f"threadIdx.x + {i} * LANES" if i != "0" else "threadIdx.x"),
            f"val[{i}] = slot < (end - k) * {per} ?"
            f" ((const real4*)vals)[(size_t)k * {per} + slot] : real4();",
        ]

    def stage(i: str) -> Lines:
        slot = f"threadIdx.x + {i} * LANES" if i != "0" else "threadIdx.x"
        line = f"part[threadIdx.y][{slot}] = val[{i}];"
        exact = pieces * lanes == batch * edge * edge // 4
        return [line] if exact else w.when(f"{slot} < BATCH * {per}", [line])

    def row_of_b(j: str) -> Lines:
        block = "col[0] * EDGE + j" if batch == 1 else "col[j / EDGE] * EDGE + j % EDGE"
        where = f"(size_t)min({block}, cols - 1) * length"
        return [f"dense[j] = {f'B[{where} + spot]' if p['vec'] == 1 else f'from[{where}]'};"]

    spot = "(i * EDGE + j) / 4"
    if batch > 1:
        spot = f"j / EDGE * {per} + (i * EDGE + j % EDGE) / 4"
    use = [
        *w.define("real4", "four", f"part[threadIdx.y][{spot}]"),
        *w.unrolled(
            "q",
            "4",
            0,
            lambda _: dense.add(w, draft, p, "((const real*)&four)[q]", "dense[j + q]", "sum[i]"),
        ),
    ]

    def put(i: str) -> Lines:
        row = "row" if i == "0" else f"(row + {i})"
        return w.when(
            f"inside && {row.strip('()')} < rows", dense.store(w, draft, p, row, f"sum[{i}]")
        )

    body = [
        f"__shared__ real4 part[BLOCK / LANES][BATCH * {per}];",
        *lines,
        *w.define("bool", "inside", "at < length"),
        *w.define("int", "spot", "inside ? at : 0"),
        *([f"const {kind}* from = (const {kind}*)B + spot;"] if p["vec"] != 1 else []),
        "int k = 0, end = 0;",
        *w.when(
            "block_row < block_rows",
            ["k = row_ptr[block_row];", "end = row_ptr[block_row + 1];"],
        ),
        *w.define("int", "most", f"__reduce_max_sync({ALL}, end - k)"),
        f"{kind} sum[EDGE] = {{}};",
        "int col[BATCH];",
        "real4 val[PIECES];",
        "const auto ask = [&]() {",
        *deeper(
            [
                *w.unrolled(
                    "i", "BATCH", batch, lambda i: col_of(i, "k" if i == "0" else f"k + {i}")
                ),
                *w.unrolled("i", "PIECES", pieces, fetch),
            ]
        ),
        "};",
        "ask();",
        *w.each(
            "int",
            "done",
            "0",
            "done < most",
            "BATCH",
            [
                *w.unrolled("i", "PIECES", pieces, stage),
                f"{kind} dense[BATCH * EDGE];",
                *w.unrolled("j", "BATCH * EDGE", 0, row_of_b),
                "k += BATCH;",
                "ask();",
                "__syncwarp();",
                *w.unrolled(
                    "i",
                    "EDGE",
                    0,
                    lambda _: [
                        "#pragma unroll",
                        "for (int j = 0; j < BATCH * EDGE; j += 4) {",
                        *deeper(use),
                        "}",
                    ],
                ),
                "__syncwarp();",
            ],
        ),
        *w.define("long long", "row", "block_row * EDGE"),
        *w.repeat_each("i", "EDGE", edge, put),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


BLOCKS: Choices = {**SHAPE, "place": ("rows across", "slices inside")}
STRATEGIES = (
    Strategy(
        "spmm dia window",
        Op.SPMM,
        {**BLOCKS, "rows": (2, 4)},
        _window,
    ),
    Strategy(
        "spmm bsr tile",
        Op.SPMM,
        {
            **BLOCKS,
            "bounds": ("none", "quarter"),
            "lanes": (8, 32),
            "block": (128, 256),
            "edge": (4, 8),
            "depth": (1, 2),
        },
        _tile,
        lambda p: int(p["edge"]) * int(p["depth"]) == 8,
    ),
)
