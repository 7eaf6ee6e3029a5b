"""Items as the suite sees them: what each asks, where it belongs, how far along it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from suite.campaign import Pair, ask
from suite.problem import Op
from suite.record import Ask
from suite.session import Session

ASK = pytest.StashKey[Ask]()
PLACE = pytest.StashKey[tuple[int, int, int]]()
"""How many items share the matrix, which matrix it is from 1, and of how many."""


def prepare(item: pytest.Item, session: Session) -> tuple[int, int] | None:
    """Attaches to an item what it asks, and says where it belongs: matrix by matrix, as asked for.

    Returns:
        Position of its matrix and its position among the pairs; None when it asks nothing.
    """
    marker = item.get_closest_marker("suite")
    call = getattr(item, "callspec", None)
    found = session.find(Op(marker.args[0]), call.id) if marker and call else None
    if found is None:
        return None
    pair, position = found
    item.stash[ASK] = ask(session.config, pair, item.nodeid)
    # For --dist loadgroup. It is not made the default: after a crash it leaves the group's rest
    # unrun.
    item.add_marker(pytest.mark.xdist_group(pair.matrix.name))
    # A failed or skipped item has nothing to time, and that is reported already.
    item.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"))
    return position


def parameter(pair: Pair, name: str) -> str | int:
    """The value of a test function's parameter: ``matrix``, ``author`` or ``columns``."""
    match name:
        case "matrix":
            return pair.matrix.name
        case "author":
            return pair.author.name
    return pair.columns


def place(items: Sequence[pytest.Item]) -> None:
    """Tells each item how many share its matrix, and which of how many matrices that is."""
    counts = Counter(item.stash[ASK].matrix for item in items)
    positions = {matrix: at for at, matrix in enumerate(counts, 1)}
    for item in items:
        matrix = item.stash[ASK].matrix
        item.stash[PLACE] = (counts[matrix], positions[matrix], len(counts))
