"""SpMM on CSR where a team loads entries together, and passes them round."""

from __future__ import annotations

from suite.problem import Op
from training.teacher import dense
from training.teacher.parts import ALL
from training.teacher.spmm_rows import LONGEST, SHAPE, sensible, stream_hint
from training.teacher.spmv_rows import start
from training.teacher.strategy import Draft, Parameters, Strategy
from training.teacher.writing import Lines, Writing


def _team(p: Parameters, w: Writing) -> Draft:
    depth = int(p["depth"])
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "Each thread of a team loads an entry of the row, and shuffles pass"
        " them round: a line of the matrix is read once.",
    )
    draft.requires.append(f"longest <= {LONGEST}")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    hint, kind = stream_hint(p), dense.vector_of(p)

    def read(i: str) -> Lines:
        where = "first" if i == "0" else f"first + {i}"
        source = f"__shfl_sync({ALL}, col, {where}, LANES)"
        return [f"dense[{i}] = {dense.from_b(p, source)};"]

    def add(i: str) -> Lines:
        where = "first" if i == "0" else f"first + {i}"
        value = f"__shfl_sync({ALL}, val, {where}, LANES)"
        if p["vec"] == 1 or w.helper == "function":
            return dense.add(w, draft, p, value, f"dense[{i}]")
        return [
            "{",
            *(
                f"\t{line}"
                for line in [
                    *w.define("real", "part", value),
                    *dense.add(w, draft, p, "part", f"dense[{i}]"),
                ]
            ),
            "}",
        ]

    inner = [
        f"{kind} dense[BATCH];",
        *w.repeat_each("i", "BATCH", depth, read),
        *w.repeat_each("i", "BATCH", depth, add),
    ]
    body = [
        *lines,
        *w.define("bool", "inside", "row < rows && at < length"),
        *w.note("Entries past the end have value 0, and all lanes take part in the shuffles."),
        *w.choose("int", "end", "row < rows", "row_ptr[row + 1]", "0"),
        *(
            [f"const {kind}* from = (const {kind}*)B + (inside ? at : 0);"]
            if p["vec"] != 1
            else w.choose("int", "cell", "at < length", "at", "0")
        ),
        f"{kind} sum = {dense.zero_of(p)};",
        *w.choose("int", "k", "row < rows", "row_ptr[row]", "0")[:0],
        "int k = row < rows ? row_ptr[row] : 0;",
        *w.each(
            "",
            "k",
            "",
            f"__any_sync({ALL}, k < end)",
            "LANES",
            [
                "int col = 0;",
                "real val = 0;",
                *w.when(
                    "k + threadIdx.x < end",
                    [
                        f"col = {w.fetch('col_idx', 'k + threadIdx.x', hint)};",
                        f"val = {w.fetch('vals', 'k + threadIdx.x', hint)};",
                    ],
                ),
                *w.each("int", "first", "0", "first < LANES", "BATCH", inner),
            ],
        ),
        *w.when("inside", dense.store(w, draft, p, "row")),
    ]
    if p["vec"] == 1:
        body = [
            line.replace("* length + at]", "* length + cell]") if "dense[" in line else line
            for line in body
        ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _staged(p: Parameters, w: Writing) -> Draft:
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "A warp a row: 32 entries at a time go through shared memory, from"
        " where all lanes read them.",
    )
    draft.requires.append(f"longest <= {LONGEST}")
    lines, geometry = dense.place(w, draft, p, "rows", "row")
    hint = stream_hint(p)
    add = dense.named(w, draft, p, "part[threadIdx.y][i]", dense.from_b(p, "slot[threadIdx.y][i]"))
    unroll = int(p["depth"])
    own_col = w.fetch("col_idx", "k + threadIdx.x", hint)
    own_val = w.fetch("vals", "k + threadIdx.x", hint)
    body = [
        "__shared__ int slot[BLOCK / LANES][LANES];",
        "__shared__ real part[BLOCK / LANES][LANES];",
        *lines,
        *w.note("A warp has one row, so that all of it returns or none."),
        *w.guarded(
            "row < rows",
            "row >= rows",
            [
                *dense.pointers(w, p),
                *w.define("int", "end", "row_ptr[row + 1]"),
                f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
                *w.each(
                    "int",
                    "k",
                    "row_ptr[row]",
                    "k < end",
                    "LANES",
                    [
                        *w.when(
                            "k + threadIdx.x < end",
                            [
                                f"slot[threadIdx.y][threadIdx.x] = {own_col};",
                                f"part[threadIdx.y][threadIdx.x] = {own_val};",
                            ],
                        ),
                        "__syncwarp();",
                        *w.when(
                            "at < length",
                            w.each("int", "i", "0", "i < min(end - k, LANES)", "1", add, unroll),
                        ),
                        "__syncwarp();",
                    ],
                ),
                *w.when("at < length", dense.store(w, draft, p, "row")),
            ],
        ),
    ]
    draft.launches.append(f"multiply {geometry}")
    draft.kernels.append(("multiply", "", body))
    return draft


