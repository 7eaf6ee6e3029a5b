"""The named sets that people ask for: ``smoke`` to see that things work, ``paper`` to compare.

Each name says the structure and its size. ``paper`` runs from matrices on which a launch is all the
time there is to 67 million entries, and has every family; building it takes under a minute.
"""

from __future__ import annotations

from functools import cache

from suite.matrices import graphs, meshes, synthetic
from suite.matrices.base import MatrixSpec
from suite.matrices.recipes import recipe


@cache
def smoke() -> tuple[MatrixSpec, ...]:
    """Twelve matrices of different families with at most 50,000 entries each."""
    s, m, g = synthetic, meshes, graphs
    return (
        recipe("tridiagonal-1k", "diagonal", s.diagonals, rows=1000, offsets=(-1, 0, 1)),
        recipe("scattered-band-2k", "band", s.scattered_band, rows=2000, half_width=60, per_row=9),
        recipe("stencil-5pt-48", "stencil", s.stencil, shape=(48, 48)),
        recipe("uniform-12-2k", "uniform", s.uniform, rows=2048, per_row=12),
        recipe("power-law-3k", "power-law", s.power_law, rows=3000, nnz=30_000, exponent=0.7),
        recipe("rmat-11", "rmat", s.rmat, scale=11, edges=12_000),
        recipe("block-4-1k", "block", s.blocks, block_rows=300, edge=4, per_row=5),
        recipe(
            "dense-rows-2k", "dense-rows", s.dense_rows, rows=2500, per_row=3, dense=4, share=0.6
        ),
        recipe("empty-rows-20k", "empty-rows", s.mostly_empty, rows=20_000, filled=0.1),
        recipe("wide-200x9k", "rectangular", s.uniform, rows=200, cols=9000, per_row=70),
        recipe("airfoil", "pyamg", m.example, name="airfoil"),
        recipe("graph-preferential-1k", "graph", g.preferential, nodes=1200, edges=4),
    )


@cache
def paper() -> tuple[MatrixSpec, ...]:
    """Thirty-eight matrices of every family, 12 k to 67 M entries."""
    return (*_regular(), *_irregular(), *_discretised())


def _regular() -> tuple[MatrixSpec, ...]:
    s, m = synthetic, 1 << 20
    return (
        recipe("diagonal-2m", "diagonal", s.diagonals, rows=2 * m, offsets=(0,)),
        recipe("tridiagonal-4k", "diagonal", s.diagonals, rows=4096, offsets=(-1, 0, 1)),
        recipe(
            "pentadiagonal-1m", "diagonal", s.diagonals, rows=m, offsets=(-1024, -1, 0, 1, 1024)
        ),
        recipe("band-17-4k", "band", s.band, rows=4096, half_width=8),
        recipe("band-33-1m", "band", s.band, rows=m, half_width=16),
        recipe("scattered-band-1m", "band", s.scattered_band, rows=m, half_width=1000, per_row=16),
        recipe("stencil-5pt-2048", "stencil", s.stencil, shape=(2048, 2048)),
        recipe("stencil-9pt-1500", "stencil", s.stencil, shape=(1500, 1500), reach="box"),
        recipe("stencil-7pt-160", "stencil", s.stencil, shape=(160, 160, 160)),
        recipe("stencil-27pt-100", "stencil", s.stencil, shape=(100, 100, 100), reach="box"),
        recipe("shuffled-5pt-1024", "shuffled-stencil", s.shuffled_stencil, shape=(1024, 1024)),
        recipe("block-3-600k", "block", s.blocks, block_rows=200_000, edge=3, per_row=6),
        recipe("block-4-256k", "block", s.blocks, block_rows=65_536, edge=4, per_row=8, reach=40),
        recipe("block-8-512k", "block", s.blocks, block_rows=65_536, edge=8, per_row=4),
        recipe("block-16-128k", "block", s.blocks, block_rows=8192, edge=16, per_row=6),
    )


def _irregular() -> tuple[MatrixSpec, ...]:
    s, g, m = synthetic, graphs, 1 << 20
    return (
        recipe("uniform-16-4k", "uniform", s.uniform, rows=4096, per_row=16),
        recipe("uniform-256-16k", "uniform", s.uniform, rows=16_384, per_row=256),
        recipe("uniform-8-1m", "uniform", s.uniform, rows=m, per_row=8),
        recipe("uniform-64-1m", "uniform", s.uniform, rows=m, per_row=64),
        recipe("power-law-64k", "power-law", s.power_law, rows=65_536, nnz=m, exponent=0.8),
        recipe("power-law-1m", "power-law", s.power_law, rows=m, nnz=16 * m, exponent=0.6),
        recipe("rmat-20", "rmat", s.rmat, scale=20, edges=10_000_000),
        recipe(
            "small-world-512k",
            "small-world",
            s.small_world,
            rows=m // 2,
            neighbours=12,
            rewired=0.1,
        ),
        recipe("arrow-1m", "arrow", s.arrow, rows=m, width=2),
        recipe("dense-rows-1m", "dense-rows", s.dense_rows, rows=m, per_row=8, dense=16, share=0.4),
        recipe("empty-rows-4m", "empty-rows", s.mostly_empty, rows=4 * m, filled=0.3, longest=1),
        recipe("tall-1mx4k", "rectangular", s.uniform, rows=m, cols=4096, per_row=12),
        recipe("wide-4kx1m", "rectangular", s.uniform, rows=4096, cols=m, per_row=2048),
        recipe("graph-preferential-200k", "graph", g.preferential, nodes=200_000, edges=4),
        recipe("graph-geometric-100k", "graph", g.geometric, nodes=100_000, neighbours=8),
        recipe("graph-road-1m", "graph", g.road, width=1024, height=1024),
    )


def _discretised() -> tuple[MatrixSpec, ...]:
    m = meshes
    return (
        recipe("fem-disc-p1", "fem", m.fem, shape="disc-tri", size=8),
        recipe("fem-lshape-p2", "fem", m.fem, shape="lshape-tri", size=7, order=2),
        recipe("fem-cube-tet-p1", "fem", m.fem, shape="cube-tet", size=40),
        recipe("fem-cube-tet-p2", "fem", m.fem, shape="cube-tet", size=20, order=2),
        recipe("fem-elastic-tri-p1", "fem", m.fem, shape="square-tri", size=300, elastic=True),
        recipe("fem-elastic-tet-p1", "fem", m.fem, shape="cube-tet", size=24, elastic=True),
        recipe("pyamg-rotated-diffusion", "pyamg", m.rotated_diffusion, size=1000),
    )
