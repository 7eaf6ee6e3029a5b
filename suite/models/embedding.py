"""Coordinates as tokens: a nonzero (i, j) is one input position of a causal language model.

A token id below V, the number of rows of the model's embedding table, is an ordinary token. An id
from V on carries the pair itself, ``V + (i << 31) + j``, which fits int64. So a prompt stays one
list of integers, and ``generate``, trainers and adapters need not know that there are coordinates.

The embedding of (i, j) is a linear map of three codes: of i, of j and of j − i. A code has the sine
and cosine at wavelengths 2, 3, 4, 6, 8, 12, … (2ᵐ and 3·2ᵐ⁻¹): the short ones tell neighbours apart
and show where blocks begin, the long ones tell millions apart. The phase is taken of an integer
remainder, so it is as exact for large coordinates as for small ones.

The table of the model is not replaced but given another class, so that its parameter keeps its
name: tied output weights, checkpoints of the base and adapters go on as they did.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import nn

from suite.models.coordinates import BITS, LIMIT
from suite.models.errors import ModelError

PROJECTION = "coordinate_projection"  # name of the module to save with an adapter
OCTAVES = 32  # the longest wavelengths are beyond 2³¹, so that no two coordinates are the same
WAVELENGTHS = tuple(
    sorted([1 << m for m in range(1, OCTAVES + 1)] + [3 << m for m in range(OCTAVES - 1)])
)
FEATURES = 3 * 2 * len(WAVELENGTHS)  # codes of i, j and j − i; a sine and a cosine each


class CoordinateEmbedding(nn.Embedding):
    """What an embedding table becomes; see ``attach``. Never made by itself."""

    coordinate_projection: nn.Linear
    wavelengths: torch.Tensor

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Embeds ids, shape (…), as (…, width): from V on they are coordinates."""
        packed = input - self.num_embeddings
        apart = packed >= 0
        ordinary = self.ordinary(torch.where(apart, 0, input))
        placed = self.placed(torch.where(apart, packed, 0))
        return torch.where(apart.unsqueeze(-1), placed.to(ordinary.dtype), ordinary)

    def ordinary(self, ids: torch.Tensor) -> torch.Tensor:
        """Embeds ids that are all below V, as the model's own table does."""
        return super().forward(ids)

    def placed(self, packed: torch.Tensor) -> torch.Tensor:
        """Embeds packed coordinates, ``(i << 31) + j``."""
        i, j = packed >> BITS, packed & (LIMIT - 1)
        codes = torch.cat([code(value, self.wavelengths) for value in (i, j, j - i)], dim=-1)
        wanted = next(self.coordinate_projection.parameters()).dtype
        return cast("torch.Tensor", self.coordinate_projection(codes.to(wanted)))


def code(value: torch.Tensor, wavelengths: torch.Tensor) -> torch.Tensor:
    """Sines and cosines of an integer, shape (…), at W wavelengths: (…, 2 W), float32."""
    turns = torch.remainder(value.unsqueeze(-1), wavelengths).float() / wavelengths.float()
    phase = 2 * math.pi * turns
    return torch.cat([phase.sin(), phase.cos()], dim=-1)


def attach(model: object, seed: int = 0) -> CoordinateEmbedding:
    """Lets a causal language model read coordinates; what it makes of ordinary ids is unchanged.

    Do it after tokens were added: V is the size of the table as it is then.

    Args:
        model: Of ``transformers``, with or without adapters.
        seed: Of the projection's initial weights; they are the same wherever they are made.

    Returns:
        The model's input embedding, which is the module that it was.
    """
    table = cast("Any", model).get_input_embeddings()
    if isinstance(table, CoordinateEmbedding):
        return table
    if not isinstance(table, nn.Embedding):
        raise ModelError(
            f"{type(model).__name__} has a {type(table).__name__} as input embedding; coordinates"
            " need an nn.Embedding"
        )
    weight = table.weight
    projection = nn.Linear(FEATURES, table.embedding_dim)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        # As large as an ordinary token: a code has FEATURES / 2 as its squared length.
        size = _ordinary_size(table) / math.sqrt(FEATURES / 2)
        projection.weight.copy_(torch.randn(projection.weight.shape, generator=generator) * size)
        projection.bias.zero_()
    table.add_module(PROJECTION, projection.to(weight.device, weight.dtype))
    periods = torch.tensor(WAVELENGTHS, dtype=torch.int64, device=weight.device)
    table.register_buffer("wavelengths", periods, persistent=False)
    table.__class__ = _kind(type(table))
    return cast("CoordinateEmbedding", table)


_KINDS: dict[type[nn.Embedding], type[CoordinateEmbedding]] = {}


def _kind(table: type[nn.Embedding]) -> type[CoordinateEmbedding]:
    """A class that is both; a table's own scaling (Gemma) stays in force."""
    if table not in _KINDS:
        _KINDS[table] = cast(
            "type[CoordinateEmbedding]",
            type(f"Coordinate{table.__name__}", (CoordinateEmbedding, table), {}),
        )
    return _KINDS[table]


def _ordinary_size(table: nn.Embedding) -> float:
    """Root mean square of what the table returns, on at most 1,024 of its rows."""
    rows = torch.arange(0, table.num_embeddings, max(table.num_embeddings // 1024, 1))
    values = table(rows.to(table.weight.device)).float()
    return float(values.square().mean().sqrt())
