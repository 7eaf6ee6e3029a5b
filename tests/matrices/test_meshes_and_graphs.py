"""Matrices of meshes and graphs are what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from suite.matrices import graphs, meshes
from suite.matrices.base import canonical


@pytest.mark.parametrize("shape", list(meshes.Shape))
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("elastic", [False, True])
def test_finite_elements_are_symmetric_positive_definite(shape, order, elastic):
    size = 2 if shape.value.startswith(("square", "cube")) else 1
    matrix = canonical(meshes.fem(shape.value, size, order, elastic), shape.value)
    dense = matrix.toarray()
    np.testing.assert_allclose(dense, dense.T, atol=1e-12)
    assert np.linalg.eigvalsh(dense)[0] > 0


@pytest.mark.parametrize(
    ("shape", "order", "elastic", "unknowns"),
    [
        ("square-tri", 1, False, 25),
        ("square-tri", 2, False, 81),
        ("square-quad", 1, True, 50),
        ("cube-tet", 1, False, 125),
        ("cube-tet", 1, True, 375),
        ("cube-hex", 2, False, 729),
    ],
)
def test_unknowns_follow_from_cells_and_order(shape, order, elastic, unknowns):
    assert meshes.fem(shape, 4, order, elastic).shape == (unknowns, unknowns)


def test_refining_quadruples_a_plane_mesh():
    sizes = [meshes.fem("disc-tri", level).shape[0] for level in (3, 4, 5)]
    assert sizes[2] / sizes[1] == pytest.approx(4, rel=0.1)
    assert sizes[1] / sizes[0] == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("name", meshes.EXAMPLES)
def test_every_example_of_pyamg_loads(name):
    matrix = canonical(meshes.example(name), name)
    assert matrix.nnz > 1000
    assert np.diff(matrix.indptr).min() > 0


def test_rotated_diffusion_is_a_nine_point_stencil():
    assert np.diff(canonical(meshes.rotated_diffusion(12), "m").indptr).max() == 9


def test_plane_elasticity_comes_in_blocks_of_two():
    matrix = canonical(meshes.plane_elasticity(6), "m").tobsr((2, 2))
    assert matrix.shape == (72, 72)
    assert matrix.data.shape[0] == (3 * 6 - 2) ** 2


GRAPHS = [
    (graphs.preferential, {"nodes": 200, "edges": 3}),
    (graphs.clustered, {"nodes": 200, "edges": 3}),
    (graphs.geometric, {"nodes": 300, "neighbours": 6}),
    (graphs.communities, {"groups": 10, "size": 8}),
    (graphs.road, {"width": 20, "height": 15}),
]


@pytest.mark.parametrize(("make", "arguments"), GRAPHS)
def test_undirected_graphs_have_symmetric_weights_that_are_not_all_alike(make, arguments):
    matrix = canonical(make(**arguments), "g")
    assert (matrix != matrix.T).nnz == 0
    assert (matrix.data != 0).all()
    assert len(np.unique(matrix.data)) > 20


@pytest.mark.parametrize(("make", "arguments"), GRAPHS)
def test_graphs_follow_their_seed(make, arguments):
    one, same, other = (make(**arguments, seed=seed) for seed in (1, 1, 2))
    assert (one != same).nnz == 0
    assert (one != other).nnz > 0


def test_preferential_attachment_makes_hubs():
    degrees = np.diff(graphs.preferential(2000, 3).indptr)
    assert degrees.min() >= 3
    assert degrees.max() > 10 * degrees.mean()


def test_geometric_graph_has_about_the_asked_neighbours():
    assert np.diff(graphs.geometric(3000, 8).indptr).mean() == pytest.approx(8, rel=0.15)


def test_road_joins_streets_next_to_each_other():
    coo = graphs.road(30, 20).tocoo()
    assert set(abs(coo.row - coo.col).tolist()) == {1, 30, 31}
    assert coo.shape == (600, 600)
