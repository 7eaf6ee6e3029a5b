"""Specs of generated matrices: a function, its arguments, and a key that tells kinds apart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

from scipy import sparse

from suite.matrices.base import MatrixSpec

Argument = int | float | str | Sequence[int]


def recipe(
    name: str, family: str, make: Callable[..., sparse.csr_array], /, **arguments: Argument
) -> MatrixSpec:
    """A spec that calls ``make`` with ``arguments``; it pickles, for other processes to build."""
    shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return MatrixSpec(
        name=name,
        family=family,
        make=partial(make, **arguments),
        params={key: _scalar(value) for key, value in arguments.items()},
        source=f"{make.__module__}.{make.__qualname__}({shown})",
    )


def structure_key(spec: MatrixSpec) -> str:
    """Family and parameters without the seed: a new seed makes no new kind of matrix."""
    parts = [f"{key}={value}" for key, value in sorted(spec.params.items()) if key != "seed"]
    return f"{spec.family}({', '.join(parts)})"


def short_digest(text: str) -> str:
    """Eight hex digits that identify ``text``."""
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _scalar(value: Argument) -> int | float | str:
    return value if isinstance(value, int | float | str) else ",".join(map(str, value))
