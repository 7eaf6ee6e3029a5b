"""From declaration to machine code, with the compiler that every CUDA installation has: NVRTC.

It needs no GPU, so a host without one measures real compile rates. A program is compiled alone: no
include path, no header, nothing on its command line that the program chose.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from suite.evaluation import Resources
from suite.harness.device import Compiled
from suite.harness.files import replacing
from suite.harness.plan import Declaration
from suite.harness.ptx import lasting, meets
from suite.problem import DType

_OPTIONS = {
    "name": "program.cu",
    "std": "c++17",
    "ptxas_options": ["-v"],
    "no_source_include": True,
    "minimal": True,  # no textures, no launches from the device: a tenth faster, and less to misuse
    "no_cache": True,  # ``Cache`` does it, for refusals too
}
_PRELUDE = {
    DType.FLOAT32: "typedef float real; typedef float2 real2; typedef float4 real4;",
    DType.FLOAT64: "typedef double real; typedef double2 real2;"
    " struct __align__(16) real4 { double x, y, z, w; };",
}
MAX_LOG = 20_000
OUTPUT_BYTES = 64 << 20  # of machine code; an ordinary program has some 10 KB
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class CompileError(Exception):
    """The compiler refused the program.

    Attributes:
        log: Everything that the compiler said.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message, log)
        self.log = log

    def __str__(self) -> str:
        return str(self.args[0])


class CompilerUnavailable(RuntimeError):
    """There is no usable NVRTC on this host; the message says what to install."""


@dataclass(frozen=True)
class Target:
    """What to compile for.

    Attributes:
        arch: ``sm_90``, or ``compute_90`` for code that the driver compiles.
        dtype: What ``real`` is.
    """

    arch: str = "sm_90"
    dtype: DType = DType.FLOAT32


def source_of(code: str, constants: Mapping[str, int], dtype: DType, support: str = "") -> str:
    """The program with the suite's prelude before it; line numbers stay the text's own.

    A device format's code comes before the program's constants, so that none of them changes it.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    return f'{_PRELUDE[dtype]}\n{support}{macros}#line 1 "program.cu"\n{code}\n'


def program_source(declaration: Declaration, dtype: DType) -> str:
    """What a program's compiler gets."""
    return source_of(declaration.code, declaration.constants, dtype, declaration.support)


def compile_source(source: str, target: Target) -> Compiled:
    """Compiles one source.

    Args:
        source: What ``source_of`` gave.
        target: Architecture and precision.

    Returns:
        Machine code, log and resources of each kernel.

    Raises:
        CompileError: The compiler's first error, and its whole log.
        CompilerUnavailable: No NVRTC.
    """
    core = _core()
    started = time.perf_counter()
    log = StringIO()
    options = core.ProgramOptions(arch=target.arch, **_OPTIONS)
    kind = "ptx" if target.arch.startswith("compute") else "cubin"
    try:
        program = core.Program(source, "c++", options)
        code = program.compile(kind, logs=log).code
        between = _ptx(program.handle)
    except Exception as error:
        head, _, tail = str(error).partition("compilation log:")
        said = _clean(tail + log.getvalue())
        if "NVRTC_ERROR_COMPILATION" not in head:
            raise CompilerUnavailable(
                f"NVRTC failed: {error}; check the nvidia-cuda-nvrtc package"
            ) from error
        raise CompileError(_first_error(said), said) from None
    said = _clean(log.getvalue())
    elapsed = (time.perf_counter() - started) * 1e3
    found = resources(said)
    outlives, met = tuple(lasting(between)), meets(between)
    return Compiled(bytes(code), source, _without_ptxas(said), found, elapsed, outlives, met)


def _ptx(program: Any) -> str:
    """What the compiler made on its way to machine code."""
    from cuda.bindings import nvrtc

    status, size = nvrtc.nvrtcGetPTXSize(program)
    text = bytearray(size)
    if int(status) or int(nvrtc.nvrtcGetPTX(program, text)[0]):
        raise CompilerUnavailable("NVRTC gives no PTX; install nvidia-cuda-nvrtc 12 or later")
    return text.rstrip(b"\0").decode()


def supported_architectures() -> list[int]:
    """Compute capabilities that this NVRTC compiles for, ascending: 75, 80, … 121."""
    _core()
    from cuda.bindings import nvrtc

    status, count = nvrtc.nvrtcGetNumSupportedArchs()
    status, archs = nvrtc.nvrtcGetSupportedArchs()
    if int(status) or not count:
        raise CompilerUnavailable("NVRTC does not say which architectures it supports")
    return sorted(int(a) for a in archs)


