"""What a test says beside its statistics: verdict, compiler's figures, speedups where there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from suite.campaign import outcome, representative
from suite.metrics import (
    CACHES,
    REFERENCES,
    bandwidth_fraction,
    bandwidth_gbps,
    reference_times,
    time_us,
)
from suite.problem import Op
from suite.record import Ask, Row
from suite.replay import Replay

_AS_THEY_ARE = (
    "error",
    "detail",
    "device",
    "error_ratio",
    "registers",
    "spill_bytes",
    "format",
    "format_bytes",
    "conversion_ms",
    "prepare_us",
    "compile_ms",
    "hot_us",
    "hot_low_us",
    "hot_high_us",
    "cold_us",
    "cold_low_us",
    "cold_high_us",
    "sm_mhz",
    "disturbed",
)


def info(rows: Sequence[Row], everyone: Sequence[Row]) -> Mapping[str, Any]:
    """Facts about the rows of one ask.

    Args:
        rows: The ask's rows, at least one.
        everyone: All rows known so far, for the references of the same problem.

    Returns:
        Only what there is: an emulated run has no key with ``speedup`` or ``bandwidth`` in it.
    """
    row = representative(rows)
    facts: dict[str, Any] = {
        "status": row.status.value,
        "correct": row.ok,
        "campaign": row.campaign,
        "problem": row.problem_key,
        "author": row.author,
    }
    facts.update(
        (name, value) for name in _AS_THEY_ARE if (value := getattr(row, name)) not in (None, "")
    )
    if len(rows) > 1:
        facts["sample"] = row.sample
        facts["samples"] = len(rows)
        facts["samples_correct"] = sum(r.ok for r in rows)
    if row.emulated_us is not None:
        facts["emulated"] = True
        facts["emulated_us"] = row.emulated_us
    same = [other for other in everyone if other.problem_key == row.problem_key]
    for cache in CACHES:
        time = time_us(row, cache)
        if time is None:
            continue
        facts[f"bandwidth_gbps.{cache}"] = bandwidth_gbps(row, cache)
        share = bandwidth_fraction(row, cache)
        if share is not None:
            facts[f"bandwidth_fraction.{cache}"] = share
        for author in REFERENCES:
            reference = reference_times(same, author, cache).times.get(row.problem_key)
            if reference is not None:
                facts[f"speedup_vs_{author}.{cache}"] = reference / time
    return facts


def replay_of(ask: Ask, rows: Sequence[Row], everyone: Sequence[Row]) -> Replay:
    """The rows of one ask as a measurement; without samples unless it passed."""
    row = representative(rows)
    emulated = row.emulated_us is not None
    samples = (row.emulated_us,) if row.emulated_us is not None else row.hot_samples_us
    passed = outcome(ask.kind, rows).verdict == "passed"
    params: dict[str, Any] = {"matrix": ask.matrix, "author": ask.author}
    if ask.op is Op.SPMM:
        params["columns"] = ask.columns
    return Replay(
        test=ask.test,
        params=params,
        group=f"{ask.problem_key} (emulated)" if emulated else ask.problem_key,
        samples_us=samples if passed else (),
        extra=info(rows, everyone),
    )
