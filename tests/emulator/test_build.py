"""Programs become shared objects, once."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np
import pytest

from suite.evaluation import Status
from suite.harness.device import DeviceFault
from suite.harness.emulator.build import (
    Builder,
    CompilerStopped,
    EmulatorUnavailable,
    Limits,
    UnsupportedProgram,
    first_error,
)
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.emulator.elf import undefined_thread_locals
from tests.emulator.lab import PRELUDE, Lab, ints, kernel, program

GOOD = PRELUDE + kernel("int* y", "y[threadIdx.x] = 1;")


def replace(kept: Path, contents: bytes) -> None:
    """Puts other contents into the cache as if they had been made there."""
    kept.write_bytes(contents)
    digest = hashlib.blake2b(contents, digest_size=16).hexdigest()
    kept.with_name(f"{kept.name}.digest").write_text(digest)


def test_a_program_is_compiled_once(cache: Path) -> None:
    first = Builder(cache).program(GOOD, [("k", 1)])
    stamp = first.stat().st_mtime_ns
    again = Builder(cache).program(GOOD, [("k", 1)])
    assert again == first
    assert again.stat().st_mtime_ns == stamp


def test_whatever_changes_the_object_changes_its_name(cache: Path) -> None:
    builder = Builder(cache)
    names = {
        builder.program(GOOD, [("k", 1)]),
        builder.program(GOOD + "\n", [("k", 1)]),
        builder.program(GOOD, []),
        Builder(cache, options=("-DOTHER",)).program(GOOD, [("k", 1)]),
    }
    assert len(names) == 4


def test_a_refused_program_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedProgram):
        Builder(tmp_path).program(PRELUDE + kernel("int* y", "nonsense;"), [("k", 1)])
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"header"}


def test_the_header_is_read_once_for_all_programs(tmp_path: Path) -> None:
    Builder(tmp_path).program(GOOD, [("k", 1)])
    (read,) = tmp_path.glob("header-*.hpp.gch")
    assert read.with_suffix("").is_file()  # the text, for a compiler that cannot use it
    replace(read.with_suffix(""), b"#error read again\n")
    Builder(tmp_path).program(GOOD + "\n", [("k", 1)])
    replace(read, b"of another compiler")
    with pytest.raises(UnsupportedProgram, match="read again"):
        Builder(tmp_path).program(GOOD + "\n\n", [("k", 1)])


def test_what_is_damaged_in_the_cache_is_made_anew(tmp_path: Path) -> None:
    def made() -> set[str]:
        Builder(tmp_path).program(GOOD, [("k", 1)])
        digests = {path.name: path.read_text() for path in tmp_path.glob("*.digest")}
        for name, digest in digests.items():
            contents = (tmp_path / name).with_suffix("").read_bytes()
            assert digest == hashlib.blake2b(contents, digest_size=16).hexdigest()
        return set(digests)

    names = made()
    for damage in (lambda whole: whole[: len(whole) // 2], lambda whole: bytes(len(whole))):
        for kept in list(tmp_path.iterdir()):
            kept.write_bytes(damage(kept.read_bytes()))
        assert made() == names


def test_a_cache_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(EmulatorUnavailable, match=f"^{taken}/emulator: .*XDG_CACHE_HOME"):
        EmulatorDevice(taken / "emulator")


def test_a_missing_compiler_is_named_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(EmulatorUnavailable, match=r"'g\+\+-0'.*not on PATH; install g\+\+"):
        EmulatorDevice(tmp_path, builder=Builder(tmp_path, compiler="g++-0"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('asm volatile("bar.sync 0;");', "program.cu:1:.*inline_PTX_is_not_emulated"),
        ("y[0] = __vadd4(1, 2);", "program.cu:1:.*__vadd4"),
        ("float* p = (float*)malloc(4); y[0] = *p;", "malloc"),
        ("y[0] = __fadd_rz(1.0f, 2.0f);", "__fadd_rz"),
        ("y[0] = system(0);", "system"),
    ],
)
def test_what_the_emulator_lacks_is_no_verdict_and_named(
    cache: Path, body: str, reason: str
) -> None:
    with pytest.raises(UnsupportedProgram, match=f"cannot run this program: .*{reason}") as caught:
        Builder(cache).program(PRELUDE + kernel("int* y", body), [("k", 1)])
    assert caught.value.status is Status.NOT_APPLICABLE
    assert "\n" not in str(caught.value)


def test_a_program_reaches_no_function_of_the_host(cache: Path) -> None:
    code = 'extern "C" int getpid();' + kernel("int* y", "y[0] = getpid();")
    with pytest.raises(DeviceFault, match="calls getpid, which no device has") as caught:
        Builder(cache).program(PRELUDE + code, [("k", 1)])
    assert caught.value.status is Status.LOAD_ERROR


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ('__builtin_printf("%d", y[0])', "printf"),
        ('__builtin_puts("a")', "puts"),
        ("y[0] = *(int*)__builtin_malloc(8)", "malloc"),
        ("y[0] = *(int*)__builtin_calloc(y[1], 8)", "calloc"),
        ("__builtin_abort()", "abort"),
        ("__builtin_exit(0)", "exit"),
        ("y[0] = __builtin_fork()", "fork"),
        ('y[0] = __builtin_execl("/bin/true", "true", (char*)0)', "execl"),
    ],
)
def test_nor_by_the_name_of_a_builtin(cache: Path, call: str, function: str) -> None:
    with pytest.raises(DeviceFault, match=function):
        Builder(cache).program(PRELUDE + kernel("int* y", call + ";"), [("k", 1)])


@pytest.mark.parametrize(
    "code",
    [
        "__device__ int start(); __device__ int at = start(); __device__ int start() { return 1; }",
        "int seen; __attribute__((constructor)) void early() { seen = 1; }",
        "int seen; __attribute__((destructor)) void late() { seen = 1; }",
        'void f() {} void (*pick())() { return f; } void g() __attribute__((ifunc("_Z4pickv")));',
    ],
)
def test_no_code_of_a_program_runs_outside_its_kernels(cache: Path, code: str) -> None:
    with pytest.raises(DeviceFault, match="would run when it is loaded") as caught:
        Builder(cache).program(PRELUDE + code + kernel("int* y", "y[0] = 1;"), [("k", 1)])
    assert caught.value.status is Status.LOAD_ERROR


def test_a_program_cannot_tell_the_host_compiler_by_its_macros(lab: Lab) -> None:
    body = """
        y[0] = 0;
        #if defined(__GNUC__) || defined(__x86_64__) || defined(__linux__) || defined(linux)
        y[0] = 1;
        #endif
        """
    assert lab.run(kernel("int* y", body), {"y": ints(1)}, block=1)["y"].tolist() == [0]


def test_a_program_that_takes_too_long_to_compile_is_given_up(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    endless = """
        template <int N, unsigned M> struct Grow {
            static constexpr unsigned left = Grow<N - 1, 2 * M>::value;
            static constexpr unsigned value = left + Grow<N - 1, 2 * M + 1>::value;
        };
        template <unsigned M> struct Grow<0, M> { static constexpr unsigned value = M; };
        """
    code = endless + kernel("int* y", "y[0] = Grow<28, 1>::value;")
    started = time.monotonic()
    with pytest.raises(UnsupportedProgram, match=r"took more than 0\.5 s"):
        Builder(cache, limits=Limits(seconds=0.5)).program(PRELUDE + code, [("k", 1)])
    assert time.monotonic() - started < 3
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_is_given_up_leaves_no_process_behind(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exec echo slow 1\n"
        f"sleep 60 &\necho $! > {tmp_path}/helper\nwait\n"
    )
    slow.chmod(0o755)
    builder = Builder(tmp_path / "cache", compiler=str(slow), limits=Limits(seconds=0.5))
    with pytest.raises(UnsupportedProgram, match=r"took more than 0\.5 s"):
        builder.program(GOOD, [("k", 1)])
    helper = Path("/proc", (tmp_path / "helper").read_text().strip(), "stat")
    assert not helper.exists() or helper.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    "said",
    [
        "g++: fatal error: Killed signal terminated program cc1plus",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "program.cu:2:6: fatal error: error writing to a.s: No space left on device",
        "a.s: Fatal error: can't write 8 bytes to section .text: 'No space left on device'",
        "/usr/bin/ld: final link failed: No space left on device",
        None,
    ],
)
def test_a_compiler_that_the_host_stopped_says_nothing_of_the_program(
    tmp_path: Path, said: str | None
) -> None:
    compiler, words = tmp_path / "stopped", tmp_path / "words"
    words.write_text(f"{said}\n")
    ending = f"cat {words} >&2; exit 1" if said else "kill -9 $$"
    compiler.write_text(f"#!/bin/sh\ncase $1 in --version) exec g++ $1;; esac\n{ending}\n")
    compiler.chmod(0o755)
    with pytest.raises(CompilerStopped, match="the host stopped"):
        Builder(tmp_path / "cache", str(compiler)).program(GOOD, [("k", 1)])


def test_what_a_program_says_of_the_host_is_its_own(cache: Path) -> None:
    said = "\n#error fatal error: No space left on device\n"
    with pytest.raises(UnsupportedProgram, match="No space left"):
        Builder(cache).program(GOOD + said, [("k", 1)])


def test_a_launch_with_the_wrong_number_of_arguments_is_refused(cache: Path) -> None:
    with pytest.raises(UnsupportedProgram, match="launched with 2 arguments"):
        Builder(cache).program(GOOD, [("k", 2)])


def test_the_first_error_is_one_line_without_folders() -> None:
    said = "In file included:\n/a/b/program.cu:3:5: error: 'x' was not declared\n   3 | x\n"
    assert first_error(said) == "program.cu:3:5: error: 'x' was not declared"
    assert first_error("all is well\n") == ""


def test_something_other_than_an_object_file_is_refused() -> None:
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF"):
        undefined_thread_locals(b"MZ" + bytes(100))


def test_fibers_that_switch_by_the_c_library_behave_the_same(cache: Path, lab: Lab) -> None:
    def answers(lab: Lab) -> list[list[int]]:
        masks = {"out": np.zeros(352, np.uint32)}
        sums = {"y": ints(12), "x": np.arange(192, dtype=np.int32), "scale": -4, "count": 9}
        text = program("collectives.cu")
        found = [lab.run(text, masks, name=n)["out"] for n in ("votes", "halves", "converged")]
        found.append(lab.run(program("language.cu"), sums, name="language", grid=3, block=64)["y"])
        return [f.tolist() for f in found]

    def attempt() -> None:
        portable = Builder(cache, options=("-DEMU_PORTABLE",))
        assert answers(Lab(EmulatorDevice(cache, builder=portable))) == expected

    expected = answers(lab)
    assert lab.fault(attempt) == (Status.OK, "")
