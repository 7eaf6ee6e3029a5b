"""Adjacency matrices of the random graphs that network science uses, by networkx.

Undirected, so structure and values are symmetric; weights are random, because a graph of ones would
let a program skip its values. networkx walks edges in Python (about a million a second), which
bounds the sizes; ``road`` is built here, in NumPy, because road networks are large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from suite.matrices.sampling import values


def preferential(nodes: int, edges: int, seed: int = 0) -> sparse.csr_array:
    """Barabási-Albert: a new node brings ``edges`` edges, to nodes that have many already."""
    import networkx as nx

    return _adjacency(nx.barabasi_albert_graph(nodes, edges, seed=seed), seed)


def clustered(nodes: int, edges: int, triangles: float = 0.5, seed: int = 0) -> sparse.csr_array:
    """Holme-Kim: ``preferential``, each edge followed by a triangle at that probability."""
    import networkx as nx

    return _adjacency(nx.powerlaw_cluster_graph(nodes, edges, triangles, seed=seed), seed)


def geometric(nodes: int, neighbours: float, seed: int = 0) -> sparse.csr_array:
    """Points in the unit square in random order, joined with about ``neighbours`` near ones."""
    import networkx as nx

    radius = float(np.sqrt(neighbours / (np.pi * nodes)))
    return _adjacency(nx.random_geometric_graph(nodes, radius, seed=seed), seed)


def communities(groups: int, size: int, outside: float = 0.1, seed: int = 0) -> sparse.csr_array:
    """``groups`` cliques of ``size`` nodes, a share ``outside`` of their edges leading out."""
    import networkx as nx

    return _adjacency(nx.relaxed_caveman_graph(groups, size, outside, seed=seed), seed)


def road(
    width: int, height: int, kept: float = 0.8, crossing: float = 0.05, seed: int = 0
) -> sparse.csr_array:
    """A street grid: a share ``kept`` of its edges and ``crossing`` of its diagonals."""
    rng = np.random.default_rng(seed)
    place = np.arange(width * height, dtype=np.int32).reshape(height, width)
    pairs = (
        (place[:, :-1], place[:, 1:], kept),
        (place[:-1], place[1:], kept),
        (place[:-1, :-1], place[1:, 1:], crossing),
    )
    ends = []
    for start, end, share in pairs:
        chosen = rng.random(start.shape) < share
        ends.append(np.stack((start[chosen], end[chosen])))
    return _symmetric(np.concatenate(ends, axis=1), width * height, rng)


def _adjacency(graph: Any, seed: int) -> sparse.csr_array:
    """The graph's matrix, nodes in the order in which they were made."""
    count = graph.number_of_edges()
    flat = np.fromiter((node for edge in graph.edges() for node in edge), np.int32, 2 * count)
    return _symmetric(flat.reshape(-1, 2).T, graph.number_of_nodes(), np.random.default_rng(seed))


def _symmetric(ends: np.ndarray, nodes: int, rng: np.random.Generator) -> sparse.csr_array:
    """Both directions of each edge (2 × edges) with one weight; a loop stays single."""
    weights = values(ends.shape[1], rng)
    other = ends[0] != ends[1]
    rows = np.concatenate((ends[0], ends[1][other]))
    cols = np.concatenate((ends[1], ends[0][other]))
    data = np.concatenate((weights, weights[other]))
    return sparse.csr_array(sparse.coo_array((data, (rows, cols)), shape=(nodes, nodes)))
