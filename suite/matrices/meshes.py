"""Matrices of discretised partial differential equations, assembled on real meshes.

scikit-fem assembles finite elements on triangles, quadrilaterals, tetrahedra and hexahedra; pyamg
brings model problems and eight small matrices from practice. What the element couples decides the
structure, so mesh, element and equation are the parameters. The libraries are imported when a
matrix is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy import sparse

EXAMPLES = (
    "airfoil",
    "bar",
    "helmholtz_2D",
    "knot",
    "local_disc_galerkin_diffusion",
    "recirc_flow",
    "unit_cube",
    "unit_square",
)


class Shape(StrEnum):
    """A domain with the cells that fill it."""

    SQUARE_TRI = "square-tri"
    DISC_TRI = "disc-tri"
    LSHAPE_TRI = "lshape-tri"
    SQUARE_QUAD = "square-quad"
    CUBE_TET = "cube-tet"
    BALL_TET = "ball-tet"
    CUBE_HEX = "cube-hex"


@dataclass(frozen=True)
class _Cells:
    """How scikit-fem makes a mesh and names its elements of order 1 and 2."""

    mesh: str
    start: str
    elements: tuple[str, str]
    divided: bool  # made with ``size`` cells an edge; otherwise refined ``size`` times


_CELLS = {
    Shape.SQUARE_TRI: _Cells("MeshTri", "init_tensor", ("ElementTriP1", "ElementTriP2"), True),
    Shape.DISC_TRI: _Cells("MeshTri", "init_circle", ("ElementTriP1", "ElementTriP2"), False),
    Shape.LSHAPE_TRI: _Cells("MeshTri", "init_lshaped", ("ElementTriP1", "ElementTriP2"), False),
    Shape.SQUARE_QUAD: _Cells("MeshQuad", "init_tensor", ("ElementQuad1", "ElementQuad2"), True),
    Shape.CUBE_TET: _Cells("MeshTet", "init_tensor", ("ElementTetP1", "ElementTetP2"), True),
    Shape.BALL_TET: _Cells("MeshTet", "init_ball", ("ElementTetP1", "ElementTetP2"), False),
    Shape.CUBE_HEX: _Cells("MeshHex", "init_tensor", ("ElementHex1", "ElementHex2"), True),
}


def fem(shape: str, size: int, order: int = 1, elastic: bool = False) -> sparse.csr_array:
    """Stiffness matrix plus mass matrix, all degrees of freedom kept; symmetric positive definite.

    Args:
        shape: A ``Shape``.
        size: Cells along an edge, or times that the coarsest mesh is refined (disc, L, ball).
        order: Polynomial order of the element, 1 or 2.
        elastic: Linear elasticity instead of the scalar Laplacian: a 2 × 2 or 3 × 3 block for each
            pair of nodes, dense but for couplings that vanish.
    """
    import skfem

    cells = _CELLS[Shape(shape)]
    mesh = _mesh(skfem, cells, size)
    element = getattr(skfem, cells.elements[order - 1])()
    if elastic:
        from skfem.models.elasticity import lame_parameters, linear_elasticity

        stiffness = linear_elasticity(*lame_parameters(1.0, 0.3))
        element = skfem.ElementVector(element)
    else:
        from skfem.models.poisson import laplace

        stiffness = laplace
    basis = skfem.Basis(mesh, element, intorder=2 * order)
    mass = skfem.BilinearForm(lambda u, v, _: _inner(u, v, elastic))
    return sparse.csr_array(stiffness.assemble(basis) + mass.assemble(basis))


def _inner(u: Any, v: Any, vectors: bool) -> Any:
    return (u * v).sum(axis=0) if vectors else u * v


def _mesh(skfem: Any, cells: _Cells, size: int) -> Any:
    make = getattr(getattr(skfem, cells.mesh), cells.start)
    if cells.divided:
        ticks = np.linspace(0, 1, size + 1)
        return make(*[ticks] * (2 if cells.mesh in ("MeshTri", "MeshQuad") else 3))
    return make().refined(size) if cells.start == "init_lshaped" else make(size)


def example(name: str) -> sparse.csr_array:
    """One of the matrices that come with pyamg; of complex values (``helmholtz_2D``) the real part.

    Args:
        name: One of ``EXAMPLES``.
    """
    from pyamg.gallery import load_example

    return sparse.csr_array(load_example(name)["A"].real)


def rotated_diffusion(size: int, epsilon: float = 0.01, angle: float = 0.5) -> sparse.csr_array:
    """Anisotropic diffusion turned by ``angle`` radians: 9 points, ``size``² unknowns."""
    from pyamg.gallery import diffusion_stencil_2d, stencil_grid

    points = diffusion_stencil_2d(epsilon=epsilon, theta=angle, type="FE")
    return sparse.csr_array(stencil_grid(points, (size, size), format="csr"))


def plane_elasticity(size: int) -> sparse.csr_array:
    """Plane elasticity by bilinear quadrilaterals: 2 × 2 blocks, 2 · ``size``² unknowns."""
    from pyamg.gallery import linear_elasticity

    return sparse.csr_array(linear_elasticity((size, size))[0])
