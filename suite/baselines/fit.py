"""Fits ``heuristic``: ``python -m suite.baselines.fit .suite/CAMPAIGN ... [--out heuristic.json]``.

The rows come from a campaign of all baselines on training matrices. The tree minimises what matters
to its user, the mean logarithm of chosen time over best time, and not a number of misclassified
matrices: to take the second best kernel costs little. Leaving out groups of matrices in turn tells
which size of tree to take, and how far from the oracle it is on matrices that it has not seen.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from suite.author import Kind
from suite.baselines.heuristic import RULE, Leaf, Node, Rule, Split, write
from suite.evaluation import Status
from suite.journal import read
from suite.matrices.sets import select
from suite.matrices.structure import FEATURES, features
from suite.record import Row

MISSING = math.log(10)  # an author that does not apply, or fails: as the suite counts a failure
FOLDS = 5
LEAVES = (2, 4, 6, 8, 12, 16, 24)  # sizes to choose among
LEAST = 4  # matrices in a leaf


@dataclass(frozen=True)
class Table:
    """What a tree is fitted on; letters: P problems, F features, A authors.

    Attributes:
        authors: A names.
        known: Features, P × F, in the order of ``FEATURES``.
        regret: log(time / best time), P × A; ``MISSING`` where there is no time.
        applies: Whether the author applies, P × A; it may fail, or be slow, all the same.
    """

    authors: tuple[str, ...]
    known: np.ndarray
    regret: np.ndarray
    applies: np.ndarray

    def rows(self, chosen: np.ndarray) -> Table:
        """The same for some of the problems."""
        return Table(self.authors, self.known[chosen], self.regret[chosen], self.applies[chosen])


def table(rows: Sequence[Row], label: str, known: Mapping[str, Mapping[str, float]]) -> Table:
    """The table of one label.

    Args:
        rows: Of a campaign.
        label: ``spmv``, ``spmm32``.
        known: Features by matrix.

    Raises:
        ValueError: Nothing was timed on a GPU.
    """
    mine = [row for row in rows if row.label == label and row.kind is Kind.BASELINE]
    authors = sorted({row.author for row in mine})
    matrices = sorted({row.matrix for row in mine if row.hot_us})
    if not matrices:
        raise ValueError("no baseline has a time; give a campaign that ran on a GPU")
    times = np.full((len(matrices), len(authors)), np.nan)
    applies = np.zeros(times.shape, bool)
    for row in mine:
        if row.matrix not in matrices:
            continue
        at = matrices.index(row.matrix), authors.index(row.author)
        applies[at] |= row.status is not Status.NOT_APPLICABLE
        if row.hot_us:
            times[at] = math.log(row.hot_us)
    regret = times - np.nanmin(times, axis=1, keepdims=True)
    regret[np.isnan(regret)] = MISSING
    values = [[known[matrix][name] for name in FEATURES] for matrix in matrices]
    return Table(tuple(authors), np.array(values), regret, applies)


def fit(data: Table, leaves: int) -> Node:
    """A tree with at most so many leaves, grown where it gains most.

    Args:
        data: At least one problem.
        leaves: How many.
    """
    members: list[np.ndarray] = [np.arange(len(data.known))]
    splits: dict[int, tuple[int, float, int, int]] = {}
    open_leaves = {0: _best_split(data, members[0])}
    while len(open_leaves) < leaves:
        at = max(open_leaves, key=lambda leaf: open_leaves[leaf][0])
        gain, feature, threshold = open_leaves.pop(at)
        if gain <= 0:
            open_leaves[at] = (gain, feature, threshold)
            break
        low = data.known[members[at], feature] <= threshold
        splits[at] = (feature, threshold, len(members), len(members) + 1)
        for side in (members[at][low], members[at][~low]):
            open_leaves[len(members)] = _best_split(data, side)
            members.append(side)

    def node(at: int) -> Node:
        if at in splits:
            feature, threshold, low, high = splits[at]
            return Split(FEATURES[feature], threshold, node(low), node(high))
        order = np.argsort(data.regret[members[at]].mean(axis=0), kind="stable")
        return Leaf(tuple(data.authors[i] for i in order))

    return node(0)


def loss(tree: Node, data: Table) -> np.ndarray:
    """log(time / best time) of what the tree picks on each problem, P.

    As the author does, a tree passes over what does not apply, and over nothing else.
    """
    picked = []
    for known, regret, applies in zip(data.known, data.regret, data.applies, strict=True):
        at = tree
        while isinstance(at, Split):
            at = at.low if known[FEATURES.index(at.feature)] <= at.threshold else at.high
        order = [data.authors.index(name) for name in at.ranking]
        picked.append(next((regret[i] for i in order if applies[i]), MISSING))
    return np.array(picked)


def cross_validated(data: Table, leaves: int) -> float:
    """Mean loss on problems that were left out of the fit, each once.

    Raises:
        ValueError: Too few problems to leave some out.
    """
    if len(data.known) < FOLDS:
        raise ValueError(f"{len(data.known)} matrices with times; a fit takes {FOLDS} at least")
    fold = np.random.default_rng(0).permutation(len(data.known)) % FOLDS
    losses = [
        loss(
            fit(data.rows(np.flatnonzero(fold != f)), leaves), data.rows(np.flatnonzero(fold == f))
        )
        for f in range(FOLDS)
    ]
    return float(np.concatenate(losses).mean())


def _best_split(data: Table, members: np.ndarray) -> tuple[float, int, float]:
    """Gain, feature and threshold of the split that lowers the summed loss of the members most."""
    regret = data.regret[members]
    best = (0.0, 0, 0.0)
    whole = regret.sum(axis=0).min() if len(members) else 0.0
    for feature in range(data.known.shape[1]):
        order = np.argsort(data.known[members, feature], kind="stable")
        values = data.known[members[order], feature]
        below = np.cumsum(regret[order], axis=0)
        split = below.min(axis=1)[:-1] + (below[-1] - below[:-1]).min(axis=1)
        at = np.arange(1, len(members))
        allowed = (np.diff(values) > 0) & (at >= LEAST) & (len(members) - at >= LEAST)
        if not allowed.any():
            continue
        where = int(np.argmin(np.where(allowed, split, np.inf)))
        gain = float(whole - split[where])
        if gain > best[0] + 1e-12:
            best = (gain, feature, float((values[where] + values[where + 1]) / 2))
    return best


def main() -> None:
    """Reads rows, fits a tree for each label, writes the rule and says how good it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path, help="folder of a campaign")
    parser.add_argument("--matrices", default="tuning", help="what the campaign measured")
    parser.add_argument("--out", type=Path, default=RULE)
    options = parser.parse_args()
    rows = [row for folder in options.folder for row in read(folder.absolute()).rows]
    names = dict.fromkeys(row.matrix for row in rows if row.hot_us)
    specs = [spec for spec in select(options.matrices) if spec.name in names]
    known = {spec.name: features(spec.build().csr) for spec in specs}
    if unknown := names.keys() - known.keys():
        parser.error(f"{min(unknown)} is not among --matrices {options.matrices}; name its set")
    trees, report = {}, {}
    for label in dict.fromkeys(row.label for row in rows):
        try:
            data = table(rows, label, known)
            scores = {leaves: cross_validated(data, leaves) for leaves in LEAVES}
        except ValueError as error:
            parser.error(f"{label}: {error}")
        leaves = min(scores, key=scores.__getitem__)
        trees[label] = fit(data, leaves)
        report[label] = {
            "matrices": len(data.known),
            "leaves": leaves,
            "slower_than_oracle_left_out": math.expm1(scores[leaves]),
            "slower_than_oracle_fitted": math.expm1(float(loss(trees[label], data).mean())),
        }
    campaigns = ", ".join(dict.fromkeys(row.campaign for row in rows))
    write(Rule(trees, f"campaign {campaigns}, {len(names)} training matrices"), options.out)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
