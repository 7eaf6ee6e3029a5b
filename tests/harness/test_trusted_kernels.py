"""The GPU's own kernels do what NumPy does: run on the emulator, so the check itself is checked."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from suite.harness import verify
from suite.harness.cuda import guards, kernels
from suite.harness.device import Check, Compiled
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.inputs import Stream, exact_bits
from suite.harness.plan import BufferArg, Launch, Plan, ScalarArg
from suite.problem import DType


@dataclass(frozen=True)
class Call:
    """One launch; arguments in the kernel's order, arrays by the names they come back under."""

    kernel: str
    blocks: tuple[int, int]
    threads: int
    arguments: dict[str, Any]


def run(emulator: EmulatorDevice, dtype: str, *calls: Call) -> dict[str, np.ndarray]:
    """The launches in order; every array as it was left."""
    named = {n: a for call in calls for n, a in call.arguments.items() if isinstance(a, np.ndarray)}
    buffers = {name: emulator.upload(array) for name, array in named.items()}

    def word(name: str, argument: Any) -> BufferArg | ScalarArg:
        if name in buffers:
            return BufferArg(name)
        bits = struct.pack("<d", argument) if isinstance(argument, float) else None
        return ScalarArg(int.from_bytes(bits, "little") if bits else argument, "long long")

    launches = tuple(
        Launch(
            call.kernel,
            (*call.blocks, 1),
            (call.threads, 1, 1),
            0,
            tuple(word(name, argument) for name, argument in call.arguments.items()),
        )
        for call in calls
    )
    compiled = Compiled(b"", kernels.source(DType(dtype)), "", {}, 0.0)
    loaded = emulator.load(compiled, Plan("y", False, (), launches, ()), buffers)
    loaded.run()
    loaded.close()
    out = {name: emulator.download(buffers[name], named[name].dtype) for name in buffers}
    for buffer in buffers.values():
        emulator.free(buffer)
    return out


