"""LoRA adapters on disk: written complete, and loaded only where every weight has its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from suite.models import manifest
from suite.models.embedding import PROJECTION, attach
from suite.models.errors import ModelError
from suite.models.lm import CausalLM
from suite.models.manifest import Manifest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from suite.models.prompt import PromptStyle

WEIGHTS = "adapter_model.safetensors"
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def lora(model: CausalLM, rank: int = 16, added_tokens: bool = False) -> LoraConfig:
    """The project's adapter: LoRA on attention and MLP, and the projection of coordinates.

    Args:
        model: The base; gets the coordinate embedding.
        rank: Of the LoRA matrices.
        added_tokens: Whether the table was resized, so that it and the output layer have to be
            trained and saved as a whole.
    """
    table = attach(model)
    name = next(name for name, module in model.named_modules() if module is table)
    whole = [name.rpartition(".")[2], "lm_head"] if added_tokens else [PROJECTION]
    return LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules=list(TARGETS),
        modules_to_save=whole,
        task_type="CAUSAL_LM",
    )


def save_adapter(
    model: PeftModel,
    folder: Path,
    style: PromptStyle,
    base: tuple[str, int],
    source: str,
    tokenizer: Tokenizer | None = None,
    dtype: torch.dtype = torch.bfloat16,
) -> Manifest:
    """Writes an adapter as this project ships it; the model is left as it is.

    Args:
        model: Base and adapter.
        folder: Made, or written over.
        style: What it was taught to read.
        base: Fingerprint of the base and the size of its table, before tokens were added.
        source: How it was trained, in words.
        tokenizer: Saved beside it, where it is not the base's.
        dtype: Of the weights on disk.

    Raises:
        ModelError: Tokens were added, and the table or the output layer is not in the adapter.
    """
    config = model.peft_config["default"]
    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    if style.vocabulary != base[1] and not _has_whole_table(state):
        raise ModelError(
            f"{folder}: the table has {style.vocabulary} tokens and the base {base[1]}; adapt with"
            " lora(added_tokens=True), or the new ones are lost"
        )
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value.detach().to("cpu", dtype).contiguous() for name, value in state.items()}
    save_file(kept, folder / WEIGHTS)
    trained_on = config.base_model_name_or_path
    config.base_model_name_or_path = None  # the path of somebody's machine; the manifest knows
    try:
        config.save_pretrained(str(folder))
    finally:
        config.base_model_name_or_path = trained_on
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    about = Manifest(
        "adapter", base[0], style.vocabulary, style.encoding.value, style.shown, source
    )
    return manifest.write(folder, about)


def apply(model: CausalLM, folder: Path, vocabulary: int) -> PeftModel:
    """Puts a saved adapter on a fresh base, for more training.

    Args:
        model: The base.
        folder: That ``save_adapter`` wrote; its manifest was checked.
        vocabulary: V of the manifest.

    Raises:
        ModelError: The weights do not fit the base.
    """
    try:
        config = LoraConfig.from_pretrained(str(folder))
        state = load_file(folder / WEIGHTS)
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        raise ModelError(f"{folder}: cannot be read ({error}); get the folder again") from error
    have = int(model.get_input_embeddings().num_embeddings)
    if have != vocabulary:
        if not _has_whole_table(state):
            raise ModelError(
                f"{folder}: was trained with {vocabulary} tokens and the base has {have}; the added"
                " ones were not saved with the adapter"
            )
        model.resize_token_embeddings(vocabulary, mean_resizing=False)
    attach(model)
    adapted: Any = get_peft_model(cast("Any", model), config)
    _check_fits(get_peft_model_state_dict(adapted, save_embedding_layers=False), state, folder)
    set_peft_model_state_dict(adapted, state)
    return cast("PeftModel", adapted)


def merge(model: CausalLM, folder: Path, vocabulary: int) -> CausalLM:
    """The base with a saved adapter merged into its weights; see ``apply``."""
    merged: Any = apply(model, folder, vocabulary).merge_and_unload()
    return cast("CausalLM", merged)


def _has_whole_table(state: dict[str, torch.Tensor]) -> bool:
    return any("lm_head." in name for name in state) and any(
        name.endswith("embed_tokens.weight") for name in state
    )


def _check_fits(
    expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor], folder: Path
) -> None:
    wrong = sorted(expected.keys() ^ found.keys()) + sorted(
        f"{name} {tuple(found[name].shape)} for {tuple(expected[name].shape)}"
        for name in expected.keys() & found.keys()
        if expected[name].shape != found[name].shape
    )
    if wrong:
        raise ModelError(
            f"{folder}: {len(wrong)} weights have no place in this base ({wrong[0]}, ...); give the"
            " base that it was trained on"
        )
