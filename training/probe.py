"""Whether a prompt's last state tells the family of an unseen matrix: a linear probe.

Ridge regression to one column a family, on states with mean 0 and deviation 1; how much it is held
back is chosen on a fifth of the training matrices. Pure functions over arrays.

Letters: S states, d width, F families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.intervals import wilson

PENALTIES = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
HELD_BACK = 5  # every fifth training state chooses the penalty


@dataclass(frozen=True)
class Probed:
    """How well families are told apart.

    Attributes:
        accuracy: Share of unseen matrices whose family is named.
        low: Lower end of Wilson's 95 % interval; matrices are independent.
        high: Upper end.
        count: Unseen matrices.
        commonest: Accuracy of always naming the family that is commonest in training.
        families: Accuracy for each family.
        penalty: The one that was chosen.
    """

    accuracy: float
    low: float
    high: float
    count: int
    commonest: float
    families: dict[str, float]
    penalty: float


@dataclass(frozen=True)
class Probe:
    """A fitted probe.

    Attributes:
        mean: Of each feature, d.
        deviation: Of each feature, d.
        weights: (d + 1) × F, the last row for a constant.
        families: The names, F.
    """

    mean: np.ndarray
    deviation: np.ndarray
    weights: np.ndarray
    families: tuple[str, ...]

    def name(self, states: np.ndarray) -> list[str]:
        """The family of each state, S × d."""
        scored = _standard(states, self.mean, self.deviation) @ self.weights
        return [self.families[at] for at in scored.argmax(axis=1)]


def fit(states: np.ndarray, families: Sequence[str], penalty: float) -> Probe:
    """Fits a probe to states, S × d, and their families."""
    states = states.astype(np.float64)
    names = tuple(sorted(set(families)))
    mean = states.mean(axis=0)
    deviation = states.std(axis=0) + 1e-6
    inputs = _standard(states, mean, deviation)
    wanted = np.array([[float(family == name) for name in names] for family in families])
    held = penalty * np.eye(inputs.shape[1])
    held[-1, -1] = 0.0  # the constant is free
    weights = np.linalg.lstsq(inputs.T @ inputs + held, inputs.T @ wanted, rcond=None)[0]
    return Probe(mean, deviation, weights, names)


def probe(
    states: np.ndarray, families: Sequence[str], unseen: np.ndarray, truth: Sequence[str]
) -> Probed:
    """Fits on training states and says how it does on unseen ones.

    Args:
        states: Of training matrices, S × d.
        families: Theirs.
        unseen: States of other matrices.
        truth: Their families.
    """
    held = np.arange(len(families)) % HELD_BACK == 0
    told = np.array(families)
    scores = {
        penalty: _accuracy(
            fit(states[~held], told[~held].tolist(), penalty), states[held], told[held]
        )
        for penalty in PENALTIES
    }
    penalty = max(scores, key=lambda one: (scores[one], one))
    named = np.array(fit(states, families, penalty).name(unseen))
    real = np.array(truth)
    right = named == real
    accuracy = float(right.mean())
    names, counts = np.unique(told, return_counts=True)
    commonest = float((real == names[counts.argmax()]).mean())
    return Probed(
        accuracy,
        *wilson(accuracy, len(truth)),
        len(truth),
        commonest,
        {str(name): float(right[real == name].mean()) for name in np.unique(real)},
        penalty,
    )


def _accuracy(fitted: Probe, states: np.ndarray, families: np.ndarray) -> float:
    return float((np.array(fitted.name(states)) == families).mean())


def _standard(states: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    scaled = (states - mean) / deviation
    return np.hstack([scaled, np.ones((len(states), 1))])
