"""Pictures of matrices: where their entries are, as shades of how many fall on each pixel.

Matrices are built again from the recipes in their rows. Only what the suite generates and small
enough is built; a file is never looked for, since a campaign from elsewhere names paths of there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Drawing
from scipy import sparse

from reports.document import Plot
from reports.text import several
from reports.theme import INK, WIDTH
from suite.matrices.base import MatrixError, MatrixSpec
from suite.matrices.sets import SETS
from suite.record import Row

ENTRIES = 25_000_000  # of a matrix that is built for its picture
SECONDS = 10.0  # of this process, after which no further matrix is begun
_SLOW = ("suite.matrices.graphs.geometric", "suite.matrices.graphs.preferential")  # node by node
PIXELS = 96
_CONTRAST = 30.0  # between the palest and the usual pixel
ACROSS = 8


def gallery(matrices: Mapping[str, Row]) -> Plot | None:
    """A small matrix of each family; None where none can be built."""
    pictures = _built(sample(list(matrices.values())))
    if not pictures:
        return None
    rows = -(-len(pictures) // ACROSS)
    drawing = Drawing(figsize=(WIDTH, 0.98 * rows), layout="constrained")
    grid = drawing.subplots(rows, ACROSS, squeeze=False).ravel()
    for axis, (name, matrix) in zip(grid, pictures.items(), strict=False):
        draw(axis, matrix)
        axis.set_title(matrices[name].family, fontsize=7, pad=2)
    for axis in grid[len(pictures) :]:
        axis.set_axis_off()
    families = {row.family for row in matrices.values()}
    left = sorted(families - {matrices[name].family for name in pictures})
    missing = (
        f" Not drawn, for their size or because they are files: {', '.join(left)}." if left else ""
    )
    return Plot(
        "gallery",
        "Where the entries are: a small matrix of each family, darker where more entries fall"
        f" on a pixel ({several(len(matrices), 'matrix', 'matrices')} in all).{missing}",
        drawing,
    )


def _built(rows: Sequence[Row]) -> dict[str, sparse.csr_array]:
    """What can be built within ``SECONDS``, the cheap ones first, in the given order."""
    found: dict[str, sparse.csr_array] = {}
    start = time.process_time()
    for row in sorted(rows, key=_cost):
        if time.process_time() - start < SECONDS and (matrix := build(row)) is not None:
            found[row.matrix] = matrix
    return {row.matrix: found[row.matrix] for row in rows if row.matrix in found}


def sample(rows: Sequence[Row]) -> list[Row]:
    """The matrix of each family that is built soonest, if it is not too large."""
    soonest: dict[str, Row] = {}
    for row in rows:
        held = soonest.get(row.family)
        if row.nnz is not None and (held is None or _cost(row) < _cost(held)):
            soonest[row.family] = row
    return [row for row in soonest.values() if (row.nnz or 0) <= ENTRIES]


def _cost(row: Row) -> tuple[bool, int]:
    """What sorts matrices by how long building them takes."""
    return row.matrix_source.startswith(_SLOW), row.nnz or 0


def build(row: Row) -> sparse.csr_array | None:
    """The row's matrix, from the recipe of that name and source; None where there is none."""
    spec = _recipe(row.matrix, row.matrix_source)
    if spec is None or not row.nnz or row.nnz > ENTRIES:
        return None
    try:
        return spec.build().csr
    except (MatrixError, OSError):  # a mesh whose package is not the same any more
        return None


def draw(axis: Any, matrix: sparse.csr_array, pixels: int = PIXELS) -> None:
    """Draws a matrix, the first row on top."""
    high, wide = matrix.shape
    counts = density(matrix, min(pixels, high), min(pixels, wide))
    shown = np.ma.masked_equal(counts, 0)
    usual, covered = float(np.median(counts[counts > 0])), float((counts > 0).mean())
    darkest = usual * _CONTRAST**covered  # lines are black; what covers everything is grey
    axis.imshow(
        shown,
        cmap="Greys",
        norm=LogNorm(vmin=usual / _CONTRAST, vmax=darkest, clip=True),
        interpolation="nearest",
        aspect="auto",
    )
    axis.set_box_aspect(1)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_color(INK)
        spine.set_linewidth(0.5)


def density(matrix: sparse.csr_array, high: int, wide: int) -> np.ndarray:
    """How many entries fall on each of high × wide pixels."""
    rows, cols = matrix.shape
    of_row = np.repeat(
        np.arange(rows, dtype=np.int64) * high // max(rows, 1), np.diff(matrix.indptr)
    )
    of_col = matrix.indices.astype(np.int64) * wide // max(cols, 1)
    return np.bincount(of_row * wide + of_col, minlength=high * wide).reshape(high, wide)


@cache
def _recipe(name: str, source: str) -> MatrixSpec | None:
    """The suite's matrix of that name, if it is still made like that."""
    for make in SETS.values():
        for spec in make():
            if (spec.name, spec.source) == (name, source):
                return spec
    return None
