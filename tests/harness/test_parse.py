"""A program's text is read as docs/program.md says, and errors name the line."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.harness.parse import parse, unwrap
from suite.harness.plan import ParseError

GOOD = """//! op spmv
//! format sell c=16 sigma=64
//! let LANES 8
//! require rows > 0
//! workspace carry real ceildiv(nnz,256)*2 zero
//! init zero
//! launch k grid=ceildiv(rows*LANES,256),2 block=32,8 shared=LANES*4
// A comment with __global__ void decoy(int z) and "quotes".
__device__ __forceinline__ real twice(real a) { return a + a; }
extern "C" __global__ void __launch_bounds__(256, 2)
k(int rows, const int* __restrict__ slice_ptr,
  const real *vals, real* const __restrict__ y, unsigned long long nnz, long long int cols) {}
"""


def test_header_lines_and_signatures_are_read() -> None:
    program = parse(GOOD)
    assert program.op == "spmv"
    assert repr(program.format) == "Sell(c=16, sigma=64)"
    assert program.constants == {"LANES": 8}
    assert program.requires == (("rows > 0", "line 4"),)
    assert program.init_zero
    (workspace,) = program.workspaces
    assert (workspace.name, workspace.dtype, workspace.zero) == ("carry", "real", True)
    (launch,) = program.launches
    assert launch.grid == ("ceildiv(rows*LANES,256)", "2")
    assert (launch.block, launch.shared, launch.where) == (("32", "8"), "LANES*4", "line 7")
    assert [(p.name, p.base, p.pointer, p.const) for p in program.kernels["k"]] == [
        ("rows", "int", False, False),
        ("slice_ptr", "int", True, True),
        ("vals", "real", True, True),
        ("y", "real", True, False),
        ("nnz", "unsigned long long", False, False),
        ("cols", "long long", False, False),
    ]
    assert program.kernels["k"][2].line == 12


HEADER = "//! op spmv\n//! format csr\n//! launch k grid=1 block=32\n"
KERNEL = 'extern "C" __global__ void k(int rows) {}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("\0" + HEADER + KERNEL, "line 1: the text holds a NUL"),
        (HEADER + KERNEL + "// \ud800", "line 5: the text is not valid Unicode"),
        (KERNEL, "no '//! op' line"),
        ("//! op spmv\n" + KERNEL, "no '//! format' line; known formats are bell, bsr,"),
        ("//! op spmv\n//! format csr\n" + KERNEL, "no '//! launch' line"),
        ("//! op gemm\n", "line 1: op is spmv or spmm, not 'gemm'"),
        ("//! op spmv\n//! op spmm\n", "line 2: a second"),
        ("//! op spmv\n//! format csc\n", "line 2: unknown format 'csc'; known are"),
        (
            "//! op spmv\n//! format sell d=3\n",
            "line 2: format sell has no parameter 'd'; it takes c, sigma",
        ),
        ("//! op spmv\n//! format sell c=0\n", "line 2: format sell: c must be at least 1"),
        ("//! op spmv\n//! format sell c\n", "line 2: 'c' is not parameter=INTEGER"),
        ("//! op spmv\n//!\n", "line 2: unknown header ''"),
        ("//! op spmv\n//! host code\n", "line 2: unknown header 'host'; known are op, format"),
        ("//! let A 1\n//! let A 2\n", "line 2: A is already a constant"),
        ("//! let 9A 1\n", "line 1: expected //! let NAME INTEGER"),
        ("//! let A x\n", "line 1: expected //! let NAME INTEGER"),
        ("//! require rows/2\n", "line 1: .* write //"),
        ("//! workspace w half 3\n", "line 1: workspace type is one of"),
        ("//! workspace w int 3 ones\n", "line 1: expected //! workspace"),
        ("//! workspace w int 3\n//! workspace w int 3\n", "line 2: workspace w is declared twice"),
        ("//! init one\n", "line 1: expected //! init zero"),
        ("//! launch k grid=1\n", "line 1: launch of k has no block"),
        ("//! launch k grid=1 block=1 stream=2\n", "line 1: 'stream=2' is not grid"),
        (
            "//! launch k grid=1 grid=1 block=1\n",
            "line 1: 'grid=1' is not grid=…, block=… or shared=…, each once",
        ),
        ("//! launch k grid=1,2,3,4 block=1\n", "line 1: '1,2,3,4' has 4 dimensions"),
        ("//! launch k grid=rows.x block=1\n", "line 1: .*Attribute is not allowed"),
        (HEADER + '#include "secret.h"\n' + KERNEL, "line 4: #include is refused"),
        (HEADER + "#  inc\\\nlude <x>\n" + KERNEL, "line 4: #include is refused"),
        (HEADER + "/* */ %: include <x>\n" + KERNEL, "line 4: #include is refused"),
        (HEADER + "#line 3\n" + KERNEL, "line 4: #line is refused"),
        (HEADER + "#if __has_include(<x>)\n#endif\n" + KERNEL, "line 4: __has_include is refused"),
        (HEADER + "__global__ void k(int rows) {}\n", 'line 4: a kernel needs extern "C"'),
        (HEADER + KERNEL + KERNEL, "line 5: kernel k is defined twice"),
        (HEADER + 'extern "C" __global__ void k(int) {}\n', "line 4: .* needs a type and a name"),
        (HEADER + 'extern "C" __global__ void k(int rows[3]) {}\n', "line 4: kernel k: parameter"),
        (
            HEADER + 'extern "C" __global__ void k(int** rows) {}\n',
            "neither a number nor a plain pointer",
        ),
        (
            HEADER + 'extern "C" __global__ void k(int rows',
            "line 4: this parenthesis is never closed",
        ),
        (HEADER + "//" + "x" * 200_001, "at most 200,000"),
        (
            HEADER + 'auto* s = u8R"(" /* )";\n#include "secret"\n// */\n',
            "line 5: #include is refused",
        ),
        (HEADER + 'auto* s = R"x(', "line 4: this raw string is never closed"),
        (HEADER + "/* for ever", "line 4: this comment is never closed"),
        (HEADER + '// a\r#include "secret"\n', "line 4: a carriage return"),
        (HEADER + KERNEL + "//! let A 1\n", "line 5: header lines come before the code, .* line 4"),
        ("/* note */\n" + HEADER, "line 2: header lines come before the code"),
        (HEADER + 'void f() { asm volatile("exit;"); }\n', "line 4: inline assembly is refused"),
        (HEADER + "#define __asm__ x\n", "line 4: #define __asm__: names with __"),
        (
            HEADER + 'int a __attribute__((section("x\\n")));\n',
            "line 4: attribute section is refused",
        ),
        (HEADER + "[[gnu::no_sanitize]] int f();\n", "line 4: attribute gnu is refused"),
        (HEADER + "#define __tsan_x 1\n", "line 4: .* names with __ are the compiler's|reserved"),
        (HEADER + "#undef __CUDA_ARCH__\n", "line 4: #undef __CUDA_ARCH__"),
        (HEADER + "#pragma GCC optimize 3\n", "line 4: #pragma GCC is refused"),
        (HEADER + "#pragma redefine_extname a b\n", "line 4: #pragma redefine_extname is refused"),
        (HEADER + "#ifdef EMU_ENTRY\n#endif\n", "line 4: names that begin with emu_"),
        (
            "".join(f"//! workspace w{i} int 1\n" for i in range(33)),
            "line 33: more than 32 workspace lines",
        ),
        (
            HEADER + "".join(KERNEL.replace(" k(", f" k{i}(") for i in range(65)),
            "more than 64 kernels",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        parse(text)


def test_a_message_is_one_line() -> None:
    with pytest.raises(ParseError) as caught:
        parse("//! op spmv\n//! format nothing\n")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fence", ["```cuda\n{}```\n", "```\n{}\n```", "\ufeff{}", "\n```c++\n{}"])
def test_fences_and_a_byte_order_mark_are_taken_off(fence: str) -> None:
    program = parse(fence.format(HEADER + KERNEL))
    assert program.code.strip() == (HEADER + KERNEL).strip()


def test_curly_quotes_stay_and_are_for_the_compiler_to_refuse() -> None:
    assert "“" in unwrap(HEADER + KERNEL + "// “x”")


def test_windows_line_ends_are_line_ends() -> None:
    assert parse((HEADER + KERNEL).replace("\n", "\r\n")).launches[0].where == "line 3"


def test_a_kernel_inside_a_comment_or_a_string_is_none() -> None:
    text = (
        HEADER
        + '/* extern "C" __global__ void k(int a) {} */ const char* s = "__global__ void q(";\n'
    )
    assert parse(text).kernels == {}


def test_a_linkage_block_covers_every_kernel_inside_it_and_none_after_it() -> None:
    block = (
        'extern "C" {\n__global__ void a(int rows) { if (rows) {} }\n__global__ void b() {}\n}\n'
    )
    assert list(parse(HEADER + block).kernels) == ["a", "b"]
    with pytest.raises(ParseError, match="line 8"):
        parse(HEADER + block + "__global__ void c() {}\n")


def test_harmless_attributes_and_unrolling_are_known() -> None:
    text = HEADER + "struct __attribute__((aligned(16))) P { float a[4]; };\n"
    text += "[[maybe_unused]] __device__ int f(int* a, int* b) { return a[b[0]]; }\n"
    text += 'extern "C" __global__ void k(int rows) {\n#pragma unroll 4\n  for (;;) ;\n}\n'
    assert list(parse(text).kernels) == ["k"]


def test_a_forward_declaration_is_not_a_second_definition() -> None:
    text = HEADER + 'extern "C" __global__ void k(int rows);\n' + KERNEL
    assert list(parse(text).kernels) == ["k"]


@pytest.mark.parametrize(
    "text",
    ['R"(' * 60_000, "/*" * 90_000, '"' * 199_999, 'extern "C" __global__ ' * 9_000, "(" * 190_000],
    ids=["raw strings", "comments", "quotes", "kernels", "parentheses"],
)
def test_no_text_takes_long_to_refuse(text: str) -> None:
    started = time.thread_time()
    with suppress(ParseError):
        parse(HEADER + text)
    assert time.thread_time() - started < 2


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from('/!*"\\\n#(){}<>,;= kvoid__global__extern"C"int'), max_size=200
    )
)
def test_no_text_raises_anything_but_a_parse_error(text: str) -> None:
    with suppress(ParseError):
        assert parse(HEADER + text).launches
