"""The state that a model has after reading a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from suite.models.policy import Policy

ROWS = {"cuda": 64, "cpu": 8}


@torch.inference_mode()
def last_states(policy: Policy, prompts: Sequence[Sequence[int]]) -> np.ndarray:
    """The last hidden state at the last token of each prompt, S × d, float32.

    Prompts are padded on the right, where causal attention does not look.
    """
    model: Any = policy.model
    body = getattr(model, model.base_model_prefix)
    rows = ROWS[model.device.type]
    order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    found: list[np.ndarray] = [np.empty(0)] * len(prompts)
    for start in range(0, len(order), rows):
        chosen = order[start : start + rows]
        columns = max(len(prompts[at]) for at in chosen)
        ids = torch.tensor(
            [[*prompts[at], *[policy.pad] * (columns - len(prompts[at]))] for at in chosen],
            device=model.device,
        )
        states = body(input_ids=ids, use_cache=False).last_hidden_state
        ends = torch.tensor([len(prompts[at]) - 1 for at in chosen], device=model.device)
        last = states[torch.arange(len(chosen), device=model.device), ends].float().cpu().numpy()
        for at, state in zip(chosen, last, strict=True):
            found[at] = state
    return np.stack(found)
