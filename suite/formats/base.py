"""What a storage format is: pure functions from a canonical CSR matrix to named arrays.

A format never copies values. It says for each of its value slots which CSR entry belongs there, so
that fresh values for the same structure cost one gather on the device instead of another
conversion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import scipy

from suite.matrices.base import INT32_MAX

PADDING = -1  # in a value map: this slot belongs to no entry and holds zero


class NotApplicableError(ValueError):
    """The format, or the program, does not fit this matrix; the message says why."""


@dataclass(frozen=True)
class Layout:
    """One matrix in one format.

    Attributes:
        sizes: Integers that programs may name, beside ``rows``, ``cols``, ``nnz`` and ``n``.
        index: Structure arrays by name, one-dimensional. int32 unless the format says otherwise.
        values: Value arrays by name, each as an int32 map from slot to CSR entry, ``PADDING`` where
            the slot holds zero. ``None`` stands for the identity: the array is CSR's own, in order.
    """

    sizes: Mapping[str, int]
    index: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray | None]


@dataclass(frozen=True)
class Footprint:
    """Size of a matrix in a format, known before anything of that size is allocated.

    Attributes:
        index_bytes: Bytes of all structure arrays.
        value_slots: Number of value slots, padding included.
    """

    index_bytes: int
    value_slots: int

    def bytes(self, itemsize: int) -> int:
        """Bytes in all, at ``itemsize`` bytes a value."""
        return self.index_bytes + self.value_slots * itemsize


@dataclass(frozen=True)
class Format(ABC):
    """A storage format with its parameters chosen, for example ``Sell(c=32, sigma=1024)``.

    A subclass is a frozen dataclass whose fields are the parameters (positive integers with
    defaults), and lives in a module of its own in this package; nothing else has to know it.

    Attributes:
        name: What ``//! format`` calls it.
        size_names: Names in ``Layout.sizes``.
        index_names: Names and dtypes of ``Layout.index``.
        value_names: Names in ``Layout.values``.
    """

    name: ClassVar[str]
    size_names: ClassVar[tuple[str, ...]] = ()
    index_names: ClassVar[Mapping[str, str]]
    value_names: ClassVar[tuple[str, ...]] = ("vals",)

    @property
    def spelling(self) -> str:
        """As a ``//! format`` line spells it with every parameter: ``sell c=32 sigma=1024``."""
        return " ".join([self.name, *(f"{f.name}={getattr(self, f.name)}" for f in fields(self))])

    @abstractmethod
    def footprint(self, csr: scipy.sparse.csr_array) -> Footprint:
        """Size in this format, in O(Z) time and without allocating it.

        Raises:
            NotApplicableError: The format would blow up on this matrix (see ``refuse_blow_up``).
        """

    @abstractmethod
    def convert(self, csr: scipy.sparse.csr_array) -> Layout:
        """Converts the structure; call ``footprint`` first. Pure: ``csr`` is not changed."""


MAX_GROWTH = 8  # padded slots per entry that are still worth trying
ALWAYS_FINE = 1 << 20  # value slots; below that, padding is cheap whatever the ratio


def refuse_blow_up(what: str, slots: int, nnz: int) -> None:
    """Refuses a format that would hold mostly padding, or more slots than int32 counts.

    Raises:
        NotApplicableError: More than ``MAX_GROWTH`` slots per entry and more than ``ALWAYS_FINE``
            in all, or beyond int32; the message says how far it is off.
    """
    if slots > ALWAYS_FINE and slots > MAX_GROWTH * nnz:
        raise NotApplicableError(
            f"{what} would store {slots:,} values for {nnz:,} entries"
            f" ({slots / max(nnz, 1):.0f} per entry; at most {MAX_GROWTH} are tried)"
        )
    if slots > INT32_MAX:
        raise NotApplicableError(
            f"{what} would store {slots:,} values, more than int32 indices reach ({INT32_MAX:,})"
        )
