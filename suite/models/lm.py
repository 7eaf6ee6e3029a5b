"""What this folder needs of a causal language model, typed; any of ``transformers`` has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import nn


class CausalLM(Protocol):
    """A decoder with an embedding table and an output layer."""

    @property
    def config(self) -> Any:
        """Its ``PretrainedConfig``."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights."""
        ...

    def __call__(self, **arguments: Any) -> Any:
        """Runs it; the answer has ``logits``."""
        ...

    def get_input_embeddings(self) -> nn.Embedding:
        """The table."""
        ...

    def get_output_embeddings(self) -> nn.Linear:
        """The output layer."""
        ...

    def resize_token_embeddings(self, new_num_tokens: int, *, mean_resizing: bool) -> Any:
        """Adds rows to the table, or takes some away."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Its weights."""
        ...

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Its parts."""
        ...

    def state_dict(self) -> Mapping[str, torch.Tensor]:
        """Its weights by name, shared ones under each name."""
        ...

    def save_pretrained(self, folder: Any, *, state_dict: Mapping[str, torch.Tensor]) -> Any:
        """Writes configuration and weights."""
        ...

    @property
    def training(self) -> bool:
        """Whether dropout is on."""
        ...

    def eval(self) -> Any:
        """Switches dropout off."""
        ...

    def train(self, mode: bool) -> Any:
        """Switches dropout on or off."""
        ...

    def to(self, *, device: str) -> Any:
        """Moves its weights."""
        ...

    def requires_grad_(self, requires_grad: bool) -> Any:
        """Whether its weights are trained."""
        ...
