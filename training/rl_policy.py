"""The policy as reinforcement learning has it: a base with an adapter that is trained.

Programs are written by a copy with the adapter merged into its weights, as the suite has it: beside
each layer an adapter would be several more launches for every token.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from peft.utils import ModulesToSaveWrapper

from suite.models import adapters, manifest
from suite.models.embedding import PROJECTION
from suite.models.errors import ModelError
from suite.models.policy import Policy, in_precision, load_base
from suite.models.policy import load as load_policy
from training.errors import TrainingError

ACTIVE = "default"  # peft's name of the only adapter


@dataclass(frozen=True, eq=False)
class Learner:
    """A policy and what trains it.

    Attributes:
        model: Base and adapter; the adapter alone has gradients.
        policy: Writes programs, with the weights of the last ``refresh``.
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

    @torch.no_grad()
    def refresh(self) -> None:
        """From now on the policy writes with the adapter's weights as they are."""
        writer = cast("torch.nn.Module", self.policy.model)
        for name, module in cast("Any", self.model).get_base_model().named_modules():
            if isinstance(module, LoraLayer):
                layer: Any = module
                merged = layer.get_base_layer().weight + layer.get_delta_weight(ACTIVE)
                writer.get_parameter(f"{name}.weight").copy_(merged)
            elif isinstance(module, ModulesToSaveWrapper):
                for part, value in module.modules_to_save[ACTIVE].named_parameters():
                    writer.get_parameter(f"{name}.{part}").copy_(value)

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
        model, _, print_of_base = load_base(base)
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
    policy = load_policy(base, adapter, device=device)
    return Learner(adapted, policy, vocabulary, known.files[adapters.WEIGHTS])
