"""A device of NumPy arrays that counts what it has given and can run short."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from suite.evaluation import Status
from suite.harness import verify
from suite.harness.device import Check, Compiled, DeviceFacts, DeviceFault, Measured
from suite.harness.inputs import Stream
from suite.harness.plan import Plan
from suite.harness.timing import Precision


@dataclass(eq=False)
class HostBuffer:
    """Bytes."""

    data: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


class HostProgram:
    """``y = A x`` from the CSR arrays, then whatever mischief is asked."""

    def __init__(self, device: HostDevice, plan: Plan, buffers: Mapping[str, HostBuffer]) -> None:
        self._device, self._buffers, self._output = device, buffers, buffers[plan.output]
        self._dtype = np.dtype(np.float32)

    def run(self) -> None:
        held = self._buffers
        index = [held[name].data.view(np.int32) for name in ("col_idx", "row_ptr")]
        x = held["x"].data.view(self._dtype)
        a = sparse.csr_array(
            (held["vals"].data.view(self._dtype), *index), shape=(index[1].size - 1, x.size)
        )
        self._output.data.view(self._dtype)[:] = a @ x
        if self._device.spoils:
            held[self._device.spoils].data[0] ^= 1

    def prepare(self) -> None: ...

    def refresh(self) -> None: ...

    def collect(self) -> None: ...

    def close(self) -> None:
        self._device.loaded -= 1


class HostDevice:
    """See ``suite.harness.device.Device``.

    Attributes:
        live: Buffers that were not given back.
        given: Allocations so far.
        room: Allocations after which there is no memory.
        loaded: Programs that were not closed.
        looks: Requests for digests so far.
        spoils: The buffer that programs change a bit of.
        checks_wrongly: Whether its check finds everything right.
        refuses: Whether it loads no program.
    """

    facts = DeviceFacts("host", "host", "sm_90", 4, 1 << 20, 1 << 16, 0)

    def __init__(self, room: int = 1 << 30) -> None:
        self.live: set[HostBuffer] = set()
        self.given, self.room, self.loaded, self.spoils = 0, room, 0, ""
        self.looks = 0
        self.checks_wrongly = self.refuses = False

    def allocate(self, nbytes: int) -> HostBuffer:
        if self.given >= self.room:
            raise DeviceFault(Status.INFRASTRUCTURE_ERROR, "out of memory")
        buffer = HostBuffer(np.full(nbytes, 0xAB, np.uint8))
        self.given += 1
        self.live.add(buffer)
        return buffer

    def upload(self, array: np.ndarray) -> HostBuffer:
        buffer = self.allocate(array.nbytes)
        buffer.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return buffer

    def download(self, buffer: HostBuffer, dtype: np.dtype) -> np.ndarray:
        return buffer.data.view(dtype).copy()

    def free(self, buffer: HostBuffer) -> None:
        self.live.remove(buffer)  # a second time is an error

    def fill(self, buffer: HostBuffer, byte: int) -> None:
        buffer.data[:] = byte

    def fill_stream(self, buffer: HostBuffer, dtype: np.dtype, stream: Stream) -> None:
        out = buffer.data.view(dtype)
        out[:] = stream.take(out.size, dtype)

    def gather(
        self, source: HostBuffer, slots: HostBuffer | None, out: HostBuffer, dtype: np.dtype
    ) -> None:
        if slots is None:
            out.data[:] = source.data
            return
        index = slots.data.view(np.int32)
        padded = np.append(source.data.view(dtype), np.zeros(1, dtype))
        out.data.view(dtype)[:] = padded[index]  # slot -1 is the zero at the end

    def digests(self, buffers: Sequence[HostBuffer]) -> list[int]:
        self.looks += bool(buffers)
        whole = (hashlib.blake2b(buffer.data.tobytes(), digest_size=8) for buffer in buffers)
        return [int.from_bytes(one.digest()) for one in whole]

    def build(self, compiled: Compiled, plan: Plan) -> None: ...

    def load(
        self, compiled: Compiled, plan: Plan, buffers: Mapping[str, HostBuffer]
    ) -> HostProgram:
        if self.refuses:
            raise DeviceFault(Status.LOAD_ERROR, "too many registers")
        self.loaded += 1
        return HostProgram(self, plan, buffers)

    def sync(self) -> None: ...

    def check(
        self,
        csr: tuple[HostBuffer, HostBuffer, HostBuffer],
        dense: HostBuffer,
        output: HostBuffer,
        rows: int,
        columns: int,
        dtype: np.dtype,
        exact: bool,
    ) -> Check:
        if self.checks_wrongly:
            return Check(0.0, 0, 0, -1)
        index = (buffer.data.view(np.int32) for buffer in csr[:2])
        real = (buffer.data.view(dtype) for buffer in (csr[2], dense, output))
        return verify.compare(*index, *real, rows, columns, dtype, exact)

    def once_us(self, run: Callable[[], None], spoil: Callable[[], None]) -> float | None:
        spoil()
        run()
        return 5.0

    def measure(
        self, run: Callable[[], None], spoil: Callable[[], None], precision: Precision
    ) -> Measured | float:
        spoil()
        run()
        return 1.0

    def copy_gbps(self) -> None: ...
