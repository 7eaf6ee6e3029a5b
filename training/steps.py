"""The arithmetic of one training step: batch to device, loss, gradients, update.

Letters: ``B`` rows, ``T`` tokens of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from training.batches import IGNORED, Batch


def attention_mask(documents: torch.Tensor) -> torch.Tensor:
    """B × 1 × T × T: whether a token may look at another, which is an earlier one of its document.

    Args:
        documents: B × T, the number of each token's document.
    """
    length = documents.shape[1]
    same = documents[:, :, None] == documents[:, None, :]
    earlier = torch.ones(length, length, dtype=torch.bool, device=documents.device).tril()
    return (same & earlier)[:, None]


@dataclass(frozen=True, eq=False)
class Stepper:
    """Computes losses and gradients of a model.

    Attributes:
        forward: The model, compiled or not.
        trained: Its trained parameters.
        optimizer: Over those.
        device: Where they are.
        parts: Parts that a batch is computed in.
        clip: Largest norm of the gradients.
    """

    forward: Callable[..., Any]
    trained: list[torch.nn.Parameter]
    optimizer: torch.optim.Optimizer
    device: str
    parts: int
    clip: float

    def step(self, batch: Batch, lr: float) -> tuple[torch.Tensor, torch.Tensor]:
        """One update; returns the mean loss and the gradients' norm, both still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        counted = self._counted(batch)
        total = torch.zeros((), device=self.device)
        for part in self._parts(batch):
            loss = self._loss(part) / counted
            torch.autograd.backward(loss)
            total += loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.trained, self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total, norm

    def evaluate(self, batch: Batch) -> float:
        """The mean loss; nothing is learnt."""
        with torch.no_grad():
            total = sum(float(self._loss(part)) for part in self._parts(batch))
        return total / self._counted(batch)

    def _counted(self, batch: Batch) -> int:
        return max(int(np.count_nonzero(batch.targets != IGNORED)), 1)

    def _parts(self, batch: Batch) -> list[tuple[torch.Tensor, ...]]:
        arrays = (batch.inputs, batch.targets, batch.documents, batch.positions)
        split = [np.split(array, self.parts) for array in arrays]
        return [tuple(self._put(array) for array in part) for part in zip(*split, strict=True)]

    def _put(self, array: Any) -> torch.Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self.device == "cpu":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)

    def _loss(self, part: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Sum over the tokens that count."""
        inputs, targets, documents, positions = part
        with self._precision():
            logits = self.forward(
                input_ids=inputs,
                attention_mask=attention_mask(documents),
                position_ids=positions,
                use_cache=False,
            ).logits
        return cross_entropy(
            logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum"
        )

    def _precision(self) -> AbstractContextManager[Any]:
        if self.device == "cpu":
            return nullcontext()
        context: AbstractContextManager[Any] = torch.autocast(self.device, dtype=torch.bfloat16)
        return context


def adamw(model: torch.nn.Module, decay: float, device: str) -> torch.optim.Optimizer:
    """AdamW over what is trained; only matrices decay."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=0.0, betas=(0.9, 0.95), fused=device != "cpu"
    )
