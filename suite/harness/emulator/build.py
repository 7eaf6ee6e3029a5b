"""Turns CUDA program texts into shared objects with the host's C++ compiler, and remembers them.

Every object is named by a digest of all that went into it, written under another name and renamed,
so that processes may share a cache folder and an interrupted build leaves nothing half done. Beside
it lies a digest of its contents: what is damaged is made anew.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from suite.evaluation import Status
from suite.harness.device import DeviceFault
from suite.harness.emulator.elf import initialiser_bytes, undefined_thread_locals
from suite.harness.files import replacing
from suite.harness.processes import environment

SHARED_BYTES = 232448  # dynamic shared memory of a block, at most; that of sm_90

_HERE = Path(__file__).parent
_NATIVE = _HERE / "native"
_CUDA = _HERE / "cuda"
_RUNTIME_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-w")
_RUNTIME_UNITS = ("scheduler", "launch", "memory", "faults")
# Programs see no compiler macros and no library; a misaligned access traps, as on the GPU.
_PROGRAM_FLAGS = (
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-w", "-undef", "-nostdinc"),
    "-fno-tree-vectorize",  # takes a compiler longer than it spares a program
    *("-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"),
    *("-fno-strict-aliasing", "-fwrapv", "-fno-finite-loops", "-fno-math-errno"),
    *("-fno-extern-tls-init", "-fno-gnu-unique", "-fmax-errors=1", "-fno-diagnostics-show-caret"),
    "-ftrack-macro-expansion=0",  # errors at the program's own lines
    *("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"),
    "-fstack-clash-protection",  # large frames touch every page: none steps over a guard
    # Memory accesses call ``native/hooks.cpp``.
    *("-fsanitize=thread", "--param=tsan-distinguish-volatile=1"),
    *("-fno-tree-tail-merge", "-fno-crossjumping"),  # each __activemask a place of its own
    "--param=tsan-instrument-func-entry-exit=0",
)

# Those of its messages that are about the host; a program's own words are in none of these places.
_FULL = "|".join(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN)))
_OF_THE_HOST = re.compile(
    rf"^\S+: (?:fatal error|final link failed): (?:Killed signal |.*signal 9 |.*(?:{_FULL})'?$).*",
    re.IGNORECASE | re.MULTILINE,
)
_UNDEFINED = re.compile(r"undefined reference to [`'](\w+)")
# Device functions that the emulator lacks, and that a program may declare itself.
_OF_THE_GPU = frozenset({"malloc", "free", "vprintf", "__assertfail"})
_HOOKED = 8  # bytes of initialisers that the compiler adds for its hooks


class EmulatorUnavailable(RuntimeError):
    """This host cannot emulate; the message says what to install."""


class UnsupportedProgram(DeviceFault):
    """A program that the GPU compiler may accept and the emulator cannot run: no verdict on it."""

    def __init__(self, reason: str) -> None:
        super().__init__(Status.NOT_APPLICABLE, f"the emulator cannot run this program: {reason}")


class CompilerStopped(RuntimeError):
    """The host ended the compiler or had no room for its files: nothing is known of the program."""


class _CompilerError(Exception):
    """What the compiler said."""


@dataclass(frozen=True)
class Limits:
    """What one run of the compiler may take.

    Attributes:
        seconds: Wall time, and processor time of each of the compiler's processes.
        memory_bytes: Address space.
        output_bytes: Size of any file that it writes.
    """

    seconds: float = 20.0
    memory_bytes: int = 2 << 30
    output_bytes: int = 64 << 20


@dataclass(frozen=True)
class Builder:
    """Compiles the runtime and programs into a cache folder.

    Attributes:
        cache: Folder, made when missing.
        compiler: Name or path of g++ or a compiler that takes its options.
        limits: For each run of the compiler.
        options: Further options for everything; ``-DEMU_PORTABLE`` switches fibers by ucontext.
    """

    cache: Path
    compiler: str = "g++"
    limits: Limits = field(default_factory=Limits)
    options: tuple[str, ...] = ()

    @cached_property
    def version(self) -> str:
        """First line of what the compiler says about itself.

        Raises:
            EmulatorUnavailable: There is no such compiler.
        """
        path = shutil.which(self.compiler)
        if path is None:
            raise EmulatorUnavailable(
                f"the emulator needs the C++ compiler {self.compiler!r}, which is not on PATH;"
                " install g++ (package g++ or gcc-c++)"
            )
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        return (said.stdout or said.stderr).partition("\n")[0]

    @cached_property
    def runtime(self) -> Path:
        """The scheduler as a shared object, built when the cache lacks it.

        Raises:
            EmulatorUnavailable: It cannot be built here.
        """
        units = [str(_NATIVE / f"{unit}.cpp") for unit in _RUNTIME_UNITS]
        flags = [*_RUNTIME_FLAGS, *self.options, "-shared", "-pthread"]
        target = self._target("runtime", [self._native_text, *flags], ".so")
        flags.append(f"-Wl,-soname,{target.name}")
        return self._make(target, lambda out: self._build_native([*flags, *units, "-o", out]))

    def program(self, source: str, kernels: Iterable[tuple[str, int]]) -> Path:
        """The shared object of a program.

        Args:
            source: Prelude and program.
            kernels: Name and number of parameters of each kernel that will be launched.

        Raises:
            DeviceFault: It calls a function that is nowhere defined, or has code to run when it is
                loaded (``load_error``).
            UnsupportedProgram: The compiler refused the program, or took too long over it.
            EmulatorUnavailable: There is no compiler.
            CompilerStopped: It was killed, or a disk is full.
        """
        entries = "".join(f"EMU_ENTRY({name}, {count})\n" for name, count in sorted(set(kernels)))
        text = f'{source}\n#line 1 "entries"\n{entries}'
        ingredients = [text, self._cuda_text, self._native_text, *_PROGRAM_FLAGS]
        target = self._target("program", ingredients, ".so")
        try:
            return self._make(target, lambda out: self._build_program(text, out))
        except _CompilerError as error:
            missing = _UNDEFINED.search(str(error))
            if missing and missing[1] not in _OF_THE_GPU:
                raise DeviceFault(
                    Status.LOAD_ERROR,
                    f"the program calls {missing[1]}, which no device has; define it",
                ) from error
            raise UnsupportedProgram(str(error)) from error

    def _build_program(self, text: str, out: str) -> None:
        with tempfile.TemporaryDirectory(prefix="emulator-") as folder:
            unit, obj = Path(folder, "program.cu"), Path(folder, "program.o")
            unit.write_text(text, encoding="utf-8", errors="surrogateescape")
            flags = [*_PROGRAM_FLAGS, *self.options, "-include", str(self._header)]
            self._compile([*flags, "-x", "c++", "-c", str(unit), "-o", str(obj)])
            # Every `extern __shared__` array is the start of the block's dynamic shared memory.
            dynamic = undefined_thread_locals(obj.read_bytes())
            if initialiser_bytes(obj.read_bytes()) > _HOOKED:
                raise DeviceFault(
                    Status.LOAD_ERROR,
                    "the program has code that would run when it is loaded; a device runs kernels"
                    " only: use constant initialisers",
                )
            names = [f"-Wl,--defsym={name}=emu_shared_dynamic" for name in dynamic]
            start, end = self._shared_objects
            link = ["-shared", "-nostdlib", "-Wl,-z,defs", "-Wl,-Bsymbolic", *names]
            libraries = [str(self._hooks), str(self.runtime), "-lm", str(self._stub), "-lgcc"]
            self._compile([*link, str(start), str(obj), str(end), *libraries, "-o", out])

    @cached_property
    def _header(self) -> Path:
        """What every program includes; the compiler has read it once, and finds that beside it.

        A compiler that cannot use what another has read takes the text.
        """
        text = f'#include "{_CUDA / "cuda.hpp"}"\n'
        flags = [*_PROGRAM_FLAGS, *self.options]
        ingredients = [text, self._cuda_text, self._native_text, *_PROGRAM_FLAGS]
        header = self._target("header", ingredients, ".hpp")
        self._make(header, lambda out: Path(out).write_text(text, "utf-8"))
        arguments = [*flags, "-x", "c++-header", str(header), "-o"]
        with suppress(_CompilerError):
            self._make(Path(f"{header}.gch"), lambda out: self._compile([*arguments, out]))
        return header

    @cached_property
    def _shared_objects(self) -> tuple[Path, Path]:
        """Objects that mark where shared memory starts, and where its dynamic part does."""

        def make(kind: str, define: str) -> Path:
            flags = [*_RUNTIME_FLAGS, define, "-c", str(_NATIVE / "shared.cpp")]
            target = self._target(kind, [self._native_text, *flags], ".o")
            return self._make(target, lambda out: self._build_native([*flags, "-o", out]))

        return (
            make("shared-start", "-DEMU_SHARED_START"),
            make("shared-end", f"-DEMU_SHARED_BYTES={SHARED_BYTES}"),
        )

    @cached_property
    def _hooks(self) -> Path:
        """What the compiler calls around memory accesses."""
        flags = [*_RUNTIME_FLAGS, "-c", str(_NATIVE / "hooks.cpp")]
        target = self._target("hooks", [self._native_text, *flags], ".o")
        return self._make(target, lambda out: self._build_native([*flags, "-o", out]))

    @cached_property
    def _stub(self) -> Path:
        """What programs see of the C library."""
        flags = [*_RUNTIME_FLAGS, "-fno-builtin", "-nostdlib", "-shared", "-Wl,-soname,libc.so.6"]
        arguments = [*flags, str(_NATIVE / "stub.cpp")]
        target = self._target("stub", [self._native_text, *flags], ".so")
        return self._make(target, lambda out: self._build_native([*arguments, "-o", out]))

    @cached_property
    def _native_text(self) -> str:
        return "".join(p.read_text("utf-8") for p in sorted(_NATIVE.iterdir()) if p.is_file())

    @cached_property
    def _cuda_text(self) -> str:
        return "".join(p.read_text("utf-8") for p in sorted(_CUDA.glob("*.hpp")))

    def _target(self, kind: str, ingredients: Sequence[str], ending: str) -> Path:
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.version, self.compiler, *self.options, *ingredients):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
        return self.cache / f"{kind}-{digest.hexdigest()}{ending}"

    def _make(self, target: Path, build: Callable[[str], object]) -> Path:
        if not _whole(target):
            draft = self._draft(target.suffix)
            try:
                build(draft)
                with replacing(_digest_of(target)) as digest:
                    digest.write_text(_digest(Path(draft)), "utf-8")
                os.replace(draft, target)
            finally:
                Path(draft).unlink(missing_ok=True)
        return target

    def _draft(self, suffix: str) -> str:
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self.cache, prefix="draft-", suffix=suffix)
        except OSError as error:
            raise EmulatorUnavailable(
                f"{self.cache}: {error.strerror}; compiled programs are kept there:"
                " make it a folder that can be written, or let XDG_CACHE_HOME name another"
            ) from error
        os.close(handle)
        return draft

    def _build_native(self, arguments: Sequence[str]) -> None:
        try:
            self._compile(arguments)
        except _CompilerError as error:
            raise EmulatorUnavailable(
                f"{self.compiler} cannot build the emulator's runtime here ({error});"
                " install g++ 11 or later with the headers of the C library"
            ) from error

    def _compile(self, arguments: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="compiler-") as scratch:
            self._compile_in(scratch, arguments)

    def _compile_in(self, scratch: str, arguments: Sequence[str]) -> None:
        kilobytes = self.limits.memory_bytes // 1024
        # The limit on processor time ends a compiler that outlives this process.
        seconds = math.ceil(self.limits.seconds) + 1
        blocks = self.limits.output_bytes // 512
        limits = f"ulimit -v {kilobytes} && ulimit -t {seconds} && ulimit -f {blocks}"
        shell = f'{limits} && ulimit -c 0 && exec "$@"'
        process = subprocess.Popen(
            ["/bin/sh", "-c", shell, "sh", self.compiler, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**environment(), "LC_ALL": "C", "TMPDIR": scratch},
            start_new_session=True,
        )
        try:
            said = process.communicate(timeout=self.limits.seconds)[1].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            raise _CompilerError(
                f"{self.compiler} took more than {self.limits.seconds:g} s over it"
            ) from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode == 0:
            return
        stopped = _OF_THE_HOST.search(said)
        if stopped or process.returncode == -signal.SIGKILL:
            how = stopped[0] if stopped else "killed"
            raise CompilerStopped(
                f"the host stopped {self.compiler} ({how}); is there room in memory and on disk?"
            )
        raise _CompilerError(first_error(said) or f"{self.compiler}: {said.strip()[-200:]}")


def _whole(target: Path) -> bool:
    """Whether a file is there and as it was written; a host that lost power may have cut it."""
    try:
        return _digest_of(target).read_text("utf-8") == _digest(target)
    except (OSError, ValueError):
        return False


def _digest_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.digest")


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def first_error(said: str) -> str:
    """The first line of compiler output that names an error, without the names of folders."""
    for line in said.splitlines():
        if "error: " in line.lower() or "undefined reference" in line:
            place, _, rest = line.strip().partition(": ")
            return f"{place.rpartition('/')[2]}: {rest}"
    return ""
