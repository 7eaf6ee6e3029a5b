"""The policy as reinforcement learning has it: a base with an adapter that is trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from peft import PeftModel

from suite.models import adapters, manifest
from suite.models.embedding import PROJECTION
from suite.models.errors import ModelError
from suite.models.lm import CausalLM
from suite.models.policy import Policy, in_precision, load_base
from suite.models.prompt import Encoding, PromptStyle
from training.errors import TrainingError


@dataclass(frozen=True, eq=False)
class Learner:
    """A policy and what trains it.

    Attributes:
        model: Base and adapter; the adapter alone has gradients.
        policy: The same weights, for generation.
        vocabulary: Rows of the base's table.
        adapter: Digest of the adapter's weights as they were loaded.
    """

    model: PeftModel
    policy: Policy
    vocabulary: int
    adapter: str

    @property
    def trained(self) -> dict[str, torch.nn.Parameter]:
        """What has gradients, by name."""
        return {n: p for n, p in self.model.named_parameters() if p.requires_grad}

    def save(self, folder: Path, source: str) -> None:
        """Writes the adapter as the project ships it."""
        policy = self.policy
        base = (policy.base, self.vocabulary)
        adapters.save_adapter(self.model, folder, policy.style, base, source)


def load(base: str, adapter: Path, device: str) -> Learner:
    """Loads a base and an adapter for training.

    On a GPU the base has 16 bits and what is trained has 32.

    Raises:
        TrainingError: They cannot be loaded, or do not belong together.
    """
    try:
        known = manifest.read(adapter, "adapter")
        model, tokenizer, print_of_base = load_base(base)
        if known.base != print_of_base:
            raise ModelError(
                f"{adapter}: was trained on another base ({known.base}) than {base}"
                f" ({print_of_base}); give the base that it was trained on"
            )
        if device == "cuda":
            model = in_precision(cast("Any", model).to(device), torch.bfloat16)
        vocabulary = int(model.get_input_embeddings().num_embeddings)
        adapted = adapters.apply(model, adapter, known.vocabulary)
    except ModelError as error:
        raise TrainingError(str(error)) from error
    if known.vocabulary != vocabulary:
        raise TrainingError(
            f"{adapter}: brings {known.vocabulary - vocabulary} tokens of its own; give one that"
            " uses its base's tokens"
        )
    for name, module in adapted.named_modules():
        if name.endswith(PROJECTION):
            module.float()  # the frozen copy too, which decides what it is fed
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    inner = cast("CausalLM", cast("Any", adapted).get_base_model())
    style = PromptStyle(Encoding(known.encoding), vocabulary, known.shown)
    policy = Policy(inner, tokenizer, style, print_of_base)
    return Learner(adapted, policy, vocabulary, known.files[adapters.WEIGHTS])
