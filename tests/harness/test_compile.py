"""NVRTC compiles programs on any host; what it refuses is a verdict, what it lacks is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite.evaluation import Resources
from suite.harness import compile as compiler
from suite.harness.compile import (
    MAX_LOG,
    Cache,
    CompileError,
    CompilerUnavailable,
    Target,
    architecture,
    compile_source,
    resources,
    source_of,
)
from suite.problem import DType

KERNEL = """extern "C" __global__ void k(int rows, real* y) {
  __shared__ real s[LANES];
  s[threadIdx.x % LANES] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x + rows) % LANES];
}
"""


def source(code: str = KERNEL, dtype: DType = DType.FLOAT32) -> str:
    return source_of(code, {"LANES": 8}, dtype)


def test_a_program_compiles_to_machine_code_with_its_resources() -> None:
    compiled = compile_source(source(), Target())
    assert compiled.cubin[:4] == b"\x7fELF"
    found = compiled.kernels["k"]
    assert found.registers > 0
    assert found.shared_bytes == 32
    assert compiled.log == ""
    assert compiled.milliseconds > 1


def test_real_is_what_the_problem_asks() -> None:
    compiled = compile_source(source(dtype=DType.FLOAT64), Target(dtype=DType.FLOAT64))
    assert compiled.kernels["k"].shared_bytes == 64


def test_an_error_names_the_programs_own_line() -> None:
    with pytest.raises(CompileError, match=r"program\.cu\(3\): error: identifier \"z\"") as caught:
        compile_source(source(KERNEL.replace("= y[threadIdx.x];", "= z;")), Target())
    assert "1 error detected" in caught.value.log


def test_curly_quotes_are_a_compile_error_whatever_the_locale(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from suite.harness.compile import Cache, CompileError, Target\n"
        "from tests.harness.test_compile import KERNEL, source\n"
        "cache = Cache(__import__('pathlib').Path(sys.argv[1]))\n"
        "text = source(KERNEL + 'const char* s = \\u201cx\\u201d;')\n"
        "for _ in range(2):\n"
        "    try:\n        cache.compile(text, Target())\n"
        "    except CompileError as error:\n        print(ascii(str(error)))\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    compiled, remembered = ended.stdout.splitlines()
    assert "program.cu(7): error" in compiled
    assert remembered == compiled


def test_a_long_log_is_cut_and_still_names_the_first_error() -> None:
    lines = [f"int v{i} = {'undeclared' * 40}{i};" for i in range(90)]
    with pytest.raises(CompileError, match=r"program\.cu\(1\): error") as caught:
        compile_source(source("\n".join(lines)), Target())
    assert len(caught.value.log) == MAX_LOG


@pytest.mark.parametrize("name", ["cuda_fp16.h", "stdio.h", "vector"])
def test_no_header_of_the_host_is_found(name: str) -> None:
    with pytest.raises(CompileError, match=f'could not open source file "{name}"'):
        compile_source(source(f"#include <{name}>\n"), Target())


def test_an_architecture_that_the_compiler_lacks_is_not_the_programs_fault() -> None:
    with pytest.raises(CompilerUnavailable, match="arch"):
        compile_source(source(), Target(arch="sm_999"))


@pytest.mark.parametrize(
    ("capability", "expected"),
    [(90, "sm_90"), (75, "sm_75"), (121, "sm_121"), (91, "compute_90"), (130, "compute_121")],
)
def test_the_highest_known_architecture_not_above_the_device_is_chosen(
    capability: int, expected: str
) -> None:
    assert architecture(capability, [75, 80, 90, 121]) == expected


def test_a_device_older_than_the_compiler_is_refused() -> None:
    with pytest.raises(CompilerUnavailable, match="sm_75 and later, the device is sm_70"):
        architecture(70, [75, 80])


def test_this_compiler_knows_the_architectures_that_it_says() -> None:
    known = compiler.supported_architectures()
    assert 90 in known
    assert known == sorted(known)


def test_spills_and_stacks_are_read_from_the_assemblers_report() -> None:
    log = """ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    96 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 96 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Used 8 registers
