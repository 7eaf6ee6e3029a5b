"""Small random models and a tokenizer, for every test of this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from suite.models import adapters, policy
from suite.models.coordinates import coordinate_ids
from suite.models.embedding import attach
from suite.models.prompt import Encoding, PromptStyle
from suite.models.tiny import TinyConfig

torch.set_num_threads(1)

END, PAD = 0, 1
VOCABULARY = 320
TOKENS = 312  # that have a text: tables are often larger
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 4096,
    "bos_token_id": None,
    "eos_token_id": END,
    "pad_token_id": PAD,
}
WINDOW = {
    "head_dim": 16,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
}
CONFIGS = {
    "llama": LlamaConfig(**SMALL, tie_word_embeddings=True),
    "qwen2": Qwen2Config(**SMALL),
    "qwen2-window": Qwen2Config(
        **SMALL, use_sliding_window=True, sliding_window=16, max_window_layers=1
    ),
    "qwen3": Qwen3Config(**SMALL, head_dim=16),
    "gemma3": Gemma3TextConfig(**SMALL, **WINDOW),
}
TINY = TinyConfig(vocabulary=VOCABULARY, width=32, layers=2, heads=4, kv_heads=2, mlp=48)
TEXT = PromptStyle(Encoding.TEXT, VOCABULARY)
COORDINATES = PromptStyle(Encoding.COORDINATES, VOCABULARY)


def build(name: str = "llama", seed: int = 0, louder: float = 4.0) -> Any:
    """A model with random weights, larger than usual so that its answers are not all alike."""
    torch.manual_seed(seed)
    model: Any = AutoModelForCausalLM.from_config(CONFIGS[name])
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() > 1:
                value.mul_(louder)
    return model.eval()


def reader(name: str = "llama", seed: int = 0) -> Any:
    """The same with the coordinate embedding, not to be trained."""
    model = build(name, seed)
    attach(model)
    return model.requires_grad_(False)


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level pairs fitted on a few words; its end is 0 and its padding 1."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=["<end>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = (
        "// write spmv spmm f32 sm_90 rows cols nnz longest filled reach lengths entries program"
    )
    inner.train_from_iterator([words, "int row = blockIdx.x; const float* __restrict__ x"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<pad>")


def prompts(lengths: tuple[int, ...] = (5, 9, 70), seed: int = 0) -> list[tuple[int, ...]]:
    """Some text followed by coordinates, twenty in each."""
    random = np.random.default_rng(seed)
    found = []
    for length in lengths:
        text = random.integers(2, VOCABULARY, length).tolist()
        placed = coordinate_ids(*random.integers(0, 10**6, (2, 20)), VOCABULARY)
        found.append((*text, *placed.tolist()))
    return found


def save_base(folder: Path, seed: int = 0) -> Path:
    """A base as the project ships it."""
    policy.save_base(TINY.build(END, PAD, seed), tokenizer(), folder, "random")
    return folder


def save_adapter(base: Path, folder: Path, style: PromptStyle = COORDINATES) -> Any:
    """A random adapter on disk; returns base and adapter as they were when saved."""
    model, _, known = policy.load_base(base)
    adapted = get_peft_model(model, adapters.lora(model, rank=4))
    stir(adapted)
    adapters.save_adapter(
        adapted, folder, style, (known, VOCABULARY), "random", None, torch.float32
    )
    return adapted


def stir(model: Any) -> None:
    """Changes every weight that is trained, so that none is what it was made as."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for value in model.parameters():
            if value.requires_grad:
                value.add_(torch.randn(value.shape, generator=generator) * 0.05)
