"""The batches of a plan as a data set that a trainer takes whole, one row a step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from datasets import Dataset

from training.examples import Examples
from training.plan import width

IGNORED = -100  # label of what does not count


def batch(examples: Examples, chosen: np.ndarray, pad: int) -> dict[str, torch.Tensor]:
    """One batch, padded on the right, where causal attention never looks from what counts.

    Args:
        examples: All of them.
        chosen: Which make up the batch.
        pad: Id to fill up with.

    Returns:
        ``input_ids`` and ``labels``, rows × columns, and ``position_ids``, which count from 0 in
        every row: there is no mask to be built, and attention takes its fastest way.
    """
    columns = width(int(examples.lengths[chosen].max()))
    ids = np.full((len(chosen), columns), pad, np.int64)
    labels = np.full((len(chosen), columns), IGNORED, np.int64)
    for row, index in enumerate(chosen.tolist()):
        one, prompt = examples.at(index), examples.prompts[index]
        ids[row, : len(one)] = one
        labels[row, prompt : len(one)] = one[prompt:]
    return {
        "input_ids": torch.from_numpy(ids),
        "labels": torch.from_numpy(labels),
        "position_ids": torch.arange(columns).repeat(len(chosen), 1),
    }


def rows(examples: Examples, plan: Sequence[np.ndarray], pad: int) -> Dataset:
    """A data set with a row for each step; the batch is made when the row is read."""
    numbered = Dataset.from_dict({"step": list(range(len(plan)))})
    return numbered.with_transform(partial(_read, examples, plan, pad))


def _read(
    examples: Examples, plan: Sequence[np.ndarray], pad: int, asked: dict[str, list[int]]
) -> dict[str, list[Any]]:
    made = [batch(examples, plan[step], pad) for step in asked["step"]]
    return {name: [one[name] for one in made] for name in made[0]}


def only(given: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Collates a row that is a batch already."""
    (one,) = given
    return one
