"""SpMM on diagonals, dense blocks and coordinates."""

from __future__ import annotations

from dataclasses import replace

from suite.problem import Op
from training.teacher import dense
from training.teacher.spmm_rows import SHAPE, stream_hint
from training.teacher.spmv_balanced import search
from training.teacher.spmv_packed import FIELDS, VECTORS, read_vector
from training.teacher.spmv_rows import start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing, deeper


def _clamped(p: Parameters, col: str) -> str:
    """A row of B that is there; one outside the matrix meets only values of 0."""
    inside = f"min(max({col}, 0), cols - 1)"
    return (
        f"B[(size_t){inside} * length + at]"
        if p["vec"] == 1
        else f"from[(size_t){inside} * length]"
    )


def _dia(p: Parameters, w: Writing) -> Draft:
    rows = int(p["rows"])
    w = dense.briefly(w)
    draft = start(p, Op.SPMM, "dia", f"{rows} neighbouring rows a thread, diagonal by diagonal.")
    draft.requires.append("rows + cols < 2147480000 and (cols > 0)")
    units = "ceildiv(rows,ROWS)" if rows > 1 else "rows"
    lines, geometry = dense.place(w, draft, p, units, "unit", "int")
    kind = dense.vector_of(p)

    def shifted(what: str, i: str) -> str:
        return what if i == "0" else f"{what} + {i}"

    def fresh(i: str) -> Lines:
        return [f"dense[{i}] = {_clamped(p, shifted('col', i))};"]

    def add(i: str) -> Lines:
        value = w.fetch("vals", shifted("slot", i), stream_hint(p))
        return dense.add(w, draft, p, value, f"dense[{i}]", f"sum[{i}]")

    inner = [f"{kind} dense[ROWS];", *w.repeat_each("i", "ROWS", rows, fresh)]

    def put(i: str) -> Lines:
        lines = dense.store(
            w, draft, p, f"({shifted('row', i)})" if i != "0" else "row", f"sum[{i}]"
        )
        return w.when(f"{shifted('row', i)} < rows", lines)

    body = [
        *lines,
        *w.define("int", "row", "unit * ROWS" if rows > 1 else "unit"),
        *w.guarded(
            "row < rows && at < length",
            "row >= rows || at >= length",
            [
                *dense.pointers(w, p),
                f"{kind} sum[ROWS] = {{}};",
                *w.each(
                    "int",
                    "k",
                    "0",
                    "k < diags",
                    "1",
                    [
                        *w.define("int", "col", "row + offsets[k]"),
                        *w.define("size_t", "slot", "(size_t)k * pitch + row"),
                        *inner,
                        *w.repeat_each("i", "ROWS", rows, add),
                    ],
                    int(p["depth"]),
                ),
                *w.repeat_each("i", "ROWS", rows, put),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _bsr(p: Parameters, w: Writing) -> Draft:
    edge = int(p["edge"])
    w = dense.briefly(w)
    draft = start(
        p,
        Op.SPMM,
        f"bsr b={edge}",
        f"A block row a thread: a row of B is loaded once for {edge} rows of the matrix.",
    )
    draft.requires += ["cols < 2147483600", "longest <= 65536"]
    lines, geometry = dense.place(w, draft, p, "block_rows", "block_row")
    kind = dense.vector_of(p)

    def below(j: str) -> Lines:
        col = "col" if j == "0" else f"col + {j}"
        load = _clamped(p, col).replace(f"min(max({col}, 0), ", f"min({col}, ")
        return [f"dense[{j}] = {load};"]

    wide = {2: 2, 4: 4, 8: 4}.get(edge, 1)
    hint = stream_hint(p) if wide < 4 else ""
    vector = VECTORS[wide]

    def row_of_block(i: str) -> Lines:
        row = "" if i == "0" else f" + {i} * EDGE"
        if wide == 1:
            return w.unrolled(
                "j",
                "EDGE",
                edge,
                lambda j: dense.add(
                    w,
                    draft,
                    p,
                    w.fetch("vals", f"slot{row}{'' if j == '0' else f' + {j}'}", hint),
                    f"dense[{j}]",
                    f"sum[{i}]",
                ),
            )

        def piece(at: str) -> Lines:
            more = row if at == "0" else f"{row} + {at}"
            return [
                *w.define(vector, "val", read_vector(vector, f"vals + slot{more}", hint)),
                *[
                    line
                    for n, f in enumerate(FIELDS[:wide])
                    for line in dense.add(
                        w,
                        draft,
                        p,
                        f"val.{f}",
                        f"dense[{int(at) + n if at.isdigit() else f'{at} + {n}'}]",
                        f"sum[{i}]",
                    )
                ],
            ]

        if edge == wide:
            return piece("0")
        return [
            "#pragma unroll",
            f"for (int j = 0; j < EDGE; j += {wide}) {{",
            *deeper(piece("j")),
            "}",
        ]

    def put(i: str) -> Lines:
        row = "row" if i == "0" else f"(row + {i})"
        return w.when(f"{row.strip('()')} < rows", dense.store(w, draft, p, row, f"sum[{i}]"))

    body = [
        *lines,
        *w.guarded(
            "block_row < block_rows && at < length",
            "block_row >= block_rows || at >= length",
            [
                *dense.pointers(w, p),
                f"{kind} sum[EDGE] = {{}};",
                *w.define("int", "end", "row_ptr[block_row + 1]"),
                *w.each(
                    "int",
                    "k",
                    "row_ptr[block_row]",
                    "k < end",
                    "1",
                    [
                        *w.define("int", "col", "col_idx[k] * EDGE"),
                        *w.define("size_t", "slot", "(size_t)k * (EDGE * EDGE)"),
                        f"{kind} dense[EDGE];",
                        *w.unrolled("j", "EDGE", edge, below),
                        *w.unrolled("i", "EDGE", edge, row_of_block),
                    ],
                    int(p["depth"]),
                ),
                *w.define("long long", "row", "block_row * EDGE"),
                *w.repeat_each("i", "EDGE", edge, put),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _runs(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMM,
        "coo",
        "Equally many entries for each team wherever rows begin; each run of"
        " equal rows is added to C once.",
    )
    draft.init_zero = True
    lines, geometry = dense.place(w, draft, p, "ceildiv(nnz,ITEMS)", "unit")
    hint = stream_hint(p)
    flush = [*dense.add_to(w, draft, p, "run_row"), "run_row = row;", f"sum = {dense.zero_of(p)};"]
    product = dense.named(
        w, draft, p, w.fetch("vals", "k", hint), dense.from_b(p, w.fetch("col_idx", "k", hint))
    )
    body = [
        *lines,
        *w.define("long long", "first", "unit * ITEMS"),
        *w.guarded(
            "first < nnz && at < length",
            "first >= nnz || at >= length",
            [
                *dense.pointers(w, p),
                *w.define("int", "end", "(int)min(first + ITEMS, (long long)nnz)"),
                "int run_row = row_idx[first];",
                f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
                *w.each(
                    "int",
                    "k",
                    "first",
                    "k < end",
                    "1",
                    [
                        *w.define("int", "row", w.fetch("row_idx", "k", hint)),
                        *w.when("row != run_row", flush),
                        *product,
                    ],
                    int(p["depth"]),
                ),
                *dense.add_to(w, draft, p, "run_row"),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _long(p: Parameters, w: Writing) -> Draft:
    w = dense.briefly(replace(w, comments="none", signature="wrapped", add="plus"))
    lanes, width = int(p["lanes"]), int(p["vec"])
    draft = start(
        p,
        Op.SPMM,
        f"csr_pieces PIECE={p['piece']}",
        "A team for each row of up to PIECE entries, a warp for each part of a longer one.",
    )
    draft.functions += search(w)
    hint = stream_hint(p)
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    product = dense.named(
        w, draft, p, w.fetch("vals", "k", hint), dense.from_b(p, w.fetch("col_idx", "k", hint))
    )
    zero = f"{dense.vector_of(p)} sum = {dense.zero_of(p)};"
    one = [
        *lines,
        *w.guarded(
            "row < rows && at < length",
            "row >= rows || at >= length",
            [
                *dense.pointers(w, p),
                *w.define("int", "begin", "row_ptr[row]"),
                *w.define("int", "end", "row_ptr[row + 1]"),
                zero,
                *w.when(
                    "end - begin <= PIECE",
                    w.each("int", "k", "begin", "k < end", "1", product, int(p["depth"])),
                ),
                *dense.store(w, draft, p, "row"),
            ],
        ),
    ]
    team = w.over("threadIdx.x", "LANES", lanes)
    part = [
        *w.define("int", "first", "parts[3 * unit + 1]"),
        *w.define("int", "end", "first + parts[3 * unit + 2]"),
        zero,
        *w.when(
            "at < length",
            w.each(
                "int",
                "k",
                f"first + {team}" if lanes < 32 else "first",
                "k < end",
                "32 / LANES" if lanes < 32 else "1",
                product,
                8,
            ),
        ),
        *(dense.sum_teams(w, p, "16", "LANES - 1") if lanes < 32 else []),
        *w.when(
            "threadIdx.x < LANES && at < length" if lanes < 32 else "at < length",
            [
                *w.define("int", "row", "row_of(first, rows, row_ptr)"),
                *dense.add_to(w, draft, p, "row"),
            ],
        ),
    ]
    long = [
        *w.define("int", "length", f"n / {width}" if width > 1 else "n"),
        *w.define("int", "at", f"blockIdx.y * LANES + {w.rest('threadIdx.x', 'LANES', lanes)}"),
        *dense.pointers(w, p),
        *w.each(
            "int",
            "unit",
            "blockIdx.x * 8 + threadIdx.y",
            "unit < counts[0]",
            "gridDim.x * 8",
            part,
        ),
    ]
    wide = f"ceildiv(n,{width}*LANES)" if width > 1 else "ceildiv(n,LANES)"
    draft.launches += [
        f"multiply {geometry}",
        f"add_long grid=(longest>PIECE)*min(ceildiv(max_parts,8),8*sms),{wide} block=32,8",
    ]
    draft.kernels += [("multiply", "", one), ("add_long", "", long)]
    return draft


def _fits(p: Parameters) -> bool:
    """Whether sums stay in registers and teams in a block."""
    held = int(p.get("rows", p.get("edge", 1))) * int(p["vec"])
    return (
        held <= 32 and (held <= 8 or int(p["block"]) <= 256) and int(p["lanes"]) <= int(p["block"])
    )


PLACES = ("rows across", "slices inside")
STRATEGIES = (
    Strategy(
        "spmm dia",
        Op.SPMM,
        {**SHAPE, "rows": (1, 2, 4, 8), "depth": (1, 2, 4), "place": PLACES},
        _dia,
        _fits,
    ),
    Strategy(
        "spmm bsr",
        Op.SPMM,
        {
            **SHAPE,
            "bounds": ("half", "quarter"),
            "lanes": (8, 32),
            "edge": (2, 3),
            "depth": (1, 2),
            "place": PLACES,
        },
        _bsr,
        _fits,
    ),
    Strategy(
        "spmm coo runs",
        Op.SPMM,
        {
            **SHAPE,
            "store": ("plain",),
            "items": (8, 16, 32, 64, 128),
            "depth": (1, 2, 4),
            "place": PLACES,
        },
        _runs,
        _fits,
    ),
    Strategy(
        "spmm csr long",
        Op.SPMM,
        {
            **SHAPE,
            "store": ("plain",),
            "piece": (64, 256, 1024),
            "depth": (2, 4, 8),
            "place": ("rows across",),
        },
        _long,
        _fits,
    ),
)
