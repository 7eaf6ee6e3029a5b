"""The point of the teacher's space that does what a text does, or comes near it.

A search steps through points, and a model writes texts. Both have a key of what they do
(``teacher.describe``); parameter by parameter, the point is moved to where its key has most in
common with the text's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from suite.harness.parse import parse
from suite.harness.plan import ParseError
from suite.problem import Op
from training.teacher.describe import describe
from training.teacher.space import Program, combinations, of
from training.teacher.strategy import Strategy, Value

PASSES = 3  # over all parameters


def nearest(text: str) -> Program | None:
    """The nearest point, plainly written; None where the text is no program or has no like.

    Args:
        text: A program, whoever wrote it.
    """
    try:
        declaration, wanted = parse(text), _features(text)
    except (ParseError, ValueError):
        return None
    fmt = declaration.spelling.split()[0]
    found = [_climbed(one, wanted) for one in of(Op(declaration.op)) if _format(one) == fmt]
    return min(found, key=lambda one: one[0])[1] if found else None


def _climbed(strategy: Strategy, wanted: Counter[str]) -> tuple[int, Program]:
    chosen = dict(strategy.combinations[0])
    best = _distance(strategy.name, chosen, wanted)
    for _ in range(PASSES):
        before = best
        for name in strategy.choices:
            for other in _moved(strategy, chosen, name):
                distance = _distance(strategy.name, other, wanted)
                if distance < best:
                    best, chosen = distance, other
        if best in (0, before):
            break
    return best, Program(strategy.name, tuple(chosen.items()))


def _moved(strategy: Strategy, chosen: dict[str, Value], name: str) -> Iterator[dict[str, Value]]:
    """Points that differ in one parameter, or in another too where that one must follow."""
    allowed = combinations(strategy.name)
    for value in strategy.choices[name]:
        moved = chosen | {name: value}
        if value == chosen[name]:
            continue
        if tuple(moved.items()) in allowed:
            yield moved
            continue
        for second, others in strategy.choices.items():
            both = (moved | {second: other} for other in others if second != name)
            yield from (one for one in both if tuple(one.items()) in allowed)


def _distance(name: str, chosen: dict[str, Value], wanted: Counter[str]) -> int:
    mine = _features(Program(name, tuple(chosen.items())).text)
    return ((mine - wanted) + (wanted - mine)).total()


def _features(text: str) -> Counter[str]:
    """The parts of a text's key, each edge of a block by itself."""
    found: Counter[str] = Counter()
    for part in describe(text).replace("|", " ").split():
        shape, at, grid = part.partition("@")
        edges = shape.split("x") if at else [part]
        found.update(f"{axis}:{edge}" for axis, edge in enumerate(edges))
        found.update([grid] if at else [])
    return found


def _format(strategy: Strategy) -> str:
    first = Program(strategy.name, tuple(strategy.combinations[0].items()))
    return parse(first.text).spelling.split()[0]
