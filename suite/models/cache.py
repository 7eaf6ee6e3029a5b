"""Keys and values of a batch at fixed addresses, so that a decode step can be captured as a graph.

The cache of ``transformers`` for this purpose reads its whole length at every step and decides on
the host which part of a sliding window is full. Here all rows of a batch are at the same column,
every layer keeps everything, masks say what is seen, and attention reads a ``view`` that grows with
the text. Works with any decoder that takes four-dimensional masks.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, Cache
from transformers.cache_utils import CacheLayerMixin

from suite.models.lm import CausalLM

ATTENTION = "suite_grouped"
SLIDING = "sliding_attention"


class FixedLayer(CacheLayerMixin):
    """One layer: keys and values, B × heads × length × channels, written at ``at``.

    Attributes:
        at: Column to write, one element, on the device.
        view: Columns that attention reads.
        live: Rows that are read and written, the first so many.
        prompts: While prompts are read: which prompt goes to which row.
    """

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, at: torch.Tensor) -> None:
        super().__init__()
        self.keys, self.values, self.at = keys, values, at
        self.view, self.live = 0, int(keys.shape[0])
        self.prompts: tuple[torch.Tensor, torch.Tensor] | None = None
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing: it was initialised when it was made."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes and returns what attention reads: a prompt itself, or the view."""
        if self.prompts is not None:
            of, to = self.prompts
            columns = key_states.shape[2]
            self.keys[to, :, :columns] = key_states[of]
            self.values[to, :, :columns] = value_states[of]
            return key_states, value_states
        keys, values = self.keys[: self.live], self.values[: self.live]
        keys.index_copy_(2, self.at, key_states)
        values.index_copy_(2, self.at, value_states)
        return keys[:, :, : self.view], values[:, :, : self.view]

    def get_seq_length(self) -> int:
        """Unknown to the host; positions are always given."""
        return 0

    def get_max_length(self) -> int:
        """Columns there are."""
        return int(self.keys.shape[2])

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """What a mask would have to cover; masks are always given."""
        return self.view, 0


class FixedCache(Cache):
    """All layers of a model.

    Args:
        model: Whose layers.
        rows: B.
        length: Columns.
        at: Column to write next, one element, on the device.
    """

    def __init__(self, model: CausalLM, rows: int, length: int, at: torch.Tensor) -> None:
        config = model.config.get_text_config(decoder=True)
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        channels = getattr(config, "head_dim", None)
        channels = channels or config.hidden_size // config.num_attention_heads
        shape = (config.num_hidden_layers, 2, rows, heads, length, channels)
        self.memory = torch.zeros(shape, dtype=model.dtype, device=model.device)
        self._fixed = [FixedLayer(kv[0], kv[1], at) for kv in self.memory]
        super().__init__(layers=list(self._fixed))

    def read_prompts(self, of: torch.Tensor, to: torch.Tensor) -> None:
        """From now on whole prompts are read: prompt ``of[n]`` goes to row ``to[n]``."""
        for layer in self._fixed:
            layer.prompts = of, to

    def read_tokens(self) -> None:
        """From now on a token for each row is read."""
        for layer in self._fixed:
            layer.prompts = None

    def look_at(self, view: int, live: int) -> None:
        """From now on attention reads so many columns of the first ``live`` rows."""
        for layer in self._fixed:
            layer.view, layer.live = view, live

    def move(self, of: int, to: int, columns: int) -> None:
        """Copies the first columns of a row over those of another."""
        self.memory[:, :, to, :, :columns] = self.memory[:, :, of, :, :columns]


def masks(model: CausalLM, seen: torch.Tensor, distance: torch.Tensor) -> Any:
    """Additive masks as the model takes them.

    Args:
        model: Tells whether layers differ in what they see.
        seen: Whether a query sees a key, B × queries × keys.
        distance: How far a key lies back from its query, broadcastable to the same shape.
    """
    config = model.config.get_text_config(decoder=True)
    full = _additive(seen, model.dtype)
    if SLIDING not in (getattr(config, "layer_types", None) or ()):
        return full
    near = _additive(seen & (distance < config.sliding_window), model.dtype)
    return {"full_attention": full, SLIDING: near}


def _additive(seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    # Not −∞: a row of padding that sees nothing must stay finite.
    lowest = torch.finfo(dtype).min
    return torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, lowest).unsqueeze(1)


def call(model: CausalLM, cache: FixedCache, **arguments: Any) -> torch.Tensor:
    """Logits of the last position, B × V, float32."""
    named = {_name_of_cache(type(model)): cache}
    out = model(**arguments, **named, use_cache=True, logits_to_keep=1)
    return torch.as_tensor(out.logits)[:, -1].float()


@functools.cache
def _name_of_cache(model: type[CausalLM]) -> str:
    """Its parameter for the cache, which was renamed between 5.17 and 5.24 of ``transformers``."""
    return (
        "cache"
        if "cache" in inspect.signature(cast("Any", model).forward).parameters
        else "past_key_values"
    )


@contextmanager
def grouped_attention(model: CausalLM) -> Iterator[None]:
    """Lets a model attend without copying shared key and value heads for each query head."""
    config = model.config
    before = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention, B × heads × queries × channels, as ``transformers`` calls it.

    For a single token the query heads of a group are made queries of their shared head.
    """
    if softcap is not None:
        raise NotImplementedError("logits with a soft cap (Gemma 2) cannot be generated with here")
    rows, heads, queries, channels = query.shape
    groups = heads // key.shape[1]
    if queries == 1:
        query = query.reshape(rows, key.shape[1], groups, channels)
    elif groups > 1:
        key, value = (kv.repeat_interleave(groups, dim=1) for kv in (key, value))
    out = scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, scale=scaling)
    return out.reshape(rows, heads, queries, channels).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, _attend)