def architecture(capability: int, supported: list[int]) -> str:
    """The architecture to compile for on a device of this compute capability.

    The device's own where the compiler knows it; otherwise code for the highest architecture below
    it, which the driver translates.

    Args:
        capability: 90 for compute capability 9.0.
        supported: What the compiler knows, ascending.

    Raises:
        CompilerUnavailable: The device is older than everything that the compiler knows.
    """
    if capability in supported:
        return f"sm_{capability}"
    below = [a for a in supported if a < capability]
    if not below:
        raise CompilerUnavailable(
            f"NVRTC compiles for sm_{supported[0]} and later, the device is sm_{capability};"
            " install an older nvidia-cuda-nvrtc"
        )
    return f"compute_{below[-1]}"


@cache
def compiler_version() -> str:
    """``NVRTC 13.0``."""
    _core()
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor}"


def resources(log: str) -> dict[str, Resources]:
    """Resources of each kernel, read from what ``ptxas -v`` printed."""
    found: dict[str, Resources] = {}
    kernel, stack, spill = "", 0, 0
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            kernel, stack, spill = match[1], 0, 0
        elif match := _STACK.search(line):
            stack, spill = int(match[1]), int(match[2]) + int(match[3])
        elif (match := _USED.search(line)) and kernel:
            shared = _SHARED.search(line)
            found[kernel] = Resources(int(match[1]), spill, int(shared[1]) if shared else 0, stack)
    return found


class Cache:
    """Compiled programs on disk, keyed by source, options, architecture and compiler version.

    Refusals are kept too: the compiler is asked about one source once.
    """

    def __init__(self, folder: Path, output_bytes: int = OUTPUT_BYTES) -> None:
        self._folder, self._most = folder, output_bytes

    def compile(self, source: str, target: Target) -> Compiled:
        """``compile_source``, from the cache where it has been done before."""
        path = self._path(source, target)
        # Where it is torn, another user's or from another version, it is compiled again.
        with suppress(OSError, ValueError, KeyError, TypeError):
            return self._read(path, source)
        try:
            compiled = compile_source(source, target)
            if len(compiled.cubin) > self._most:
                raise CompileError(
                    f"{len(compiled.cubin):,} bytes of machine code; at most {self._most:,}"
                )
        except CompileError as error:
            self._write(path, {"error": str(error), "log": error.log}, b"")
            raise
        kernels = {name: asdict(found) for name, found in compiled.kernels.items()}
        facts = {"kernels": kernels, "lasting": compiled.lasting, "meets": compiled.meets}
        self._write(path, {"log": compiled.log, **facts}, compiled.cubin)
        return compiled

    def _path(self, source: str, target: Target) -> Path:
        key = "\0".join((compiler_version(), repr(_OPTIONS), target.arch, source))
        name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        return self._folder / name[:2] / f"{name}.cubin"

    def _write(self, path: Path, facts: dict[str, object], code: bytes) -> None:
        digest = hashlib.blake2b(code, digest_size=16).hexdigest()
        head = json.dumps({**facts, "digest": digest}).encode()
        with suppress(OSError), replacing(path) as draft:
            draft.write_bytes(head + b"\n" + code)

    def _read(self, path: Path, source: str) -> Compiled:
        head, _, code = path.read_bytes().partition(b"\n")
        facts = json.loads(head)
        if hashlib.blake2b(code, digest_size=16).hexdigest() != facts["digest"]:
            raise ValueError("digest")
        if "error" in facts:
            raise CompileError(facts["error"], facts["log"])
        kernels = {name: Resources(**found) for name, found in facts["kernels"].items()}
        outlives = tuple(facts["lasting"])
        return Compiled(code, source, facts["log"], kernels, 0.0, outlives, facts["meets"])


@cache
def _core():  # type: ignore[no-untyped-def]
    try:
        import cuda.core as core
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:
        raise CompilerUnavailable(
            f"cannot load NVRTC ({error}); install the packages cuda-core and nvidia-cuda-nvrtc"
        ) from error
    return core


def _clean(log: str) -> str:
    return log.replace("\0", "").strip()[:MAX_LOG]


def _without_ptxas(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not line.startswith("ptxas ")).strip()


def _first_error(log: str) -> str:
    for line in log.splitlines():
        if ": error" in line or "fatal error" in line:
            return line.strip()
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[0].strip() if lines else "the compiler refused the program without a message"
