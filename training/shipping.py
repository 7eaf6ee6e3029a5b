"""Puts a finished adapter, and its base, where the suite looks for them."""

from __future__ import annotations

import shutil
from pathlib import Path

from suite.models import manifest, policy
from suite.models.errors import ModelError
from suite.models.variants import BASE, Variant
from training.errors import TrainingError


def ship(base: str, adapter: Path, variant: Variant, weights: Path) -> Path:
    """Copies an adapter into a folder of weights, and its base where none is there.

    Args:
        base: What the adapter was trained on.
        adapter: Folder of the adapter.
        variant: Which one it is.
        weights: Folder with the base and a folder for each variant.

    Returns:
        The adapter's folder there.

    Raises:
        TrainingError: What lies there, the base, the adapter and the variant do not belong
            together.
    """
    try:
        known = manifest.read(adapter, "adapter")
        model, tokenizer, found = policy.load_base(base)
        held = manifest.read(weights / BASE, "base") if (weights / BASE).exists() else None
    except ModelError as error:
        raise TrainingError(str(error)) from error
    if known.encoding != variant.encoding:
        raise TrainingError(
            f"{adapter}: was taught to read {known.encoding}; {variant.name} reads"
            f" {variant.encoding}"
        )
    for where, mine in ((base, found), (weights / BASE, held.base if held else found)):
        if mine != known.base:
            raise TrainingError(
                f"{adapter}: was trained on base {known.base}, and {where} is {mine}; give the"
                " base that it was trained on, and a folder of weights that has it"
            )
    if held is None:
        draft = weights / f".{BASE}"
        shutil.rmtree(draft, ignore_errors=True)
        policy.save_base(model, tokenizer, draft, f"pretrain, from {Path(base).name}")
        draft.rename(weights / BASE)
    target, draft = weights / variant.name, weights / f".{variant.name}"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(adapter, draft)
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    return target
