"""Which model is looked at: trained, a base alone, or one that nobody has trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from suite.models import policy
from suite.models.embedding import attach
from suite.models.errors import ModelError
from suite.models.policy import Policy, in_precision
from suite.models.prompt import Encoding
from training.errors import TrainingError

Weights = Literal["trained", "random"]


def device_of(asked: str) -> str:
    """``cpu`` or ``cuda``."""
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return asked


def load(
    base: str,
    adapter: Path | None,
    device: str,
    encoding: str = Encoding.COORDINATES,
    weights: Weights = "trained",
    seed: int = 0,
) -> Policy:
    """A policy for generation.

    Args:
        base: ``tiny``, or a folder or hub id.
        adapter: Its folder; says its encoding itself.
        device: ``cpu`` or ``cuda``.
        encoding: Without an adapter: how nonzeros are told.
        weights: Those of the base, or random ones in its shape.
        seed: Of random ones.

    Raises:
        TrainingError: Weights are missing, damaged or do not belong together.
    """
    quiet: Any = disable_progress_bar  # has no types
    quiet()
    try:
        found = policy.load(base, adapter, device=device, encoding=Encoding(encoding))
    except ModelError as error:
        raise TrainingError(str(error)) from error
    return found if weights == "trained" else _untrained(found, seed)


def _untrained(known: Policy, seed: int) -> Policy:
    make: Any = AutoModelForCausalLM.from_config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make(known.model.config)
    attach(model)
    model = in_precision(model.to(known.model.device), known.model.dtype)
    model = model.eval().requires_grad_(False)
    return replace(known, model=model)
