"""The least that must be moved is a sure bound, and no honest time is below it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from suite.harness.traffic import COLD_US, PEAK_OVER_COPY, compulsory_bytes, shortest_us

PUBLISHED = Path(__file__).parents[2] / "reports" / "published" / "h200" / "rows.parquet"
H200_COPY_GBPS, H200_L2 = 4300.0, 60 << 20


def test_values_count_once_and_of_the_output_what_the_cache_cannot_hold() -> None:
    assert compulsory_bytes(1000, 400, 500) == 1000
    assert compulsory_bytes(1000, 700, 500) == 1200


def test_the_shortest_time_is_traffic_at_the_peak_less_an_allowance() -> None:
    assert (PEAK_OVER_COPY, COLD_US) == (1.2, 1.0)
    assert shortest_us(4_800_000, 4000.0) == pytest.approx(0.0)
    assert shortest_us(480_000_000, 4000.0) == pytest.approx(99.0)
    assert shortest_us(0, 4000.0) < 0


def test_no_published_time_of_a_right_program_comes_near_it() -> None:
    rows = pq.read_table(PUBLISHED).to_pylist()
    closest = 0.0
    for row in rows:
        if row["status"] != "ok":
            continue
        output = 4 * row["rows"] * row["columns"]
        least = compulsory_bytes(4 * row["nnz"], output, H200_L2)
        closest = max(closest, shortest_us(least, H200_COPY_GBPS) / row["cold_us"])
    assert 0.5 < closest < 0.9  # the bound bites, and is kept