"""
    assert resources(log) == {"a": Resources(255, 84, 4096, 96), "b": Resources(8)}


def test_the_cache_answers_without_compiling_again(tmp_path, monkeypatch) -> None:
    cache = Cache(tmp_path)
    first = cache.compile(source(), Target())
    monkeypatch.setattr(compiler, "compile_source", lambda *_: pytest.fail("compiled again"))
    second = cache.compile(source(), Target())
    assert (second.cubin, second.kernels, second.milliseconds) == (first.cubin, first.kernels, 0.0)


def test_the_cache_remembers_refusals(tmp_path, monkeypatch) -> None:
    cache = Cache(tmp_path)
    broken = source("extern")
    with pytest.raises(CompileError) as first:
        cache.compile(broken, Target())
    monkeypatch.setattr(compiler, "compile_source", lambda *_: pytest.fail("compiled again"))
    with pytest.raises(CompileError) as second:
        cache.compile(broken, Target())
    assert (str(second.value), second.value.log) == (str(first.value), first.value.log)


def test_a_torn_cache_file_is_compiled_anew(tmp_path) -> None:
    cache = Cache(tmp_path)
    whole = cache.compile(source(), Target()).cubin
    (path,) = tmp_path.rglob("*.cubin")
    path.write_bytes(path.read_bytes()[:-100])
    assert cache.compile(source(), Target()).cubin == whole


def test_a_cache_that_can_be_neither_read_nor_written_costs_only_time(tmp_path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    cache = Cache(taken)
    assert cache.compile(source(), Target()).cubin == cache.compile(source(), Target()).cubin


def test_architectures_do_not_share_cache_entries(tmp_path) -> None:
    cache = Cache(tmp_path)
    cache.compile(source(), Target("sm_90"))
    assert cache.compile(source(), Target("sm_80")).milliseconds > 0


LASTING = """__device__ int runs;
static __device__ real kept[4];
__device__ const real table[2] = {1, 2};
struct Tile { static constexpr int WIDTH = 4; };
__constant__ real fixed[2] = {3, 4};
extern "C" __global__ void k(int n, real* y) { BODY }
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("y[n] = sinf(y[n] * Tile::WIDTH) * fixed[n] + cosf(1e6f * y[n]);", ()),
        ("y[n] = ++runs;", ("runs",)),
        ("kept[n % 4] += y[n]; y[n] = kept[n % 3];", ("kept",)),
        ("y[n] = table[n];", ("table",)),
        ("static int count; y[n] = ++count;", ("_ZZ1kE5count",)),
        ("y[n] = *(int*)malloc(n);", ("malloc",)),
        ('printf("%d", n);', ("$str", "vprintf")),
    ],
)
def test_what_would_outlive_a_run_is_named(
    tmp_path: Path, body: str, found: tuple[str, ...]
) -> None:
    cache, text = Cache(tmp_path), source(LASTING.replace("BODY", body))
    assert cache.compile(text, Target()).lasting == found
    assert cache.compile(text, Target()).lasting == found  # from the cache


def test_machine_code_beyond_the_limit_is_a_refusal_that_is_remembered(tmp_path: Path) -> None:
    cache = Cache(tmp_path, output_bytes=100)
    for _ in range(2):
        with pytest.raises(CompileError, match=r"bytes of machine code; at most 100"):
            cache.compile(source(), Target())


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("y[n] = 2 * y[n + 1];", False),
        ("for (int d = 16; d; d /= 2) n += __shfl_down_sync(~0u, n, d); y[n] = n;", False),
        ("atomicAdd(&y[n], 1);", True),
        ("y[n] = atomicAdd(&y[n], 1);", True),
        ("__shared__ real s[64]; s[n] = y[n]; __syncthreads(); y[n] = s[n ^ 1];", True),
        ("y[n] = *(volatile real*)(y + 1);", True),
        ("y[n] = 1; __threadfence(); y[n + 1] = 2;", True),
    ],
)
def test_programs_whose_threads_meet_in_memory_are_known(
    tmp_path: Path, body: str, found: bool
) -> None:
    cache = Cache(tmp_path)
    text = source(f'extern "C" __global__ void k(int n, real* y) {{ {body} }}')
    assert [cache.compile(text, Target()).meets for _ in range(2)] == [found] * 2
