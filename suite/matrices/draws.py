"""One random matrix of a family: the distributions from which training and validation are drawn.

Sizes come in as a wanted number of entries, so that every family is met at every scale. A draw
decides the arguments of a generator and builds nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from scipy import sparse

from suite.matrices import graphs, meshes, synthetic
from suite.matrices.base import MatrixSpec
from suite.matrices.recipes import Argument, recipe, short_digest, structure_key

Draw = tuple[Callable[..., sparse.csr_array], dict[str, Argument]]
_WALKED_ENTRIES = 400_000  # as many as networkx makes in about a second
_ELASTIC_ENTRIES = 1_000_000  # as many as scikit-fem assembles in about three


def draw(family: str, entries: float, seed: int) -> MatrixSpec:
    """A spec of ``family`` with about ``entries`` entries.

    Args:
        family: A key of ``DRAWS``.
        entries: Wanted nonzeros, at least 100; met within a factor of two where the family allows.
        seed: Decides the other parameters and the matrix's own seed.
    """
    make, arguments = DRAWS[family](np.random.default_rng(seed), entries)
    if _takes_seed(make):
        arguments["seed"] = seed
    unnamed = recipe("", family, make, **arguments)
    name = f"{family}-{short_digest(structure_key(unnamed))}"
    return recipe(name, family, make, **arguments)


def may_be_drawn(name: str) -> bool:
    """Whether ``draw`` gives names like this one."""
    family, _, digest = name.rpartition("-")
    return family in DRAWS and re.fullmatch("[0-9a-f]{8}", digest) is not None


@cache
def _takes_seed(make: Callable[..., sparse.csr_array]) -> bool:
    return "seed" in inspect.signature(make).parameters


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    """A number between the two, uniform in the logarithm."""
    return float(np.exp(rng.uniform(np.log(low), np.log(max(high, low)))))


def _int(rng: np.random.Generator, low: float, high: float) -> int:
    return round(_log(rng, low, high))


def _rows(entries: float, per_row: float) -> int:
    return max(int(entries / per_row), 16)


def _diagonal(rng: np.random.Generator, entries: float) -> Draw:
    count, mirrored = int(rng.integers(1, 20)), rng.random() < 0.6
    rows = _rows(entries, 1 + count * (2 if mirrored else 1))
    far = {_int(rng, 2, rows / 2) for _ in range(count)}  # the gap at 1 keeps it apart from a band
    below = {-k for k in far if mirrored or rng.random() < 0.5}
    above = far if mirrored else {k for k in far if -k not in below}
    return synthetic.diagonals, {"rows": rows, "offsets": tuple(sorted(below | {0} | above))}


def _band(rng: np.random.Generator, entries: float) -> Draw:
    per_row = _int(rng, 3, 48)
    rows = max(_rows(entries, per_row), 4 * per_row)
    if rng.random() < 0.4:
        return synthetic.band, {"rows": rows, "half_width": per_row // 2}
    half_width = _int(rng, per_row, rows / 3)
    return synthetic.scattered_band, {"rows": rows, "half_width": half_width, "per_row": per_row}


def _grid(rng: np.random.Generator, entries: float) -> dict[str, Argument]:
    dims, reach = int(rng.integers(2, 4)), str(rng.choice(["star", "box"]))
    points = entries / (2 * dims + 1 if reach == "star" else 3**dims)
    edge = max(points ** (1 / dims), 4)
    stretch = rng.uniform(-0.8, 0.8, dims)
    shape = [max(round(edge * factor), 3) for factor in np.exp(stretch - stretch.mean()).tolist()]
    shape[0] += shape[0] == shape[-1]  # squares and cubes are for the test set
    return {"shape": tuple(shape), "reach": reach}


def _stencil(rng: np.random.Generator, entries: float) -> Draw:
    return synthetic.stencil, _grid(rng, entries)


def _shuffled(rng: np.random.Generator, entries: float) -> Draw:
    return synthetic.shuffled_stencil, _grid(rng, entries)


def _uniform(rng: np.random.Generator, entries: float) -> Draw:
    per_row = _int(rng, 2, min(300, (entries / 3) ** 0.5))
    return synthetic.uniform, {"rows": _rows(entries, per_row), "per_row": per_row}


def _rectangular(rng: np.random.Generator, entries: float) -> Draw:
    ratio = _log(rng, 3, 200)
    if rng.random() < 0.5:
        per_row = _int(rng, 2, 24)
        rows = _rows(entries, per_row)
        return synthetic.uniform, {
            "rows": rows,
            "cols": max(int(rows / ratio), per_row),
            "per_row": per_row,
        }
    per_row = _int(rng, 8, max(8, (entries / 2) ** 0.5))
    rows = _rows(entries, per_row)
    return synthetic.uniform, {
        "rows": rows,
        "cols": int(ratio * max(rows, per_row)),
        "per_row": per_row,
    }


def _power_law(rng: np.random.Generator, entries: float) -> Draw:
    rows = _rows(entries, _log(rng, 3, 40))
    exponent = round(float(rng.uniform(0.3, 0.9)), 3)
    return synthetic.power_law, {"rows": rows, "nnz": int(entries), "exponent": exponent}


def _rmat(rng: np.random.Generator, entries: float) -> Draw:
    scale = max(round(np.log2(entries / _log(rng, 3, 40))), 4)
    return synthetic.rmat, {"scale": scale, "edges": int(entries)}


def _small_world(rng: np.random.Generator, entries: float) -> Draw:
    neighbours = 2 * _int(rng, 1, 16)
    rewired = round(_log(rng, 0.01, 0.5), 3)
    rows = max(_rows(entries, neighbours), 2 * neighbours)
    return synthetic.small_world, {"rows": rows, "neighbours": neighbours, "rewired": rewired}


def _block(rng: np.random.Generator, entries: float) -> Draw:
    edge, per_row = int(rng.choice([2, 3, 4, 5, 6, 8, 12, 16])), _int(rng, 1, 12)
    block_rows = max(int(entries / (edge * edge * per_row)), 2 * per_row)
    reach = _int(rng, per_row, block_rows) if rng.random() < 0.5 else 0
    return synthetic.blocks, {
        "block_rows": block_rows,
        "edge": edge,
        "per_row": per_row,
        "reach": reach,
    }


def _arrow(rng: np.random.Generator, entries: float) -> Draw:
    width = int(rng.integers(1, 7))
    return synthetic.arrow, {"rows": _rows(entries, 2 * width + 1), "width": width}


def _dense_rows(rng: np.random.Generator, entries: float) -> Draw:
    per_row, dense, share = _int(rng, 1, 16), _int(rng, 1, 24), round(_log(rng, 0.05, 0.9), 3)
    rows = max(_rows(entries, per_row + dense * share), 4 * dense)
    return synthetic.dense_rows, {"rows": rows, "per_row": per_row, "dense": dense, "share": share}


def _mostly_empty(rng: np.random.Generator, entries: float) -> Draw:
    filled, longest = round(_log(rng, 0.02, 0.4), 4), _int(rng, 1, 12)
    rows = min(_rows(entries, filled * (longest + 1) / 2), 1 << 23)
    return synthetic.mostly_empty, {"rows": rows, "filled": filled, "longest": longest}


# Entries per cell (divided shapes) or at one refinement (refined ones), order 1, scalar; by trying.
_DENSITY = {"square-tri": 7.0, "square-quad": 9.0, "cube-tet": 15.0, "cube-hex": 27.0}
_COARSE = {"disc-tri": (14.0, 4), "lshape-tri": (22.0, 4), "ball-tet": (21.0, 8)}


def _fem(rng: np.random.Generator, entries: float) -> Draw:
    shape, order = str(rng.choice([*_DENSITY, *_COARSE])), int(rng.integers(1, 3))
    solid = shape.startswith(("cube", "ball"))
    elastic = bool(rng.random() < 0.4)
    wanted = min(entries, _ELASTIC_ENTRIES if elastic else 4 * _ELASTIC_ENTRIES)
    if elastic:
        wanted /= 9 if solid else 4
    if order == 2:
        wanted /= 14 if solid else 6
    if shape in _DENSITY:
        size = max(round((wanted / _DENSITY[shape]) ** (1 / 3 if solid else 1 / 2)), 2)
    else:
        start, growth = _COARSE[shape]
        size = max(int(np.log(max(wanted / start, 1)) / np.log(growth)), 1)
    return meshes.fem, {"shape": shape, "size": size, "order": order, "elastic": elastic}


def _graph(rng: np.random.Generator, entries: float) -> Draw:
    walked = min(entries, _WALKED_ENTRIES)
    edges = _int(rng, 2, 10)
    nodes = max(_rows(walked, 2 * edges), 4 * edges)
    match int(rng.integers(5)):
        case 0:
            return graphs.preferential, {"nodes": nodes, "edges": edges}
        case 1:
            triangles = round(float(rng.uniform(0.2, 0.9)), 2)
            return graphs.clustered, {"nodes": nodes, "edges": edges, "triangles": triangles}
        case 2:
            return graphs.geometric, {"nodes": nodes, "neighbours": 2 * edges}
        case 3:
            size = _int(rng, 4, 40)
            groups = max(int(walked / size**2), 2)
            return graphs.communities, {"groups": groups, "size": size, "outside": 0.1}
    width = _int(rng, 8, max(8, (entries / 3.3) ** 0.5))
    kept = round(float(rng.uniform(0.6, 0.95)), 2)
    return graphs.road, {"width": width, "height": max(int(entries / 3.3 / width), 4), "kept": kept}


DRAWS: Mapping[str, Callable[[np.random.Generator, float], Draw]] = {
    "diagonal": _diagonal,
    "band": _band,
    "stencil": _stencil,
    "shuffled-stencil": _shuffled,
    "uniform": _uniform,
    "rectangular": _rectangular,
    "power-law": _power_law,
    "rmat": _rmat,
    "small-world": _small_world,
    "block": _block,
    "arrow": _arrow,
    "dense-rows": _dense_rows,
    "empty-rows": _mostly_empty,
    "fem": _fem,
    "graph": _graph,
}
