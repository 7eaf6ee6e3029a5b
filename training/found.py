"""The fastest programs that runs and searches have found, as pairs to learn from.

Reinforcement learning sharpens what a policy already writes. What an autotuner, a group's best
sample or another run found is fed back here: as pairs of stage two, right and fast, in the format
that ``python -m training sft`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from suite.harness.files import replacing
from suite.matrices.sets import SETS
from training.errors import TrainingError
from training.measured import Found, Measurements
from training.strategies import strategy_of
from training.teacher.describe import describe, digest, normalised

SHARD = "pairs-00000.parquet"
HELD_OUT = ("validation", "test")


def export(files: Sequence[Path], out: Path, within: float, most: int) -> int:
    """Writes pairs.

    Args:
        files: Of ``training.measured``.
        out: Folder of the pairs.
        within: Times a problem's fastest time, up to which others come too.
        most: Programs of a problem.

    Returns:
        How many.

    Raises:
        TrainingError: A file is not there, or nothing timed and right is in them.
    """
    rows: dict[tuple[str, str, int, str], dict[str, Any]] = {}
    for file in files:
        if not file.is_file():
            raise TrainingError(f"{file}: is not there; give the known.sqlite of a run or a search")
        known = Measurements(file, "")
        for found in _learnable(known.best(within, most)):
            rows.setdefault((found.matrix_digest, found.op, found.columns, found.text), _row(found))
        known.close()
    if not rows:
        raise TrainingError(
            f"{', '.join(map(str, files))}: no right program of a training matrix was timed on a"
            " GPU; nothing is faster than another"
        )
    with replacing(out / SHARD) as draft:
        pq.write_table(pa.Table.from_pylist(list(rows.values())), draft)
    return len(rows)


def _learnable(found: Iterator[Found]) -> Iterator[Found]:
    """Those whose matrix nobody is examined on."""
    held_out = {spec.name for name in HELD_OUT for spec in SETS[name]()}
    return (one for one in found if one.matrix.partition("+")[0] not in held_out)


def _row(found: Found) -> dict[str, Any]:
    return {
        "matrix": found.matrix,
        "family": found.family,
        "recipe": found.recipe,
        "matrix_digest": found.matrix_digest,
        "op": found.op,
        "n": found.columns,
        "dtype": found.dtype,
        "strategy": f"{found.op} {strategy_of(found.text)}",
        "parameters": "{}",
        "writing": "{}",
        "text": found.text,
        "text_digest": digest(found.text),
        "key": describe(found.text),
        "normal_digest": digest(normalised(found.text)),
        "status": "ok",
        "binary": "",
        "hot_us": found.hot_us,
    }
