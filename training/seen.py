"""What of a matrix stands in prompts, kept beside the pairs, so that no matrix is built twice.

A matrix is made again from its recipe, in worker processes, and held to the digest that its pairs
were verified with. What is kept is the nonzeros that a model is shown and the sizes that it is
told, whatever the encoding and the tokenizer.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suite.harness.files import replacing
from suite.matrices.base import MatrixSpec
from suite.models.sampler import SHOWN, Scale, Shown, sample, scale
from training.errors import TrainingError

FILE = "seen.parquet"
HOME = "suite.matrices."  # where recipes come from
FEW = 24  # matrices that are not worth starting processes for


@dataclass(frozen=True)
class Seen:
    """A matrix as a model gets to see it.

    Attributes:
        matrix: Its name.
        family: Its structure.
        digest: Of the whole matrix.
        shown: Some of its nonzeros.
        size: The numbers that tell how large it is.
    """

    matrix: str
    family: str
    digest: str
    shown: Shown
    size: Scale


def look(spec: MatrixSpec, count: int = SHOWN) -> Seen:
    """Builds a matrix and keeps what a prompt needs of it."""
    matrix = spec.build()
    csr = matrix.csr
    return Seen(matrix.name, matrix.family, matrix.digest, sample(csr, count), scale(csr))


def look_at(specs: Sequence[MatrixSpec], workers: int = 0) -> Iterator[Seen]:
    """The same for many, in their order.

    Args:
        specs: What to build.
        workers: Processes; as many as there are cores if 0.
    """
    workers = workers or os.cpu_count() or 1
    if len(specs) <= FEW or workers == 1:
        yield from map(look, specs)
        return
    context = multiprocessing.get_context("spawn")  # the parent may hold a GPU
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(look, specs, chunksize=4)


def spec_of(name: str, family: str, source: str) -> MatrixSpec:
    """A spec from the recipe that a pair was stored with.

    Raises:
        TrainingError: It is no recipe of this project.
    """
    try:
        call = ast.parse(source, mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("not a call with named arguments")
        module, _, function = ast.unparse(call.func).rpartition(".")
        if not module.startswith(HOME):
            raise ValueError(f"not in {HOME}")
        make: Callable[..., Any] = getattr(import_module(module), function)
        arguments = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, ImportError, AttributeError) as error:
        raise TrainingError(f"{name}: {source!r} is no recipe of a matrix ({error})") from error
    return MatrixSpec(name, family, partial(make, **arguments), source=source)


def of_pairs(folder: Path, pairs: pa.Table, say: Callable[[str], None], workers: int = 0) -> Path:
    """Makes sure that everything the pairs need is kept beside them; returns the file.

    Raises:
        TrainingError: A matrix is not the one that its pairs were verified with.
    """
    path = folder / FILE
    held = read(path) if path.exists() else {}
    columns = [pairs[name].to_pylist() for name in ("matrix_digest", "matrix", "family", "recipe")]
    wanted = {digest: rest for digest, *rest in zip(*columns, strict=True)}
    missing = {digest: spec_of(*rest) for digest, rest in wanted.items() if digest not in held}
    if not missing:
        return path
    found = []
    for digest, seen in zip(missing, look_at(list(missing.values()), workers), strict=True):
        if seen.digest != digest:
            raise TrainingError(
                f"{seen.matrix}: its recipe now gives another matrix than its pairs were verified"
                " with; make the pairs again"
            )
        found.append(seen)
        if len(found) % 500 == 0:
            say(f"{len(found):,} of {len(missing):,} matrices looked at")
    write(path, [*held.values(), *found])
    say(f"{path}: what {len(held) + len(found):,} matrices show")
    return path


def write(path: Path, seen: Iterable[Seen]) -> None:
    """Writes what was seen, whole or not at all."""
    rows = [
        {
            "matrix": one.matrix,
            "family": one.family,
            "digest": one.digest,
            "rows": one.shown.rows,
            "cols": one.shown.cols,
            "names": list(one.size.sizes),
            "sizes": list(one.size.sizes.values()),
            "lengths": list(one.size.lengths),
        }
        for one in seen
    ]
    with replacing(path) as draft:
        pq.write_table(pa.Table.from_pylist(rows), draft, compression="zstd")


def read(path: Path) -> dict[str, Seen]:
    """What was seen, by the digest of the matrix.

    Raises:
        TrainingError: It cannot be read.
    """
    try:
        rows = pq.read_table(path).to_pylist()
        return {
            row["digest"]: Seen(
                row["matrix"],
                row["family"],
                row["digest"],
                Shown(np.array(row["rows"], np.int64), np.array(row["cols"], np.int64)),
                Scale(dict(zip(row["names"], row["sizes"], strict=True)), tuple(row["lengths"])),
            )
            for row in rows
        }
    except (OSError, KeyError, pa.ArrowException) as error:
        raise TrainingError(f"{path}: cannot be read ({error}); delete it") from error
