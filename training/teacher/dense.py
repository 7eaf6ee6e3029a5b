"""Building blocks of SpMM: vectors of dense columns, where a thread finds its own, and stores."""

from __future__ import annotations

from dataclasses import replace

from training.teacher.parts import ALL
from training.teacher.strategy import Draft, Parameters
from training.teacher.writing import Lines, Writing

FIELDS = "xyzw"
KINDS = {1: "real", 2: "real2", 4: "real4"}
PLACES = ("rows across", "rows down", "slices inside")


def vector_of(p: Parameters) -> str:
    """Type of the columns that a thread takes at once."""
    return KINDS[int(p["vec"])]


def zero_of(p: Parameters) -> str:
    """A zero of that type."""
    return "0" if p["vec"] == 1 else f"{vector_of(p)}()"


def briefly(w: Writing) -> Writing:
    """The same with additions in a function, for programs that add in several places."""
    return replace(w, helper="function")


def add(w: Writing, draft: Draft, p: Parameters, value: str, other: str, to: str = "sum") -> Lines:
    """Adds a value times a vector."""
    width = int(p["vec"])
    if width == 1:
        return [w.product(to, value, other)]
    if w.helper == "function":
        kind = vector_of(p)
        parts = [w.product(f"sum.{f}", "val", f"dense.{f}") for f in FIELDS[:width]]
        head = f"__device__ void axpy(real val, const {kind}& dense, {kind}& sum) {{"
        define(draft, [head, *(f"\t{part}" for part in parts), "}"])
        return [f"axpy({value}, {other}, {to});"]
    return [w.product(f"{to}.{f}", value, f"{other}.{f}") for f in FIELDS[:width]]


def named(
    w: Writing, draft: Draft, p: Parameters, value: str, other: str, to: str = "sum"
) -> Lines:
    """As ``add``, of what is read from memory: read once, whatever adds."""
    if p["vec"] == 1 or w.helper == "function":
        return add(w, draft, p, value, other, to)
    return [
        *w.define("real", "val", value),
        *w.define(vector_of(p), "dense", other),
        *add(w, draft, p, "val", "dense", to),
    ]


def define(draft: Draft, lines: Lines) -> None:
    """Adds a function before the kernels, unless it is there."""
    if lines[0] not in draft.functions:
        draft.functions += lines


def store(w: Writing, draft: Draft, p: Parameters, row: str, value: str = "sum") -> Lines:
    """Writes a vector of a row of C."""
    kind = vector_of(p)
    base = "C" if p["vec"] == 1 else f"(({kind}*)C)"
    where = f"(size_t){row} * length + at"
    if p.get("store") != "stream":
        return [f"{base}[{where}] = {value};"]
    if p["vec"] == 4 and "itemsize == 4" not in draft.requires:
        draft.requires.append("itemsize == 4")  # no such store takes four doubles
    return [f"__stcs({w.at(base, where)}, {value});"]


def add_to(w: Writing, draft: Draft, p: Parameters, row: str, value: str = "sum") -> Lines:
    """Adds a vector to a row of C, atomically."""
    width = int(p["vec"])
    if width == 1:
        return [f"atomicAdd({w.at('C', f'(size_t){row} * length + at')}, {value});"]
    kind = vector_of(p)
    head = f"__device__ void add_to({kind}* to, const {kind}& sum) {{"
    parts = [f"\tatomicAdd(&to->{f}, sum.{f});" for f in FIELDS[:width]]
    define(draft, [head, *parts, "}"])
    return [f"add_to(({kind}*)C + (size_t){row} * length + at, {value});"]


def from_b(p: Parameters, col: str) -> str:
    """A vector of a row of B."""
    return f"B[(size_t){col} * length + at]" if p["vec"] == 1 else f"from[(size_t){col} * length]"


def pointers(w: Writing, p: Parameters) -> Lines:
    """Where the thread's columns of B begin."""
    kind = vector_of(p)
    return [] if p["vec"] == 1 else [f"const {kind}* from = (const {kind}*)B + at;"]


def place(
    w: Writing, draft: Draft, p: Parameters, units: str, unit: str, kind: str = "long long"
) -> tuple[Lines, str]:
    """Which unit of work (row, slice of rows, chunk) and which columns a thread has.

    Args:
        w: Writing.
        draft: Gets what has to hold.
        p: ``vec``, ``lanes``, ``block`` and ``place``: units along x and column slices along y
            (``rows across``), the other way round (``rows down``), or the slices of a unit side by
            side in x (``slices inside``).
        units: How many units there are, in the header's arithmetic.
        unit: The name of the unit's number.
        kind: Its type.

    Returns:
        Definitions of ``length``, ``at`` and the unit, and the geometry of the launch.
    """
    width = int(p["vec"])
    if width > 1:
        draft.requires.append(f"n % {width} == 0")
    lines = w.define("int", "length", f"n / {width}" if width > 1 else "n")
    tall = "(BLOCK / LANES)"
    wide = f"ceildiv(n,{width}*LANES)" if width > 1 else "ceildiv(n,LANES)"
    high = f"ceildiv({units},BLOCK//LANES)"
    if p["place"] == "slices inside":
        lines += w.define("int", "slices_", "(length + LANES - 1) / LANES")
        lines += w.define("int", "at", "blockIdx.x % slices_ * LANES + threadIdx.x")
        lines += w.define(kind, unit, f"({kind})(blockIdx.x / slices_) * {tall} + threadIdx.y")
        grid = f"{high}*{wide}"
    else:
        a, b = ("x", "y") if p["place"] == "rows across" else ("y", "x")
        lines += w.define("int", "at", f"blockIdx.{b} * LANES + threadIdx.x")
        lines += w.define(kind, unit, f"({kind})blockIdx.{a} * {tall} + threadIdx.y")
        grid = f"{high},{wide}" if a == "x" else f"{wide},{high}"
        if a == "y":  # the grid's y ends there
            draft.requires.append(f"{units} <= 65535*(BLOCK//LANES)")
    return lines, f"grid={grid} block=LANES,BLOCK//LANES"


def sum_teams(w: Writing, p: Parameters, teams: str, least: str) -> Lines:
    """Adds up ``sum`` over lanes that are a multiple of ``least`` apart."""
    width = int(p["vec"])
    names = ["sum"] if width == 1 else [f"sum.{f}" for f in FIELDS[:width]]
    moves = [f"{name} += __shfl_{w.reduce}_sync({ALL}, {name}, step);" for name in names]
    return w.halve("step", teams, moves, least)
