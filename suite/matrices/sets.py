"""The table of named sets, and what ``--suite-matrices`` may say."""

from __future__ import annotations

import difflib
import fnmatch
import glob
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from suite.matrices import collection, files, named, permuted, splits
from suite.matrices.base import MatrixError, MatrixSpec
from suite.matrices.draws import may_be_drawn

SETS: Mapping[str, Callable[[], Sequence[MatrixSpec]]] = {
    "smoke": named.smoke,
    "paper": named.paper,
    "train": splits.train,
    "tuning": splits.tuning,
    "validation": splits.validation,
    "test": splits.test,
}
_COLLECTION = ("ss:", "suitesparse:")


def select(text: str) -> list[MatrixSpec]:
    """The matrices that a comma-separated list asks for, in its order, none twice.

    An item is, in this order of precedence:

    - a set: ``smoke``, ``paper``, ``train``, ``tuning``, ``validation``, ``test``;
    - ``ss:GROUP/NAME`` or ``suitesparse:NAME``, a matrix of the SuiteSparse collection;
    - the name of a matrix of any set;
    - a family, or a pattern with ``*``, ``?`` or ``[…]`` for names, among ``smoke`` and ``paper``;
    - a file, a folder of matrix files, or a pattern for paths;
    - any of these with ``+shuffled`` or ``+rcm`` behind it: the same in another order.

    Raises:
        MatrixError: An item matches nothing (it lists sets, families and close names), a file is
            not there, or two matrices would have one name; every such mistake has its line.
    """
    items = [item.strip() for item in text.split(",")]
    if not any(items):
        raise MatrixError(f"no matrices asked for; sets are {', '.join(SETS)}")
    found: list[MatrixSpec] = []
    mistakes: list[str] = []
    for item in filter(None, items):
        try:
            found += _match(item)
        except MatrixError as error:
            mistakes.append(str(error))
    by_name: dict[str, MatrixSpec] = {}
    for spec in found:
        first = by_name.setdefault(spec.name, spec)
        if (first.family, first.params) != (spec.family, spec.params):
            # Their results would be one row.
            mistakes.append(
                f"two matrices are called {spec.name}: {first.source} and {spec.source}; rename a"
                " file, or measure them in two runs"
            )
    if mistakes:
        raise MatrixError("\n".join(mistakes))
    return list(by_name.values())


def families() -> tuple[str, ...]:
    """Families of the matrices in ``smoke`` and ``paper``."""
    return tuple(sorted({spec.family for spec in _known()}))


def _known() -> tuple[MatrixSpec, ...]:
    return (*named.smoke(), *named.paper())


def _match(item: str) -> Sequence[MatrixSpec]:
    if item in SETS:
        return SETS[item]()
    for prefix in _COLLECTION:
        if item.startswith(prefix):
            return [collection.spec_for(item.removeprefix(prefix))]
    ordered = permuted.split(item)
    if ordered is not None and not Path(item).expanduser().exists():
        return [permuted.permuted(spec, ordered[1]) for spec in _match(ordered[0])]
    if os.sep not in item:
        found = [spec for spec in _known() if item in (spec.name, spec.family)]
        found = found or [spec for spec in _known() if fnmatch.fnmatchcase(spec.name, item)]
        if not found and may_be_drawn(item):  # drawing them all takes a second
            found = [spec for make in SETS.values() for spec in make() if spec.name == item]
        if found:
            return found
    return _paths(item)


def _paths(item: str) -> list[MatrixSpec]:
    path = Path(item).expanduser()
    if path.is_dir():
        return files.specs_in(path)
    if path.is_file():
        return [files.spec_for(path)]
    matches = [Path(match) for match in sorted(glob.glob(str(path)))]
    if wanted := [match for match in matches if match.is_file() and files.is_matrix_file(match)]:
        return [files.spec_for(match) for match in wanted]
    if os.sep in item or files.is_matrix_file(path):
        raise MatrixError(f"{item}: there is no such matrix file or folder")
    offered = [*SETS, *families(), *(spec.name for spec in _known())]
    close = difflib.get_close_matches(item, offered, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else "."
    raise MatrixError(
        f"{item!r} is no matrix, set, family or file{hint} Sets: {', '.join(SETS)}."
        f" Families: {', '.join(families())}"
    )
