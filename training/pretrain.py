"""Stage one: next-token training on CUDA source.

``tiny`` is trained from scratch, a hub model goes on learning through LoRA adapters. Rows are
packed and attention stays inside a document. The work is cut by steps, not by time: a time box only
says where a session stops, and the same command goes on from there with the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from suite.models.errors import ModelError
from suite.models.tiny import TinyConfig
from training.packing import Meta

TINY = "tiny"


@dataclass(frozen=True)
class PretrainConfig:
    """Everything that decides what a pre-training run does; the help texts say what is what."""

    data: Annotated[Path, "folder of packed tokens"]
    out: Annotated[Path, "folder of the run: checkpoint, curve, finished model"]
    base: Annotated[str, "tiny, or a folder or hub id of a causal model, which gets LoRA"] = TINY
    steps: Annotated[int, "optimiser steps in all"] = 1500
    batch: Annotated[int, "rows a step"] = 64
    length: Annotated[int, "tokens a row"] = 1024
    accumulate: Annotated[int, "parts that a step's rows are computed in, to save memory"] = 1
    lr: Annotated[float, "highest learning rate"] = 2e-3
    lr_end: Annotated[float, "last learning rate, as a share of the highest"] = 0.05
    warmup: Annotated[int, "steps over which the learning rate rises"] = 150
    weight_decay: Annotated[float, "of matrices; vectors have none"] = 0.1
    clip: Annotated[float, "largest norm of a step's gradients"] = 1.0
    seed: Annotated[int, "of weights and batches"] = 0
    width: Annotated[int, "tiny: of the hidden states"] = 384
    layers: Annotated[int, "tiny: decoder layers"] = 8
    heads: Annotated[int, "tiny: query heads"] = 6
    kv_heads: Annotated[int, "tiny: key and value heads"] = 2
    mlp: Annotated[int, "tiny: width inside the MLP"] = 1024
    positions: Annotated[int, "tiny: tokens that it is made for"] = 8192
    lora_rank: Annotated[int, "other bases: rank of the adapters"] = 16
    lora_alpha: Annotated[int, "other bases: scale of the adapters"] = 32
    device: Annotated[Literal["auto", "cpu", "cuda"], "where to compute"] = "auto"
    compile: Annotated[Literal["auto", "on", "off"], "torch.compile; auto: on a GPU"] = "auto"
    minutes: Annotated[
        float | None, "stop at a checkpoint after this long; no limit if left out"
    ] = None
    save_every: Annotated[int, "steps between checkpoints"] = 500
    evaluate_every: Annotated[int, "steps between validation losses"] = 250
    evaluate_batches: Annotated[int, "batches of the validation loss"] = 4
    log_every: Annotated[int, "steps between lines of the curve"] = 20
    tracking: Annotated[Literal["on", "off"], "MLflow"] = "on"

    @property
    def tiny(self) -> bool:
        """Whether the model is the project's own, trained from scratch."""
        return self.base == TINY

    def shape(self, vocabulary: int) -> TinyConfig:
        """The shape of ``tiny``.

        Raises:
            ModelError: Sizes that do not go together.
        """
        sizes = (self.width, self.layers, self.heads, self.kv_heads, self.mlp, self.positions)
        return TinyConfig(vocabulary, *sizes)


COUNTS = (
    *("steps", "batch", "length", "accumulate", "save_every", "evaluate_every", "log_every"),
    *("evaluate_batches", "lora_rank", "lora_alpha"),
)
# What may differ between the sessions of one run: it changes neither batches nor arithmetic's plan.
SESSION_ONLY = frozenset(
    {"data", "out", "device", "compile", "minutes", "save_every", "evaluate_every"}
    | {"evaluate_batches", "log_every", "tracking"}
)


def decisive(config: PretrainConfig, meta: Meta) -> dict[str, str]:
    """What must be the same in all sessions of a run, tokens included, as plain text."""
    kept = {k: str(v) for k, v in vars(config).items() if k not in SESSION_ONLY}
    return {**kept, "tokens": meta.sha256["train"], "tokenizer": meta.tokenizer}


def mistakes(config: PretrainConfig, meta: Meta) -> list[str]:
    """Everything that is wrong with a configuration, before anything is loaded or computed."""
    small = [name for name in COUNTS if getattr(config, name) < 1]
    wrong = [f"{name} {getattr(config, name)}: at least 1" for name in small]
    checks = {
        f"lr {config.lr}: above 0, below 1": 0 < config.lr < 1,
        f"lr-end {config.lr_end}: from 0 to 1": 0 <= config.lr_end <= 1,
        f"warmup {config.warmup}: from 0 to steps ({config.steps})": 0
        <= config.warmup
        <= config.steps,
        f"weight-decay {config.weight_decay}: from 0 to 1": 0 <= config.weight_decay <= 1,
        f"clip {config.clip}: above 0": config.clip > 0,
        f"minutes {config.minutes}: above 0": config.minutes is None or config.minutes > 0,
        f"seed {config.seed}: 0 or more": config.seed >= 0,
        f"batch {config.batch}: must be {config.accumulate} equal parts (accumulate)": config.batch
        % max(config.accumulate, 1)
        == 0,
    }
    wrong += [text for text, right in checks.items() if not right]
    if config.tiny:
        try:
            config.shape(meta.vocabulary)
        except ModelError as error:
            wrong.append(str(error))
        if config.length > config.positions:
            wrong.append(f"length {config.length}: tiny is made for {config.positions} positions")
    for split, tokens in meta.tokens.items():
        if config.length >= 1 and tokens < 2 * config.length:
            wrong.append(
                f"data {config.data}: {split} has {tokens:,} tokens, too few for rows of"
                f" {config.length}"
            )
    return wrong
