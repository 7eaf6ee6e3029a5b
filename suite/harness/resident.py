"""What stays on a device between programs: a matrix and its formats.

Programs get their own copies. The copies that the check uses are never given to a program, and
every array has a digest from before any program ran, so that a change is noticed whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from suite.formats.base import Footprint, Format, NotApplicableError
from suite.harness import conversions
from suite.harness.device import Buffer, Device, DeviceFault
from suite.harness.inputs import Stream, exact_bits
from suite.harness.judge import EXACT, OWN, SWAPPED
from suite.harness.watched import Memory, Watched
from suite.matrices.structure import facts
from suite.problem import DType, Op


@dataclass(frozen=True)
class ProblemRef:
    """A problem as it travels to a worker.

    Attributes:
        key: Its name within the campaign.
        digest: Content digest of the matrix.
        folder: Where ``indptr.npy``, ``indices.npy`` and ``values.npy`` (in the problem's
            precision) lie.
        shape: M and N.
        op: The operation.
        columns: K.
        dtype: Precision.
        seed: Of the input streams.
    """

    key: str
    digest: str
    folder: Path
    shape: tuple[int, int]
    op: Op
    columns: int
    dtype: DType
    seed: int


@dataclass(frozen=True)
class Prepared:
    """A matrix in a format, ready on the device.

    Attributes:
        sizes: Every integer that a program may name.
        nbytes: Bytes of each array.
        conversion_ms: Time of one of the host's cores in the conversion.
    """

    sizes: dict[str, int]
    nbytes: dict[str, int]
    conversion_ms: float


_VALUES: Mapping[int, str] = {OWN: "values", EXACT: "signs", SWAPPED: "exact values"}


class Converted:
    """A resident matrix in one format.

    Raises:
        DeviceFault: No memory; nothing is kept then.
    """

    def __init__(self, device: Device, matrix: ResidentMatrix, fmt: Format) -> None:
        ahead = conversions.read(matrix.folder, fmt)
        layout, elapsed = ahead or conversions.convert(matrix.csr, fmt)
        self._device, self._matrix = device, matrix
        self._memory, self._maps = Memory(device), Memory(device)
        self._index, self._values = tuple(layout.index), dict.fromkeys(layout.values, False)
        self.in_place = -1  # the input set whose values are there
        try:
            for name, array in layout.index.items():
                self._memory.upload(name, array)
            for name, slots in layout.values.items():
                count = matrix.csr.nnz if slots is None else slots.size
                self._memory.allocate(name, count * matrix.dtype.numpy.itemsize)
                if slots is not None:
                    self._maps.upload(name, slots)
                    self._values[name] = True
        except DeviceFault:
            self.free()
            raise
        rows, cols = matrix.csr.shape
        sizes = {
            "rows": rows,
            "cols": cols,
            "nnz": matrix.csr.nnz,
            **matrix.facts,
            "sms": device.facts.multiprocessors,
            "itemsize": matrix.dtype.numpy.itemsize,
            **layout.sizes,
        }
        nbytes = {name: buffer.nbytes for name, buffer in self.buffers.items()}
        self.prepared = Prepared(sizes, nbytes, elapsed)

    @property
    def buffers(self) -> dict[str, Buffer]:
        """What a program may bind, by name."""
        return {name: self._memory[name] for name in (*self._index, *self._values)}

    def use(self, number: int) -> None:
        """Puts the values of an input set in place."""
        if self.in_place == number:
            return
        for name, mapped in self._values.items():
            slots = self._maps[name] if mapped else None
            source = self._matrix.values(number)
            self._device.gather(source, slots, self._memory[name], self._matrix.dtype.numpy)
        self._memory.note(self._values, number)
        self.in_place = number

    def watched(self, names: Iterable[str]) -> list[Watched]:
        """The named arrays with what they are to hold."""
        wanted = set(names)
        index = [name for name in self._index if name in wanted]
        values = [name for name in self._values if name in wanted]
        return self._memory.watched(index) + self._memory.watched(values, self.in_place)

    def reads_every_value(self, names: Iterable[str]) -> bool:
        """Whether a right program that is given these arrays reads all of the matrix's values."""
        return self._values.keys() <= set(names)

    def watched_maps(self) -> list[Watched]:
        """The maps of its values, which no program is given, with what they are to hold."""
        maps = self._maps.watched(name for name, mapped in self._values.items() if mapped)
        return [replace(one, name=f"map of {one.name}") for one in maps]

    def free(self) -> None:
        """Gives its memory back."""
        self._memory.free()
        self._maps.free()


