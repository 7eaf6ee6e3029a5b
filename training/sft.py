"""Stage two: what ``python -m training sft`` is asked for.

A base learns, through LoRA on attention and MLP and through the projection of coordinates, to write
the program of each pair after its prompt; only the program and its end count. Checkpoints are
chosen by what their programs do, never by loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from suite.models.variants import TINY, VARIANTS, Variant
from training.errors import ConfigError

COUNTS = ("epochs", "tokens", "rank", "longest", "save_every", "log_every", "candidates")


@dataclass(frozen=True)
class SftConfig:
    """Everything that decides what a run does; the help texts say what is what."""

    pairs: Annotated[tuple[Path, ...], "folders of pairs"]
    out: Annotated[Path, "folder of the run: checkpoints, candidates, curve, the finished adapter"]
    base: Annotated[str, "tiny, or a folder or hub id of a causal model"] = TINY
    variant: Annotated[
        Literal["sft_only", "no_embedding"], "reads coordinates, or the same entries as text"
    ] = "sft_only"
    epochs: Annotated[int, "times that every pair is seen"] = 3
    tokens: Annotated[int, "a step, padding included"] = 65_536
    longest: Annotated[int, "tokens of a program; longer ones are dropped"] = 1024
    rank: Annotated[int, "of the adapters; 32 is the largest multiple of 8 within 4 MB"] = 32
    lr: Annotated[float, "highest learning rate"] = 2e-3
    lr_end: Annotated[float, "last learning rate, as a share of the highest"] = 0.02
    warmup: Annotated[int, "steps over which the learning rate rises"] = 50
    weight_decay: Annotated[float, "of all trained weights"] = 0.0
    clip: Annotated[float, "largest norm of a step's gradients"] = 1.0
    seed: Annotated[int, "of new weights, batches and samples"] = 0
    select: Annotated[int, "programs sampled to judge a candidate by; 0 takes the last one"] = 0
    candidates: Annotated[int, "adapters to choose from, saved over the second half"] = 4
    judge: Annotated[Literal["auto", "cuda", "emulator"], "what verifies their programs"] = "auto"
    ship: Annotated[
        Path | None, "folder of weights that base and finished adapter are put into"
    ] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], "where to compute"] = "auto"
    workers: Annotated[int, "processes that make batches for a GPU; 0: none"] = 2
    minutes: Annotated[
        float | None, "stop at a checkpoint after this long; no limit if left out"
    ] = None
    save_every: Annotated[int, "steps between checkpoints"] = 250
    log_every: Annotated[int, "steps between lines of the curve"] = 20
    tracking: Annotated[Literal["on", "off"], "MLflow"] = "on"

    @property
    def competitor(self) -> Variant:
        """The variant that is trained."""
        return next(variant for variant in VARIANTS if variant.name == self.variant)

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        small = [name for name in COUNTS if getattr(self, name) < 1]
        wrong = [f"{name.replace('_', '-')} {getattr(self, name)}: at least 1" for name in small]
        checks = {
            f"lr {self.lr}: above 0, below 1": 0 < self.lr < 1,
            f"lr-end {self.lr_end}: from 0 to 1": 0 <= self.lr_end <= 1,
            f"warmup {self.warmup}: 0 or more": self.warmup >= 0,
            f"weight-decay {self.weight_decay}: from 0 to 1": 0 <= self.weight_decay <= 1,
            f"clip {self.clip}: above 0": self.clip > 0,
            f"seed {self.seed}: 0 or more": self.seed >= 0,
            f"select {self.select}: 0 or more": self.select >= 0,
            f"workers {self.workers}: 0 or more": self.workers >= 0,
            f"minutes {self.minutes}: above 0": self.minutes is None or self.minutes > 0,
        }
        wrong += [text for text, right in checks.items() if not right]
        if wrong:
            raise ConfigError(wrong)


# What may differ between the sessions of one run.
SESSION_ONLY = frozenset(
    {"pairs", "out", "base", "device", "workers", "minutes", "save_every", "log_every", "tracking"}
    | {"select", "judge", "candidates", "ship"}
)


def decisive(config: SftConfig, base: str, examples: str, steps: int) -> dict[str, str]:
    """What must be the same in all sessions of a run, as plain text.

    Args:
        config: What is asked for.
        base: Fingerprint of the base.
        examples: Digest of the examples.
        steps: In all.
    """
    kept = {name: str(v) for name, v in vars(config).items() if name not in SESSION_ONLY}
    return {**kept, "base": base, "examples": examples, "steps": str(steps)}


def candidate_steps(steps: int, count: int) -> list[int]:
    """After which steps an adapter is kept: evenly over the second half, the last one included."""
    return sorted({steps - (steps - steps // 2) * turn // count for turn in range(count)})
