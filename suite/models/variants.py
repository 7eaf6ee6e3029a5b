"""The variants that compete in the suite, a row each; their weights lie in folders so named."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from suite.models.prompt import Encoding

WEIGHTS = Path(__file__).with_name("weights")
ELSEWHERE = "SPARSERL_WEIGHTS"  # names another folder with the same layout
BASE = "base"
TINY = "tiny"  # as a name for the base that ships
NEEDED = ("torch", "transformers", "peft", "safetensors")  # the extra train


@dataclass(frozen=True)
class Variant:
    """One way of training.

    Attributes:
        name: Of the author and of the adapter's folder.
        encoding: How it is told where the nonzeros are.
        training: The stages it went through.
    """

    name: str
    encoding: Encoding
    training: str


VARIANTS = (
    Variant("sparserl", Encoding.COORDINATES, "pretrain, sft, rl on correctness and speed"),
    Variant("sft_only", Encoding.COORDINATES, "pretrain, sft"),
    Variant("no_embedding", Encoding.TEXT, "pretrain, sft, rl on correctness and speed"),
    Variant("correctness_only", Encoding.COORDINATES, "pretrain, sft, rl on correctness alone"),
)


def weights() -> Path:
    """The folder with the base and a folder for each variant."""
    return Path(os.environ.get(ELSEWHERE) or WEIGHTS).expanduser()


def trained(folder: Path) -> tuple[list[Variant], list[Variant]]:
    """Variants whose weights are there, and those whose are not."""
    base = (folder / BASE).is_dir()
    there = [variant for variant in VARIANTS if base and (folder / variant.name).is_dir()]
    return there, [variant for variant in VARIANTS if variant not in there]


def lacking() -> list[str]:
    """Packages that running a variant needs and that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]