class ResidentMatrix:
    """A matrix on the device: the trusted copy with the values of each input set, and its formats.

    Attributes:
        csr: The matrix on the host, in the working precision.
        dtype: That precision.
        folder: Where its arrays lie.
        bits: Of the integers of the exact sets; 0 where no sum can be exact.
        facts: Integers on the structure that every program may name.
    """

    def __init__(self, device: Device, ref: ProblemRef) -> None:
        self.folder, self.csr = ref.folder, conversions.matrix(ref.folder, ref.shape)
        indptr, indices, values = self.csr.indptr, self.csr.indices, self.csr.data
        self.dtype = ref.dtype
        self.bits = exact_bits(int(np.diff(indptr).max(initial=0)), ref.dtype.numpy)
        self.facts = facts(self.csr)
        self._device, self._memory = device, Memory(device)
        self._formats: dict[Format, Converted] = {}
        self._footprints: dict[Format, Footprint | NotApplicableError] = {}
        try:
            self._memory.upload("row pointers", indptr)
            self._memory.upload("column indices", indices)
            self._memory.upload(_VALUES[OWN], values)
            for number, bits in ((EXACT, 1), (SWAPPED, max(1, self.bits))):
                stream = Stream(ref.seed - number, bits, exponent=0)
                made = self._memory.allocate(_VALUES[number], values.nbytes)
                device.fill_stream(made, ref.dtype.numpy, stream)
                self._memory.note([_VALUES[number]])
        except DeviceFault:
            self.free()
            raise

    def values(self, number: int) -> Buffer:
        """The values of an input set, in CSR order."""
        return self._memory[_VALUES[number]]

    def trusted(self, number: int) -> tuple[Buffer, Buffer, Buffer]:
        """Row pointers, column indices and values for the check."""
        return self._memory["row pointers"], self._memory["column indices"], self.values(number)

    def watched(self, number: int) -> list[Watched]:
        """The trusted arrays for the check with what they are to hold."""
        return self._memory.watched(["row pointers", "column indices", _VALUES[number]])

    def footprint(self, fmt: Format) -> Footprint:
        """The format's footprint on this matrix; computed once.

        Raises:
            NotApplicableError: The format would blow up.
        """
        if fmt not in self._footprints:
            try:
                self._footprints[fmt] = fmt.footprint(self.csr)
            except NotApplicableError as refusal:
                self._footprints[fmt] = refusal
        found = self._footprints[fmt]
        if isinstance(found, NotApplicableError):
            raise NotApplicableError(str(found))
        return found

    def converted(self, fmt: Format) -> Converted:
        """The matrix in a format; converted once. When memory is short, other formats make room.

        Raises:
            NotApplicableError: The format does not fit the matrix.
            DeviceFault: No memory for it.
        """
        if fmt in self._formats:
            return self._formats[fmt]
        self.footprint(fmt)  # refuses before anything is allocated
        try:
            found = Converted(self._device, self, fmt)
        except DeviceFault:
            if not self._formats:
                raise
            found = None
        if found is None:  # not in the handler, whose traceback would keep the buffers alive
            self.drop_formats()
            found = Converted(self._device, self, fmt)
        self._formats[fmt] = found
        return found

    def drop(self, fmt: Format) -> None:
        """Forgets one format."""
        converted = self._formats.pop(fmt, None)
        if converted is not None:
            converted.free()

    def drop_formats(self) -> None:
        """Forgets every format."""
        for fmt in list(self._formats):
            self.drop(fmt)

    def free(self) -> None:
        """Gives everything back."""
        self.drop_formats()
        self._memory.free()