@dataclass(frozen=True)
class Case:
    """A matrix with its dense input, N × K, in one precision."""

    a: sparse.csr_array
    dense: np.ndarray
    columns: int

    @property
    def dtype(self) -> np.dtype:
        return self.dense.dtype

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.a.indptr, self.a.indices, self.a.data.astype(self.dtype), self.dense

    def on_host(self, output: np.ndarray, exact: bool = False) -> Check:
        rows = self.a.shape[0]
        return verify.compare(*self.parts, output, rows, self.columns, self.dtype, exact)

    def on_device(
        self, emulator: EmulatorDevice, output: np.ndarray, limit: int, exact: bool = False
    ) -> Check:
        """The launches that the CUDA device makes, with ``limit`` for the longest row of a warp."""
        info = np.finfo(self.dtype)
        rows, columns = self.a.shape[0], self.columns
        chunks = -(-columns // 32)
        csr = {"row_ptr": self.a.indptr, "col_idx": self.a.indices, "vals": self.parts[2]}
        tail = {
            "dense": self.dense,
            "output": output,
            "growth": float(verify.GROWTH),
            "unit": 0.0 if exact else float(info.eps) / 2,
            "tiny": 0.0 if exact else float(info.smallest_subnormal),
            "result": np.array([0, 0, 0, 2**31 - 1], np.uint64),
        }
        head = {"rows": rows, "limit": limit}
        if columns == 1:
            calls = [Call("check_vector", (-(-rows // 8), 1), 256, {**head, **csr, **tail})]
        else:
            blocks = -(-rows * chunks // 8)
            head["n"] = columns
            calls = [Call("check_matrix", (blocks, 1), 256, {**head, **csr, **tail})]
        long_rows = np.flatnonzero(np.diff(self.a.indptr) > limit).astype(np.int32)
        if long_rows.size:
            arguments = {"long_rows": long_rows, "n": columns, **csr, **tail}
            calls.append(Call("check_long", (long_rows.size, chunks), 1024, arguments))
        result = run(emulator, self.dtype.name, *calls)["result"]
        wrong = int(result[1])
        ratio = float(result[:1].view(np.float64)[0])
        return Check(ratio, wrong, int(result[2]), int(result[3]) if wrong else -1)


def uneven(dtype: str, columns: int) -> Case:
    """37 rows: empty ones, short ones, and some of more than 40 entries."""
    rng = np.random.default_rng(5)
    density = np.linspace(0, 1, 37)[:, None]
    a = sparse.csr_array(np.where(rng.random((37, 90)) < density, rng.standard_normal((37, 90)), 0))
    a.data = a.data.astype(dtype).astype(float)
    return Case(a, Stream(3).take(90 * columns, dtype), columns)


@pytest.mark.parametrize("columns", [1, 33])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_check_on_the_device_is_the_one_on_the_host(
    emulator: EmulatorDevice, dtype: str, columns: int
) -> None:
    case = uneven(dtype, columns)
    exact, bound = verify.reference(*case.parts, columns)
    output = exact.astype(dtype)
    output[3, 0] += (0.6 * bound[3, 0]).astype(dtype)  # passes
    output[9, -1] += (3 * bound[9, -1]).astype(dtype)  # does not
    output[20, 0] = np.nan
    output[30, 0] = np.inf
    output[34, -1] += (3 * bound[34, -1]).astype(dtype)
    for y in (exact.astype(dtype), output):
        want = case.on_host(y.reshape(-1))
        found = case.on_device(emulator, y.reshape(-1).copy(), limit=40)
        assert (found.wrong, found.unwritten, found.row) == (want.wrong, want.unwritten, want.row)
        assert found.ratio == pytest.approx(want.ratio, rel=1e-3, abs=1e-3)
    assert (want.wrong, want.unwritten, want.row) == (4, 1, 9)


@pytest.mark.parametrize("columns", [1, 33])
def test_on_exact_inputs_the_device_finds_the_smallest_error(
    emulator: EmulatorDevice, columns: int
) -> None:
    case = uneven("float32", columns)
    case.a.data = Stream(1, bits=1, exponent=0).take(case.a.nnz, "float64")
    bits = exact_bits(90, "float32")
    case = Case(case.a, Stream(2, bits=bits, exponent=0).take(90 * columns, "float32"), columns)
    y = (case.a @ case.dense.reshape(90, columns).astype(float)).astype("float32")
    altered = y.copy()
    altered[36, -1] = np.nextafter(altered[36, -1], np.float32(np.inf))  # a long row
    for output, wrong in ((y, 0), (altered, 1)):
        assert case.on_host(output.reshape(-1), exact=True).wrong == wrong
        found = case.on_device(emulator, output.reshape(-1).copy(), limit=40, exact=True)
        assert (found.wrong, found.row) == (wrong, 36 if wrong else -1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_streams_are_those_of_the_host(emulator: EmulatorDevice, dtype: str) -> None:
    for stream in (Stream(2**62 + 17), Stream(3, bits=1, exponent=0), Stream(4, 13, -2)):
        arguments = {
            "out": np.zeros(1000, dtype),
            "count": 1000,
            "seed": stream.seed,
            "bits": stream.bits,
            "scale": 2.0**stream.exponent,
        }
        out = run(emulator, dtype, Call("stream", (2, 1), 64, arguments))["out"]
        assert np.array_equal(out, stream.take(1000, dtype))


def test_a_changed_or_moved_word_changes_the_digest(emulator: EmulatorDevice) -> None:
    def digest(words: np.ndarray, blocks: int = 3) -> int:
        arguments = {"words": words, "count": words.size, "result": np.zeros(1, np.uint64)}
        call = Call("digest", (blocks, 1), 64, arguments)
        return int(run(emulator, "float32", call)["result"][0])

    words = np.arange(500, dtype=np.uint32)
    changed, moved = words.copy(), words.copy()
    changed[499] ^= 1
    moved[[3, 4]] = moved[[4, 3]]
    assert len({digest(words), digest(changed), digest(moved)}) == 3
    assert digest(words) == digest(words, blocks=1)  # whatever the order of the threads


def test_gather_places_values_and_zeros_and_transpose_turns_rows_to_columns(
    emulator: EmulatorDevice,
) -> None:
    source = np.arange(6, dtype=np.float32) + 1
    gather = {
        "source": source,
        "slots": np.array([5, -1, 0], np.int32),
        "gathered": np.full(3, np.nan, np.float32),
        "count": 3,
    }
    turn = {"source": source, "turned": np.zeros(6, np.float32), "rows": 2, "columns": 3}
    calls = (Call("gather", (1, 1), 32, gather), Call("transpose", (1, 1), 32, turn))
    found = run(emulator, "float32", *calls)
    assert found["gathered"].tolist() == [6, 0, 1]
    assert found["turned"].tolist() == [1, 4, 2, 5, 3, 6]


@pytest.mark.parametrize("nbytes", [0, 4, 16, 18, 4096])
def test_guard_bands_enclose_a_buffer_and_begin_at_its_last_byte(nbytes: int) -> None:
    placed = guards.layout(nbytes)
    assert placed.start % 256 == 0
    assert placed.before == (0, placed.start)
    assert placed.after == (placed.start + nbytes, placed.total - placed.start - nbytes)
    # Up to the next multiple of 16 bytes may be read, and an empty buffer too.
    assert placed.after.nbytes >= guards.BAND + max(-nbytes % 16, 16 * (nbytes == 0))


@pytest.mark.parametrize("nbytes", [0, 18, 1024])
def test_a_write_beside_a_buffer_is_found_and_named(emulator: EmulatorDevice, nbytes: int) -> None:
    total = guards.layout(nbytes).total
    memory = np.full(2 * total, guards.BYTE, np.uint8)
    start = guards.layout(nbytes).start
    for address in (0, total):  # what is in the buffers is nobody's business
        memory[address + start : address + start + nbytes] = 0
    bands = np.array(guards.table([(0, nbytes), (total, nbytes)]), np.uint64)

    def first_written(*places: int) -> int:
        written = memory.copy()
        written[list(places)] = 0x7E
        result = np.full(1, 2**64 - 1, np.uint64)
        arguments = {"base": written, "bands": bands, "count": 4, "result": result}
        return int(run(emulator, "float32", Call("guards", (4, 1), 128, arguments))["result"][0])

    assert first_written() == 2**64 - 1
    assert first_written(start - 1) == 0
    assert first_written(start + nbytes) == 1
    assert first_written(total - 1) == 1
    assert first_written(total + start - 1) == first_written(total, 2 * total - 1) == 2
    assert first_written(2 * total - 1) == 3
    assert guards.describe(3, "y", 1608) == (
        "the program wrote past the end of buffer y (1,608 bytes)"
    )
    assert "before the start of one of the suite's own arrays" in guards.describe(0, "", 8)
