"""The obvious way to read each format, entry by entry, straight from its description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from suite.formats.base import PADDING, Format, Layout
from suite.formats.bsr import Bsr
from suite.formats.sell import Sell


class Slot(NamedTuple):
    """One value slot: where it says it is, and which CSR entry fills it."""

    row: int
    col: int
    entry: int


def slots(form: Format, layout: Layout, csr: sparse.csr_array) -> list[Slot]:
    """Every slot that a kernel would multiply by, padding included."""
    return list(READERS[form.name](form, layout, csr.shape, csr.nnz))


def value_map(layout: Layout, name: str, nnz: int) -> list[int]:
    stored = layout.values[name]
    return list(range(nnz)) if stored is None else stored.tolist()


def read_csr(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    ptr, col = layout.index["row_ptr"], layout.index["col_idx"]
    entries = value_map(layout, "vals", nnz)
    for row in range(shape[0]):
        for at in range(ptr[row], ptr[row + 1]):
            yield Slot(row, int(col[at]), entries[at])


def read_coo(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    pairs = zip(layout.index["row_idx"].tolist(), layout.index["col_idx"].tolist(), strict=True)
    for (row, col), entry in zip(pairs, value_map(layout, "vals", nnz), strict=True):
        yield Slot(row, col, entry)


def read_ell(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    pitch, col = layout.sizes["pitch"], layout.index["col_idx"]
    entries = value_map(layout, "vals", nnz)
    for row in range(pitch):
        length = int(layout.index["row_len"][row]) if row < shape[0] else 0
        for k in range(layout.sizes["width"]):
            at = k * pitch + row
            assert (entries[at] != PADDING) == (k < length)
            yield Slot(row, int(col[at]), entries[at])


def read_sell(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    assert isinstance(form, Sell)
    c = form.c
    ptr, perm, col = (layout.index[name] for name in ("slice_ptr", "perm", "col_idx"))
    entries = value_map(layout, "vals", nnz)
    for s in range(layout.sizes["slices"]):
        for lane in range(c):
            for at in range(ptr[s] + lane, ptr[s + 1], c):
                yield Slot(int(perm[s * c + lane]), int(col[at]), entries[at])


def read_dia(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    entries = value_map(layout, "vals", nnz)
    pitch = layout.sizes["pitch"]
    for d, offset in enumerate(layout.index["offsets"].tolist()):
        for row in range(pitch):
            entry = entries[d * pitch + row]
            inside = row < shape[0] and 0 <= row + offset < shape[1]
            if inside:
                yield Slot(row, row + offset, entry)
            else:
                assert entry == PADDING


def read_bsr(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    assert isinstance(form, Bsr)
    b = form.b
    ptr, col = layout.index["row_ptr"], layout.index["col_idx"]
    entries = value_map(layout, "vals", nnz)
    longest = int(np.diff(ptr).max(initial=0))
    assert layout.sizes["width"] == longest
    for block_row in range(layout.sizes["block_rows"]):
        for block in range(ptr[block_row], ptr[block_row + 1]):
            for i in range(b):
                for j in range(b):
                    row, column = block_row * b + i, int(col[block]) * b + j
                    entry = entries[(block * b + i) * b + j]
                    if row < shape[0] and column < shape[1]:
                        yield Slot(row, column, entry)
                    else:
                        assert entry == PADDING


def read_hyb(form: Format, layout: Layout, shape: tuple[int, int], nnz: int) -> Iterator[Slot]:
    pitch, col = layout.sizes["pitch"], layout.index["ell_col_idx"]
    entries = value_map(layout, "ell_vals", nnz)
    for at in range(layout.sizes["width"] * pitch):
        yield Slot(at % pitch, int(col[at]), entries[at])
    rows, columns = layout.index["coo_row_idx"], layout.index["coo_col_idx"]
    assert np.all(np.diff(rows) >= 0)
    for at, entry in enumerate(value_map(layout, "coo_vals", nnz)):
        yield Slot(int(rows[at]), int(columns[at]), entry)


Reader = Callable[[Format, Layout, tuple[int, int], int], Iterator[Slot]]
READERS: dict[str, Reader] = {
    "csr": read_csr,
    "coo": read_coo,
    "ell": read_ell,
    "sell": read_sell,
    "dia": read_dia,
    "bsr": read_bsr,
    "hyb": read_hyb,
}
