"""Which examples make up which step: of similar length, so that little is padding."""

from __future__ import annotations

import numpy as np

MULTIPLE = 64  # widths are rounded up, so that a GPU meets few shapes
WINDOW = 16  # batches whose examples are sorted by length before they are cut


def width(length: int) -> int:
    """Columns of a batch whose longest example has so many tokens."""
    return -(-length // MULTIPLE) * MULTIPLE


def plan(lengths: np.ndarray, tokens: int, epochs: int, seed: int) -> list[np.ndarray]:
    """The examples of every step; each takes part once in an epoch.

    A pure function of its arguments, so a run that goes on meets the same batches.

    Args:
        lengths: Tokens of each example.
        tokens: Rows times columns of a batch, at most; one example may have more.
        epochs: How often all are gone through.
        seed: Of their order.
    """
    batches: list[np.ndarray] = []
    for epoch in range(epochs):
        rng = np.random.default_rng((seed, epoch))
        order = rng.permutation(len(lengths))
        span = max(int(WINDOW * tokens / max(lengths.mean(), 1)), 1)
        mine = []
        for start in range(0, len(order), span):
            window = order[start : start + span]
            mine += _cut(window[np.argsort(lengths[window], kind="stable")], lengths, tokens)
        batches += [mine[at] for at in rng.permutation(len(mine))]
    return batches


def _cut(ordered: np.ndarray, lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Batches of examples that come shortest first."""
    found: list[np.ndarray] = []
    first = 0
    for at in range(1, len(ordered) + 1):
        if at == len(ordered) or (at + 1 - first) * width(int(lengths[ordered[at]])) > tokens:
            found.append(ordered[first:at])
            first = at
    return found
