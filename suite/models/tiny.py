"""``tiny``: the project's own decoder, small enough to ship and to train in minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suite.models.errors import ModelError

if TYPE_CHECKING:
    from transformers import LlamaConfig, LlamaForCausalLM

MAX_BYTES = 40_000_000  # of the weights in 16 bits


@dataclass(frozen=True)
class TinyConfig:
    """A Llama-like decoder: 13.4 M parameters as it stands, 27 MB in 16 bits.

    Raises:
        ModelError: Sizes that do not go together.

    Attributes:
        vocabulary: V, tokens of the tokenizer.
        width: Of the hidden states.
        layers: Decoder layers.
        heads: Query heads; each has ``width / heads`` channels.
        kv_heads: Key and value heads, shared by groups of query heads: generation reads their cache
            at every token.
        mlp: Width inside the MLP.
        positions: Tokens that it is made for, prompt and program together.
    """

    vocabulary: int = 2048
    width: int = 384
    layers: int = 8
    heads: int = 6
    kv_heads: int = 2
    mlp: int = 1024
    positions: int = 8192

    def __post_init__(self) -> None:
        wrong = [f"{name} {size}: at least 1" for name, size in vars(self).items() if size < 1]
        if not wrong and self.width % (2 * self.heads):
            wrong.append(f"width {self.width} must be {self.heads} heads of an even size")
        if not wrong and self.heads % self.kv_heads:
            wrong.append(f"{self.heads} heads cannot share {self.kv_heads} key and value heads")
        if wrong:
            raise ModelError(f"tiny: {'; '.join(wrong)}")

    def parameters(self) -> int:
        """How many there are; the output layer is the embedding table."""
        channels = self.width // self.heads
        attention = 2 * self.width * channels * (self.heads + self.kv_heads)
        layer = attention + 3 * self.width * self.mlp + 2 * self.width
        return self.vocabulary * self.width + self.layers * layer + self.width

    def llama(self, end: int, pad: int) -> LlamaConfig:
        """The configuration for ``transformers``.

        Args:
            end: Id of the token that ends a program.
            pad: Id of the token that fills batches.
        """
        from transformers import LlamaConfig

        return LlamaConfig(
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
        )

    def build(self, end: int, pad: int, seed: int = 0) -> LlamaForCausalLM:
        """A model with random weights, float32, on the CPU; the same for the same seed."""
        import torch
        from transformers import LlamaForCausalLM

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return LlamaForCausalLM(self.llama(end, pad))
