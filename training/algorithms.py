"""What a group's rewards say about each of its programs: a row for each algorithm.

Letters: P problems, G programs of each, the group. Rewards are P × G; NaN where nothing is known.
An advantage says how much likelier a program is to become; nothing that is asked of them is ever
not a number, whatever the rewards are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Rewards = NDArray[np.float64]
Loss = Literal["dapo", "dr_grpo"]


@dataclass(frozen=True)
class Algorithm:
    """A way to learn from groups.

    Attributes:
        advantages: P × G, of rewards, of whether each program is right, and of the spread of
            rewards below which a group's differences are taken for noise.
        loss: TRL's way of adding up tokens: ``dapo`` weighs all tokens of a step alike, ``dr_grpo``
            divides by a constant, so that a program's advantage counts once for each of its tokens.
        text: What it is.
    """

    advantages: Callable[[Rewards, NDArray[np.bool_], float], Rewards]
    loss: Loss
    text: str


def grpo(rewards: Rewards, right: NDArray[np.bool_], noise: float) -> Rewards:
    """Distance from the group's mean in its standard deviations, which are at least ``noise``."""
    centred, count = _centred(rewards)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / np.maximum(count - 1, 1))
    found: Rewards = centred / np.maximum(spread, max(noise, 1e-6))
    return found


def rloo(rewards: Rewards, right: NDArray[np.bool_], noise: float) -> Rewards:
    """Distance from the mean of the others in the group."""
    centred, count = _centred(rewards)
    others = np.maximum(count - 1, 1)
    return centred * count / others


def best_of_n(rewards: Rewards, right: NDArray[np.bool_], noise: float) -> Rewards:
    """1 for the best right program of each group and 0 for all others: expert iteration."""
    found = np.zeros_like(rewards)
    eligible = right & np.isfinite(rewards)
    ranked = np.where(eligible, rewards, -np.inf)
    groups = np.flatnonzero(eligible.any(axis=1))
    found[groups, ranked[groups].argmax(axis=1)] = 1.0
    return found


ALGORITHMS: Mapping[str, Algorithm] = {
    "grpo": Algorithm(grpo, "dapo", "group-relative, by standard deviations"),
    "rloo": Algorithm(rloo, "dr_grpo", "leave-one-out baseline"),
    "best_of_n": Algorithm(best_of_n, "dapo", "the best of each group as an example"),
}


def spread_out(
    rewards: Rewards,
    right: NDArray[np.bool_],
    strategies: Sequence[Sequence[str]],
    weight: float,
    margin: float,
) -> Rewards:
    """Rewards with something on top for rare strategies where little is at stake.

    A right program that is within ``margin`` of its group's best gains ``weight`` times the share
    of the group's right programs that go another way. So no strategy dies out where it is nearly
    as good, and none is kept alive that is much worse.
    """
    found = rewards.copy()
    if weight == 0:
        return found
    for group in range(len(rewards)):
        members = np.flatnonzero(right[group] & np.isfinite(rewards[group]))
        if not members.size:
            continue
        names = np.array([strategies[group][int(at)] for at in members])
        best = rewards[group, members].max()
        for at, name in zip(members, names, strict=True):
            if rewards[group, at] >= best - margin:
                found[group, at] += weight * float(np.mean(names != name))
    return found


def _centred(rewards: Rewards) -> tuple[Rewards, NDArray[np.int64]]:
    """Rewards less their group's mean, 0 where nothing is known, and how many are known."""
    known = np.isfinite(rewards)
    count = known.sum(axis=1, keepdims=True)
    filled = np.where(known, rewards, 0.0)
    mean = filled.sum(axis=1, keepdims=True) / np.maximum(count, 1)
    return np.where(known, filled - mean, 0.0), count