def _march(p: Parameters, w: Writing) -> Draft:
    width = int(p["vec"])
    draft = start(
        p,
        Op.SPMM,
        "csr",
        "A few blocks a multiprocessor, each with a share of neighbouring rows, so that rows of B"
        " that they have in common stay in its L1.",
    )
    draft.constants["WAVES"] = int(p["waves"])
    draft.requires.append(f"longest <= {LONGEST}")
    if width > 1:
        draft.requires.append(f"n % {width} == 0")
    hint = stream_hint(p)
    product = dense.named(
        w, draft, p, w.fetch("vals", "k", hint), dense.from_b(p, w.fetch("col_idx", "k", hint))
    )
    row = [
        *w.define("int", "end", "row_ptr[row + 1]"),
        f"{dense.vector_of(p)} sum = {dense.zero_of(p)};",
        *w.each("int", "k", "row_ptr[row]", "k < end", "1", product, int(p["depth"])),
        *dense.store(w, draft, p, "row"),
    ]
    body = [
        *w.define("int", "length", f"n / {width}" if width > 1 else "n"),
        *w.define("int", "slices_", "(length + LANES - 1) / LANES"),
        *w.define("int", "at", "blockIdx.x % slices_ * LANES + threadIdx.x"),
        *w.define("int", "share", "blockIdx.x / slices_"),
        *w.define("int", "high", "gridDim.x / slices_"),
        *w.define("long long", "last", "(long long)rows * (share + 1) / high"),
        *w.guarded(
            "at < length",
            "at >= length",
            [
                *dense.pointers(w, p),
                *w.each(
                    "long long",
                    "row",
                    "(long long)rows * share / high + threadIdx.y",
                    "row < last",
                    "BLOCK / LANES",
                    row,
                ),
            ],
        ),
    ]
    wide = f"ceildiv(n,{width}*LANES)" if width > 1 else "ceildiv(n,LANES)"
    draft.launches.append(
        f"multiply grid={wide}*max(1,sms*WAVES//max(1,{wide})) block=LANES,BLOCK//LANES"
    )
    draft.kernels.append(("multiply", "", body))
    return draft


STRATEGIES = (
    Strategy(
        "spmm csr march",
        Op.SPMM,
        {
            **SHAPE,
            "form": ("loop",),
            "depth": (1, 2, 4, 8),
            "block": (256, 512, 1024),
            "waves": (1, 2, 4),
        },
        _march,
        lambda p: sensible(p) and (p["block"] != 1024 or p["bounds"] == "half"),
    ),
    Strategy(
        "spmm csr team",
        Op.SPMM,
        {**SHAPE, "lanes": (8, 16, 32), "form": ("batch",), "depth": (4, 8), "place": dense.PLACES},
        _team,
        sensible,
    ),
    Strategy(
        "spmm csr staged",
        Op.SPMM,
        {**SHAPE, "lanes": (32,), "form": ("loop",), "depth": (1, 2, 4, 8), "place": dense.PLACES},
        _staged,
        sensible,
    ),
)
