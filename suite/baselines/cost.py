"""What a baseline has to do on a matrix, as a few counted terms; a fit gives each term its price.

Time is taken to be a sum: a launch, the bytes of the storage format, gathers of x or of rows of B,
and what waits for the longest row. Which counts make up a term follows from the program's stem and
the values chosen in its name, so a new file with its own way of working may want a line here; one
without is priced as a program on CSR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from suite.matrices.structure import WARP, Structure
from suite.problem import Op

L2 = 40.0  # MB that stay in the cache from one multiplication to the next; an H200 has 60
L1 = 0.2  # MB
LINE = 32  # bytes that one access to the L2 brings
WIDE_X = 20.0  # MB of x from which entries of x are found in the L2 no more

Terms = dict[str, float]
Chosen = Mapping[str, int]

_CHOSEN = re.compile(r"-([a-z_]+)(\d+)")
# A thread reads a row of its own: a warp's gathers at one time are of 32 rows.
_SIDE_BY_SIDE = {
    "bell",
    "csr_packed",
    "csr_scalar",
    "dia",
    "ell",
    "hyb",
    "hyb_pieces",
    "packed",
    "sell",
    "sell16",
}
_NO_GATHERS = {"coltile", "csr_xshared", "dia", "twophase"}  # x lies in shared memory, or in order


def terms(author: str, op: Op, columns: int, itemsize: int, of: Structure) -> Terms:
    """Terms by name. Those of bytes are in MB, others in millions or thousands.

    Args:
        author: Name of a baseline: ``csr_vector-lanes8``.
        op: The operation.
        columns: Dense columns; 1 for SpMV.
        itemsize: Bytes of a value.
        of: The matrix.
    """
    stem = author.partition("-")[0]
    chosen = {name: int(value) for name, value in _CHOSEN.findall(author)}
    make = _spmv if op is Op.SPMV else partial(_spmm, columns=columns)
    return make(stem, chosen, itemsize=itemsize, of=of)


def _spmv(stem: str, chosen: Chosen, itemsize: int, of: Structure) -> Terms:
    rows, cols = of.csr.shape
    bytes_ = _STORED.get(stem, _csr)(of, itemsize, chosen)
    stream = (bytes_ + itemsize * (rows + cols)) / 1e6
    found = {
        "launch": 1.0,
        "stream": stream,
        "beyond_l2": max(stream - L2, 0.0),
        "rows": rows / 1e6,
    }
    if stem not in _NO_GATHERS:
        x = itemsize * cols / 1e6
        items = LINE // itemsize
        new = of.distinct(64, items) / 1e6
        gathers = of.side_by_side(items) if stem in _SIDE_BY_SIDE else of.distinct(1, items)
        found |= {
            "gathers": gathers / 1e6,
            "l1_misses": new * min(1.0, x / L1),
            "l2_misses": new * min(1.0, stream / L2 / 2) * min(1.0, x / WIDE_X),
        }
    return found | _EXTRA.get(stem, _nothing)(of, itemsize, chosen)


def _spmm(stem: str, chosen: Chosen, columns: int, itemsize: int, of: Structure) -> Terms:
    rows, cols = of.csr.shape
    width = columns * itemsize / 1e6  # MB of a row of B or C
    slots = _SLOTS.get(stem, _entries)(of, chosen)
    stored = _STORED.get(stem, _csr)(of, itemsize, chosen) / 1e6
    new = of.distinct(64, 1) * width
    found = {
        "launch": 1.0,
        "stream": stored + (rows + cols) * width,
        "products": slots * width,
        "l1_misses": new,
        "l2_misses": new * max(0.0, 1 - L2 / max(cols * width, 1e-9)),
        "rows": rows / 1e6,
    }
    if stem in ("nnzsplit", "pieces"):
        return found | {"joined": of.beyond(256) * width}
    found["longest"] = _longest(of)
    if stem in ("ell", "ell_warp", "rowsplit_scalar", "rowsplit_vec4", "rowteam"):
        found["idle"] = (of.padded() - of.csr.nnz) * width
    return found


def _entries(of: Structure, chosen: Chosen) -> float:
    return float(of.csr.nnz)


def _longest(of: Structure, lanes: int = 1) -> float:
    return min(of.facts["longest"], 100_000) / lanes / 1e3


def _csr(of: Structure, itemsize: int, chosen: Chosen) -> float:
    return float((4 + itemsize) * of.csr.nnz + 4 * of.csr.shape[0])


def _blocks(of: Structure, edge: int) -> float:
    return of.distinct(edge, edge) * edge**2


def _ell(of: Structure) -> float:
    return float(of.csr.shape[0]) * of.facts["longest"]


def _with_lengths(of: Structure, itemsize: int, chosen: Chosen) -> float:
    return (4 + itemsize) * _ell(of) + 4.0 * float(of.csr.shape[0])


def _hyb_pieces(of: Structure, itemsize: int, chosen: Chosen) -> float:
    width = chosen["width"]
    slots = of.padded(unit=4, width=width) + of.beyond(width)
    return (4 + itemsize) * slots + float(of.csr.shape[0])


def _sell_window(chosen: Chosen) -> int:
    return max(chosen.get("sigma", 1024), WARP)


# Bytes of the storage that a multiplication reads.
_STORED: Mapping[str, Callable[[Structure, int, Chosen], float]] = {
    "bell": lambda of, size, c: _blocks(of, c["edge"]) * (size + 4 / c["edge"] ** 2),
    "bsr": lambda of, size, c: _blocks(of, c["edge"]) * (size + 4 / c["edge"] ** 2),
    "bsr_tile": lambda of, size, c: _blocks(of, c["edge"]) * (size + 4 / c["edge"] ** 2),
    "coltile": lambda of, size, c: (4 + size) * of.csr.nnz,
    "coo": lambda of, size, c: (8 + size) * of.csr.nnz,
    "csr_xshared": lambda of, size, c: (2 + size) * of.csr.nnz + 4 * of.csr.shape[0],
    "dia": lambda of, size, c: size * of.diagonals() * of.csr.shape[0],
    "ell": _with_lengths,
    "ell_warp": _with_lengths,
    "hyb": lambda of, size, c: (8 + size) * of.csr.nnz,
    "hyb_pieces": _hyb_pieces,
    "nnzsplit": lambda of, size, c: (4.25 + size) * of.csr.nnz,
    "packed": lambda of, size, c: (c["bits"] / 8 + size) * _ell(of),
    "sell": lambda of, size, c: (4 + size) * of.padded(_sell_window(c)) + 4 * of.csr.shape[0],
    "sell16": lambda of, size, c: (3 + size) * of.padded(1024) + 4 * of.csr.shape[0],
    # Products are written and read again, with 16 bits that say where.
    "twophase": lambda of, size, c: (6 + 3 * size) * of.csr.nnz,
}

# Products of an SpMM that are not one for each entry.
_SLOTS: Mapping[str, Callable[[Structure, Chosen], float]] = {
    "bsr": lambda of, c: _blocks(of, c["edge"]),
    "bsr_tile": lambda of, c: _blocks(of, c["edge"]),
    "dia": lambda of, c: of.diagonals() * of.csr.shape[0],
}


def _nothing(of: Structure, itemsize: int, chosen: Chosen) -> Terms:
    return {}


def _serial(of: Structure, itemsize: int, chosen: Chosen) -> Terms:
    return {"longest": _longest(of, chosen.get("team", 1))}


def _divergent(of: Structure, itemsize: int, chosen: Chosen) -> Terms:
    return {"longest": _longest(of), "slots": of.padded() / 1e6}


def _vector(of: Structure, itemsize: int, chosen: Chosen) -> Terms:
    lanes = chosen["lanes"]
    return {"steps": of.steps(lanes) / 1e6, "longest": _longest(of, lanes)}


def _tail(of: Structure, itemsize: int, chosen: Chosen) -> Terms:
    width = chosen["width"]
    return {
        "tail": of.beyond(width) / 1e6,
        "long_rows": of.longer(width) / 1e6,
        "second_launch": float(of.facts["longest"] > width),
    }


# What a program waits for beside its bytes and gathers.
_EXTRA: Mapping[str, Callable[[Structure, int, Chosen], Terms]] = {
    "bell": _serial,
    "bsr": _serial,
    "coltile": lambda of, size, c: {"atomics": of.distinct(1, c["tile"] // size) / 1e6},
    "csr_packed": _divergent,
    "csr_scalar": _divergent,
    "csr_vector": _vector,
    "csr_xshared": lambda of, size, c: {
        "longest": _longest(of),
        "staged": of.csr.shape[1] * size / 1e6,
    },
    "dia": lambda of, size, c: {"diagonals": min(of.diagonals(), 100_000) / 1e3},
    "ell": _serial,
    "hyb": lambda of, size, c: {"tail": of.beyond(4) / 1e6},
    "hyb_pieces": _tail,
    "packed": _serial,
    "sell": _serial,
    "sell16": _serial,
}
