"""``heuristic``: picks one baseline for a matrix from its structure, without measuring anything.

The rule is a table of prices: for each operation and baseline the microseconds of a launch, of a MB
read, of a million gathers and a few terms more (``suite.baselines.cost``). Prices times counts is a
predicted time; the baseline with the lowest that applies to the matrix answers. The table is fitted
by ``suite.baselines.fit`` on training matrices and kept in ``heuristic.json``. Together with the
oracle ``best_of_baselines`` it is what a learned author has to beat.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.author import Kind
from suite.baselines.cost import terms
from suite.baselines.files import FileAuthor, baselines
from suite.formats.base import NotApplicableError
from suite.harness.arithmetic import evaluate, names_in
from suite.harness.bind import with_sizes
from suite.harness.parse import parse
from suite.matrices.structure import Structure
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram

NAME = "heuristic"
RULE = Path(__file__).with_name("heuristic.json")

Prices = Mapping[str, Mapping[str, float]]  # microseconds of each term, by author

_PROBLEM = re.compile(r"(spmv|spmm)(\d*)/f(32|64)")


def problem_name(label: str, dtype: DType) -> str:
    """What a table of prices is for: ``spmm32/f32``."""
    return f"{label}/{dtype.short}"


@dataclass(frozen=True)
class Rule:
    """Prices for each problem that they were fitted on.

    Attributes:
        prices: By ``problem_name``.
        source: What it was fitted on, for the record.
    """

    prices: Mapping[str, Prices]
    source: str

    def predicted(self, problem: Problem, of: Structure) -> dict[str, float]:
        """Microseconds of each baseline, fastest first; none when the operation is unknown.

        Args:
            problem: With the number of dense columns for which terms are counted. Prices are those
                of the same precision if there are any, and of the nearest number of columns.
            of: Its matrix.
        """
        itemsize = problem.dtype.numpy.itemsize
        times = {
            author: _total(terms(author, problem.op, problem.columns, itemsize, of), prices)
            for author, prices in self._prices(problem).items()
        }
        return dict(sorted(times.items(), key=lambda item: item[1]))

    def _prices(self, problem: Problem) -> Prices:
        def distance(name: str) -> tuple[bool, float]:
            _, columns, bits = _parts(name)
            far = abs(math.log(columns / max(problem.columns, 1)))
            return bits != 8 * problem.dtype.numpy.itemsize, far

        fitting = [name for name in self.prices if _parts(name)[0] == problem.op]
        return self.prices[min(fitting, key=distance)] if fitting else {}


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
        """Whether there are prices for the operation."""
        return any(_parts(name)[0] == op for name in self._rule.prices)

    def write(self, problem: Problem, samples: int) -> Sequence[KernelProgram]:
        """The text of the fastest predicted baseline that applies, of the fastest if none does."""
        of = Structure(problem.matrix.csr)
        known = [self._among[name].texts[problem.op] for name in self._rule.predicted(problem, of)]
        text = next((text for text in known if applies(text, problem, of)), known[0])
        return [KernelProgram(NAME, text)][:samples]


def applies(text: str, problem: Problem, of: Structure) -> bool:
    """Whether a program's format and ``require`` lines accept a matrix.

    Converts the matrix only where a line names a size that nothing else would tell.

    Args:
        text: The program.
        problem: Gives the dense columns and the precision.
        of: The problem's matrix.
    """
    declaration = parse(text)
    csr = of.csr
    sizes = {
        "rows": csr.shape[0],
        "cols": csr.shape[1],
        "nnz": csr.nnz,
        "n": problem.columns,
        "itemsize": problem.dtype.numpy.itemsize,
        **of.facts,
    }
    if not _accepts(text, sizes):
        return False
    try:
        declaration.format.footprint(csr)
    except NotApplicableError:
        return False
    named = set().union(*(names_in(expression) for expression, _ in declaration.requires))
    if named.isdisjoint(declaration.format.size_names):
        return True
    return _accepts(text, {**sizes, **declaration.format.convert(csr).sizes})


def authors(rule: Path = RULE) -> list[HeuristicAuthor]:
    """The author, if a rule has been fitted."""
    return [HeuristicAuthor(read(rule), baselines())] if rule.exists() else []


def read(path: Path) -> Rule:
    """Reads a rule that ``write`` wrote.

    Raises:
        ValueError: The file holds something else; it says how to make it again.
    """
    try:
        data = json.loads(path.read_text())
        rule = Rule(data["prices"], data["source"])
        for name in rule.prices:
            _parts(name)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not a rule of this version ({error}); fit it with"
            " python -m suite.baselines.fit"
        ) from error
    return rule


def write(rule: Rule, path: Path) -> None:
    """Writes a rule as JSON, a line for each baseline, that a person can read and a diff show."""
    blocks = []
    for name, prices in rule.prices.items():
        lines = [
            f"  {json.dumps(author)}: {json.dumps(dict(own))}" for author, own in prices.items()
        ]
        blocks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    text = f'{{"source": {json.dumps(rule.source)},\n"prices": {{\n' + ",\n".join(blocks) + "\n}}\n"
    path.write_text(text)


def _accepts(text: str, sizes: Mapping[str, int]) -> bool:
    """Whether the ``require`` lines hold, as far as these sizes tell."""
    declaration = parse(text)
    known = with_sizes(declaration, sizes)
    return all(
        evaluate(expression, known)
        for expression, _ in declaration.requires
        if names_in(expression) <= known.keys()
    )


def _total(counts: Mapping[str, float], prices: Mapping[str, float]) -> float:
    return sum(price * counts[term] for term, price in prices.items())


def _parts(name: str) -> tuple[Op, int, int]:
    """Operation, dense columns and bits a value of a ``problem_name``."""
    if not (found := _PROBLEM.fullmatch(name)):
        raise ValueError(f"{name!r} is not a problem like spmm32/f32")
    return Op(found[1]), int(found[2] or 1), int(found[3])
