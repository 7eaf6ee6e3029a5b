"""Files that are whole or absent, whoever else writes them at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; it takes ``path``'s place when the block ends without an exception.

    Otherwise nothing is left behind. Makes the folder where there is none.

    Raises:
        OSError: The folder cannot be made, or the file not put into its place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
