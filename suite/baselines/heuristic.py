"""``heuristic``: picks one baseline for a matrix from its features, without measuring anything.

The rule is a small decision tree for each operation, fitted by ``suite.baselines.fit`` on training
matrices and kept in ``heuristic.json``. Its leaves rank the baselines; the first that applies to
the matrix answers. Together with the oracle ``best_of_baselines`` it is what a learned author has
to beat.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.author import Kind
from suite.baselines.files import FileAuthor, baselines
from suite.formats.base import NotApplicableError
from suite.harness.arithmetic import evaluate, names_in
from suite.harness.bind import with_sizes
from suite.harness.parse import parse
from suite.matrices.structure import facts, features
from suite.problem import Problem
from suite.program import KernelProgram

NAME = "heuristic"
RULE = Path(__file__).with_name("heuristic.json")


@dataclass(frozen=True)
class Leaf:
    """Baselines to try, best first."""

    ranking: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """Goes to ``low`` where the feature is at most the threshold, else to ``high``."""

    feature: str
    threshold: float
    low: Node
    high: Node


Node = Leaf | Split


@dataclass(frozen=True)
class Rule:
    """A tree for each operation and number of columns that it was fitted on.

    Attributes:
        trees: By label: ``spmv``, ``spmm32``.
        source: What it was fitted on, for the record.
    """

    trees: Mapping[str, Node]
    source: str

    def ranking(self, problem: Problem) -> tuple[str, ...]:
        """Names of baselines for a problem, best first; none when the operation is unknown."""
        tree = self._tree(problem)
        if tree is None:
            return ()
        known = features(problem.matrix.csr)
        while isinstance(tree, Split):
            tree = tree.low if known[tree.feature] <= tree.threshold else tree.high
        return tree.ranking

    def _tree(self, problem: Problem) -> Node | None:
        """The tree of the label, or of the nearest number of columns."""
        if problem.label in self.trees:
            return self.trees[problem.label]
        columns = {
            int(label.removeprefix(problem.op)): tree
            for label, tree in self.trees.items()
            if label.startswith(problem.op) and label != problem.op
        }
        wanted = math.log(max(problem.columns, 1))
        nearest = min(columns, key=lambda n: abs(math.log(n) - wanted), default=None)
        return None if nearest is None else columns[nearest]


class HeuristicAuthor:
    """Answers with the program of the baseline that the rule picks.

    Attributes:
        name: ``heuristic``.
        kind: ``CHOOSER``.
    """

    name = NAME
    kind = Kind.CHOOSER

    def __init__(self, rule: Rule, among: Sequence[FileAuthor]) -> None:
        self._rule = rule
        self._among = {author.name: author for author in among}

    def answers(self, op: str) -> bool:
        """Whether there is a tree for the operation."""
        return any(label.startswith(op) for label in self._rule.trees)

    def write(self, problem: Problem, samples: int) -> Sequence[KernelProgram]:
        """The text of the first baseline in the ranking that applies, of the first if none does."""
        known = [self._among[name].texts[problem.op] for name in self._rule.ranking(problem)]
        text = next((text for text in known if applies(text, problem)), known[0])
        return [KernelProgram(NAME, text)][:samples]


def applies(text: str, problem: Problem) -> bool:
    """Whether a program's format and ``require`` lines accept a matrix; converts nothing.

    Requirements on sizes that only a conversion would tell are taken to hold.
    """
    declaration = parse(text)
    csr = problem.matrix.csr
    sizes = {
        "rows": csr.shape[0],
        "cols": csr.shape[1],
        "nnz": csr.nnz,
        "n": problem.columns,
        "itemsize": problem.dtype.numpy.itemsize,
        **facts(csr),
    }
    known = with_sizes(declaration, sizes)
    if not all(
        evaluate(expression, known)
        for expression, _ in declaration.requires
        if names_in(expression) <= known.keys()
    ):
        return False
    try:
        declaration.format.footprint(csr)
    except NotApplicableError:
        return False
    return True


def authors(rule: Path = RULE) -> list[HeuristicAuthor]:
    """The author, if a rule has been fitted."""
    return [HeuristicAuthor(read(rule), baselines())] if rule.exists() else []


def read(path: Path) -> Rule:
    """Reads a rule that ``write`` wrote."""
    data = json.loads(path.read_text())
    return Rule({label: _node(tree) for label, tree in data["trees"].items()}, data["source"])


def write(rule: Rule, path: Path) -> None:
    """Writes a rule as JSON that a person can read and a diff can show."""
    trees = {label: _plain(tree) for label, tree in rule.trees.items()}
    path.write_text(json.dumps({"source": rule.source, "trees": trees}, indent=1) + "\n")


def _node(data: Mapping[str, object]) -> Node:
    match data:
        case {"ranking": list(names)}:
            return Leaf(tuple(map(str, names)))
        case {"feature": str(feature), "threshold": float(at), "low": dict(a), "high": dict(b)}:
            return Split(feature, at, _node(a), _node(b))
    raise ValueError(f"not a node of a rule: {data}")


def _plain(node: Node) -> dict[str, object]:
    if isinstance(node, Leaf):
        return {"ranking": list(node.ranking)}
    return {
        "feature": node.feature,
        "threshold": node.threshold,
        "low": _plain(node.low),
        "high": _plain(node.high),
    }
