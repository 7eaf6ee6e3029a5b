"""What a set of rows is told apart by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from suite.record import Row


def digest(rows: Iterable[Row]) -> str:
    """SHA-256 of the rows in any order, as 64 hexadecimal digits."""
    lines = sorted(json.dumps(row.to_dict(), sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
