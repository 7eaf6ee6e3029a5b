"""A base for stage one that is not ``tiny``: it goes on learning through LoRA adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training.errors import TrainingError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def with_lora(base: str, rank: int, alpha: int, vocabulary: int, seed: int) -> PreTrainedModel:
    """A causal model by folder or hub id with fresh LoRA adapters; only those are trained.

    Raises:
        TrainingError: It cannot be loaded, or knows fewer tokens than the data has.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from suite.models.adapters import TARGETS

    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            base, dtype=torch.float32, attn_implementation="sdpa"
        )
    except (OSError, ValueError, KeyError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TrainingError(f"base {base}: cannot be loaded: {first}") from error
    known = int(model.get_input_embeddings().num_embeddings)
    if known < vocabulary:
        raise TrainingError(
            f"base {base}: knows {known:,} tokens and the data has {vocabulary:,}; pack the corpus"
            " with the base's own tokenizer"
        )
    lora = LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(TARGETS), task_type="CAUSAL_LM")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            adapt: Any = get_peft_model
            adapted: PreTrainedModel = adapt(model, lora)
        except ValueError as error:
            raise TrainingError(f"base {base}: LoRA finds no layers to adapt: {error}") from error
    return adapted
