"""The models that stage one trains: ``tiny`` from scratch, any other base through LoRA adapters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from training.errors import TrainingError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class TinyShape:
    """A small Llama-like decoder with its output layer tied to the embedding table.

    Attributes:
        vocabulary: Tokens.
        width: Of the hidden states.
        layers: Decoder layers.
        heads: Query heads.
        kv_heads: Key and value heads, shared by groups of query heads.
        mlp: Width inside the MLP.
        positions: Tokens that it is made for.
    """

    vocabulary: int
    width: int = 384
    layers: int = 8
    heads: int = 6
    kv_heads: int = 2
    mlp: int = 1024
    positions: int = 8192

    def mistakes(self) -> list[str]:
        """What is wrong with the sizes."""
        small = [f"tiny: {name} {n}: at least 1" for name, n in asdict(self).items() if n < 1]
        if small:
            return small
        wrong = []
        if self.width % (2 * self.heads):
            wrong.append(f"tiny: width {self.width} must be {self.heads} heads of an even size")
        if self.heads % self.kv_heads:
            wrong.append(
                f"tiny: {self.heads} heads cannot share {self.kv_heads} key and value heads"
            )
        return wrong

    def build(self, end: int, pad: int, seed: int) -> PreTrainedModel:
        """A model with random weights, float32, on the CPU; the same for the same seed."""
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        make: Any = LlamaConfig  # takes more than its declared fields
        config = make(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            intermediate_size=self.mlp,
            max_position_embeddings=self.positions,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=pad,
            attn_implementation="sdpa",
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return LlamaForCausalLM(config)


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
