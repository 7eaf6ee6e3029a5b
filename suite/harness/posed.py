"""A problem posed on a resident matrix: dense input and output, and what a judge asks of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from suite.harness.bind import DENSE
from suite.harness.device import Buffer, Check, Device, DeviceFault
from suite.harness.inputs import Stream
from suite.harness.judge import EXACT, OWN, SWAPPED, Stage
from suite.harness.resident import Converted, ProblemRef, ResidentMatrix
from suite.harness.traffic import compulsory_bytes
from suite.harness.watched import Derived, Memory, changed

_DENSE, _OUTPUT = "dense input", "output"
_SHAKEN = -2  # none of the input sets: the values of OWN with a dense input of its own
_FIRST_SHAKEN = 1000  # seeds from here on; the input sets have theirs below


class Posed:
    """A problem on the device: a resident matrix with dense input and output.

    Attributes:
        ref: The problem.
        matrix: Its matrix.
    """

    def __init__(self, device: Device, ref: ProblemRef, matrix: ResidentMatrix) -> None:
        self.ref, self.matrix = ref, matrix
        self._device, self._memory = device, Memory(device)
        self._in_place = -1
        self._shaken = 0  # how many dense inputs have been drawn beside those of the input sets
        itemsize = ref.dtype.numpy.itemsize
        rows, cols = ref.shape
        try:
            self._memory.allocate(_DENSE, cols * ref.columns * itemsize)
            self._memory.allocate(_OUTPUT, rows * ref.columns * itemsize)
        except DeviceFault:
            self.free()
            raise

    @property
    def dense(self) -> Buffer:
        """The dense input: x or B."""
        return self._memory[_DENSE]

    @property
    def output(self) -> Buffer:
        """The result: y or C."""
        return self._memory[_OUTPUT]

    def use(self, number: int) -> None:
        """Puts the dense input of an input set in place."""
        if self._in_place == number:
            return
        seed = self.ref.seed + 1 + number
        bits = {EXACT: max(1, self.matrix.bits), SWAPPED: 1}.get(number)
        stream = Stream(seed) if bits is None else Stream(seed, bits, exponent=0)
        self._device.fill_stream(self.dense, self.ref.dtype.numpy, stream)
        self._memory.note([_DENSE], number)
        self._in_place = number

    def shake(self) -> None:
        """Enqueues a dense input that nobody has seen, beside the values of the set ``OWN``."""
        self._shaken += 1
        self._in_place = _SHAKEN
        self.settle()

    def settle(self) -> None:
        """Writes the last shaken dense input (again)."""
        stream = Stream(self.ref.seed + _FIRST_SHAKEN + self._shaken)
        self._device.fill_stream(self.dense, self.ref.dtype.numpy, stream)

    def rehearse(self) -> None:
        """Asks once for all that judging a program asks for: the device may remember it."""
        for number in (OWN, EXACT, SWAPPED):
            self.use(number)
            self.check(self.output)
        self.shake()
        self.check(self.output)
        self._shaken = 0
        self.disturbed()

    def check(self, output: Buffer) -> Check:
        """Compares an output with the reference of the input set in place."""
        number = OWN if self._in_place == _SHAKEN else self._in_place
        return self._device.check(
            self.matrix.trusted(number),
            self.dense,
            output,
            self.ref.shape[0],
            self.ref.columns,
            self.ref.dtype.numpy,
            number != OWN and self.matrix.bits > 0,
        )

    def stage(
        self,
        converted: Converted,
        bound: Iterable[str],
        scratch: Iterable[Buffer] = (),
        derived: Derived | None = None,
    ) -> Stage:
        """What a judge needs.

        Args:
            converted: The matrix in the format that is read.
            bound: Names of the arrays that the program binds; only these are watched.
            scratch: Its workspaces.
            derived: Its derived arrays.
        """
        derived = derived or Derived(self._device, {})
        names = list(bound)

        def use(number: int) -> None:
            converted.use(number)
            self.use(number)

        def inputs() -> list[str]:
            shaken = self._in_place == _SHAKEN  # just written again
            mine = [] if shaken else self._memory.watched([_DENSE], self._in_place)
            mine = [replace(one, name=DENSE[self.ref.op]) for one in mine]
            watched = converted.watched(names) + mine + derived.watched()
            return changed(self._device, watched)

        def outside() -> list[str]:
            watched = self.matrix.watched(converted.in_place) + converted.watched_maps()
            return changed(self._device, watched)

        return Stage(
            use=use,
            shake=self.shake,
            settle=self.settle,
            check=lambda: self.check(self.output),
            note=derived.note,
            changed=inputs,
            outside=outside,
            output=self.output,
            scratch=tuple(scratch),
            derived=tuple(derived.buffers.values()),
            # What is derived may hold the values in fewer bytes.
            least_bytes=self._least_bytes(
                not derived.buffers and converted.reads_every_value(names)
            ),
        )

    def _least_bytes(self, reads_every_value: bool) -> int:
        values = int(self.matrix.csr.nnz) * self.ref.dtype.numpy.itemsize
        l2 = self._device.facts.l2_bytes
        return compulsory_bytes(values * reads_every_value, self.output.nbytes, l2)

    def disturbed(self) -> None:
        """The dense input may hold anything: it is filled again before it is used."""
        self._in_place = -1

    def free(self) -> None:
        """Gives its memory back."""
        self._memory.free()
