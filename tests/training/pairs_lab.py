"""A few pairs, not verified, and a tiny base that can read them; for the tests of stage two."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from training import draws
from training.draws_config import DrawsConfig
from training.pairs import with_verdict


def make_pairs(folder: Path, matrices: int = 2, each: int = 4) -> pa.Table:
    """Pairs of small training matrices, as ``python -m training pairs`` stores them."""
    config = DrawsConfig(out=folder, per_matrix=each, largest=4e3)
    specs = itertools.islice(draws.specs(config.smallest, config.largest, config.seed), matrices)
    rows = [
        with_verdict(row, "ok")
        for turn, spec in enumerate(specs)
        for row in draws.rows_of(turn, spec.build(), config, Counter(), set())
    ]
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, folder / "pairs-00000.parquet")
    return table


def make_base(folder: Path, texts: list[str], seed: int = 0) -> Any:
    """A random base whose tokenizer knows these texts; returns the tokenizer."""
    from suite.models import policy
    from suite.models.tiny import TinyConfig
    from training import tokenizer

    words = tokenizer.fit(texts, 700)
    shape = TinyConfig(vocabulary=len(words), width=16, layers=1, heads=2, kv_heads=1, mlp=32)
    end, pad = words.eos_token_id, words.pad_token_id
    policy.save_base(shape.build(end, pad, seed), words, folder, "random")
    return words
