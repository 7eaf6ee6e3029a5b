"""A training run's state on disk, whole or not at all."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from suite.harness.files import replacing
from training.errors import TrainingError
from training.settled import hold

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that the next step depends on.

    Attributes:
        step: Steps done; it is the position in the data as well, for batches follow from the step.
        decisive: What must be the same when the run goes on.
        weights: The trained parameters by name.
        optimizer: State of the optimiser.
        rng: State of the random generators, the CPU's first.
        pending: Losses of the last steps, which no line of the curve has yet.
    """

    step: int
    decisive: dict[str, str]
    weights: dict[str, torch.Tensor]
    optimizer: dict[str, Any]
    rng: list[torch.Tensor]
    pending: list[float]


def save(path: Path, state: Checkpoint) -> None:
    """Writes a checkpoint; the one before stays until the new one is complete."""
    with replacing(path) as draft:
        torch.save({"schema": SCHEMA, **vars(state)}, draft)


def load(path: Path, decisive: Mapping[str, str]) -> Checkpoint | None:
    """The checkpoint at a path; None when there is none.

    Raises:
        ConfigError: It is of a run with another configuration; lists what differs.
        TrainingError: It cannot be read.
    """
    if not path.exists():
        return None
    try:
        data = torch.load(path, map_location="cpu", weights_only=True)
        if data.pop("schema") != SCHEMA:
            raise ValueError("written by another version")
        state = Checkpoint(**data)
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from error
    except pickle.UnpicklingError as error:
        raise _damaged(path, error) from error
    hold(path, state.decisive, decisive)
    return state


def _damaged(path: Path, error: Exception) -> TrainingError:
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return TrainingError(f"{path}: cannot be read ({first}); delete it to start over")


def rng_state() -> list[torch.Tensor]:
    """State of all random generators, the CPU's first."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *cuda]


def restore_rng(states: list[torch.Tensor]) -> None:
    """Puts the generators back; those of GPUs that are not here are left out."""
    torch.set_rng_state(states[0])
    if torch.cuda.is_available():
        for index, state in enumerate(states[1 : 1 + torch.cuda.device_count()]):
            torch.cuda.set_rng_state(state, index)
