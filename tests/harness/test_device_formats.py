"""A device format brings arrays, sizes and code to a program, and nothing of it can be changed."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from suite import formats
from suite.evaluation import Status
from suite.formats.base import NotApplicableError
from suite.harness.bind import bind, check_names
from suite.harness.compile import CompileError, Target, compile_source, program_source
from suite.harness.evaluate import Evaluator
from suite.harness.parse import parse
from suite.harness.plan import ParseError
from suite.harness.signature import Token, tokens
from suite.harness.storage import DeviceFormat, device_format, device_formats, known, read
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from tests.harness.samples import PROBLEM, verdict

DOCS = Path(__file__).parents[2] / "docs" / "program.md"
ALL = [device_format(name) for name in device_formats()]
each_format = pytest.mark.parametrize("made", ALL, ids=lambda made: made.name)

# Derives an array of its own, the sum of each row's values, from what the format derived.
PROGRAM = """//! op spmv
//! format ell4 BITS=32
//! let THREADS 64
//! require rows > 0
//! derived sums real pitch
//! prepare add grid=ceildiv(rows,THREADS) block=THREADS
//! launch k grid=ceildiv(rows,THREADS) block=THREADS
extern "C" __global__ void add(int rows, int longest, const real* packed, real* sums) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int k = 0; k < longest; ++k) {
    const size_t slot = k < longest / 4 * 4 ? 4 * (k / 4 * pitch_of(rows) + row) + k % 4
                                            : k * pitch_of(rows) + row;
    sum += packed[slot];
  }
  sums[row] = sum;
}
extern "C" __global__ void k(int rows, int cols, int longest, int pitch,
                             const unsigned short* codes, const real* packed, const real* sums,
                             const real* x, real* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0, values = 0;
  for (int i = 0; i < longest; ++i) {
    const size_t slot = i < longest / 4 * 4 ? 4 * ((size_t)i / 4 * pitch + row) + i % 4
                                            : (size_t)i * pitch + row;
    sum += packed[slot] * x[((const Code*)codes)[slot] + origin(row, cols)];
    values += packed[slot];
  }
  y[row] = values == sums[row] ? sum : -1;
}
"""
SIZES = {"rows": 70, "cols": 50, "nnz": 210, "n": 1, "sms": 4, "itemsize": 8}
SIZES |= {"longest": 3, "filled": 70, "reach": 60}


def changed(old: str, new: str) -> str:
    assert PROGRAM.count(old) == 1
    return PROGRAM.replace(old, new)


def test_lines_of_the_format_come_before_the_programs_own() -> None:
    program = parse(PROGRAM)
    assert program.format == formats.make("csr", {})
    assert program.spelling == "ell4 BITS=32"
    assert program.constants == {"BITS": 32, "THREADS": 64}
    assert [array.name for array in program.derived] == ["codes", "packed", "sums"]
    assert [line.kernel for line in program.prepares] == ["ell4_pack", "add"]
    assert [line.where for line in program.prepares] == ["ell4.cu line 9", "line 6"]
    assert program.requires[0] == ("BITS == 16 or BITS == 32", "ell4.cu line 3")
    assert program.requires[-1] == ("rows > 0", "line 4")
    assert set(program.kernels) == {"ell4_pack", "add", "k"}
    assert program.code == PROGRAM  # the author's text is what it was


def test_defaults_stand_in_the_spelling_and_spelling_it_out_changes_nothing() -> None:
    short = parse(changed(" BITS=32", ""))
    assert short.spelling == "ell4 BITS=16"
    again = parse(changed("ell4 BITS=32", short.spelling))
    assert again.support == short.support


def test_sizes_are_numbers_for_arithmetic_and_parameters() -> None:
    program = parse(PROGRAM)
    check_names(program, Op.SPMV, DType.FLOAT64)
    plan = bind(program, Op.SPMV, DType.FLOAT64, SIZES)
    assert {array.name: array.nbytes for array in plan.derived} == {
        "codes": 2 * 2 * 3 * 96,
        "packed": 8 * 3 * 96,
        "sums": 8 * 96,
    }
    assert [launch.kernel for launch in plan.prepares] == ["ell4_pack", "add"]
    assert plan.launches[0].args[3].value == 96
    assert plan.streamed == ("codes", "packed", "sums")


def test_a_matrix_that_the_format_refuses_is_not_applicable() -> None:
    with pytest.raises(NotApplicableError, match=r"requires 4 \* rows \* longest <= 5 \* nnz"):
        bind(parse(PROGRAM), Op.SPMV, DType.FLOAT64, {**SIZES, "nnz": 100})


def test_a_parameter_reaches_the_host_format() -> None:
    text = changed("ell4 BITS=32", "bell EDGE=8")
    assert parse(text).format == formats.make("bsr", {"b": 8})


def test_a_program_on_a_device_format_is_right_and_says_what_it_read(evaluator: Evaluator) -> None:
    band = sparse.diags_array([np.full(90, 2.0)] * 5, offsets=[0, 1, 2, -1, 3], shape=(90, 93))
    problem = Problem(Op.SPMV, Matrix("band", "band", canonical(band.tocsr(), "band")))
    found = verdict(evaluator, PROGRAM, problem)
    assert found.status is Status.OK, found.error
    assert found.format == "ell4 BITS=32"
    assert found.derived_bytes == (2 * 2 * 5 + 4 * 5 + 4) * 96
    assert verdict(evaluator, PROGRAM, PROBLEM).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("ell4 BITS=32", "ell5", r"line 2: unknown format 'ell5'; known are .*coltile.*csr.*ell4"),
        ("ell4 BITS=32", "", r"line 2: which format\? known are .*ell4"),
        ("BITS=32", "TILE=32", "line 2: format ell4 has no parameter 'TILE'; it takes BITS"),
        ("BITS=32", "BITS=8", "line 2: format ell4 requires BITS == 16 or BITS == 32"),
        ("BITS=32", "BITS=0", "line 2: format ell4: BITS must be at least 1, not 0"),
        ("BITS=32", "BITS=BITS", "line 2: 'BITS=BITS' is not parameter=INTEGER"),
        ("let THREADS", "let BITS", "line 3: BITS is a name of the format ell4; rename it"),
        ("let THREADS", "let pitch", "line 3: pitch is a name of the format ell4; rename it"),
        ("let THREADS", "let codes", "line 3: codes is a name of the format ell4; rename it"),
        ("derived sums", "derived packed", "line 5: packed is a name of the format ell4"),
        ("derived sums", "workspace pitch", "line 5: pitch is a name of the format ell4"),
        ("void add(", "void ell4_pack(", "line 8: ell4_pack is a name of the format ell4"),
        ('extern "C" __global__ void k(', "#define BITS 16\n", "line 19: BITS is a name of the"),
        ('extern "C" __global__ void k(', "#undef BITS\n", "line 19: BITS is a name of the format"),
        (
            'extern "C" __global__ void k(',
            "# \\\n define ell4_pack add\n",
            "line 20: ell4_pack is a name of the format ell4",
        ),
        ("let THREADS 64", "base csr", "line 3: unknown header 'base'; known are op, format"),
        ("let THREADS 64", "size many rows", "line 3: unknown header 'size'"),
    ],
)
def test_what_is_wrong_is_named_with_the_programs_own_line(old: str, new: str, says: str) -> None:
    with pytest.raises(ParseError, match=f"^{says}"):
        parse(changed(old, new))


def test_a_compiler_message_has_the_programs_own_line() -> None:
    line = PROGRAM[: PROGRAM.index("values += ")].count("\n") + 1
    with pytest.raises(CompileError, match=rf"^program\.cu\({line}\): error.*\"valued\""):
        compile_source(
            program_source(parse(changed("values += ", "valued += ")), DType.FLOAT32), Target()
        )


def test_a_programs_macros_do_not_reach_the_formats_code() -> None:
    hostile = changed("let THREADS 64", "let row 64").replace("THREADS", "64").replace("row]", "0]")
    source = program_source(parse(hostile), DType.FLOAT32)
    assert source.index("ell4_pack(") < source.index("#define row 64")


def test_helpers_of_the_preparation_leave_their_names_free() -> None:
    own = "__device__ int block_scan(int value, int* warp_sums) { return value; }\n"
    text = (
        "//! op spmv\n//! format coltile\n//! init zero\n//! launch k grid=1 block=1\n"
        f'#define ALL 1\n{own}extern "C" __global__ void k(const int* spans) {{}}\n'
    )
    compiled = compile_source(program_source(parse(text), DType.FLOAT32), Target())
    assert compiled.log == ""
    assert "coltile_mark" in compiled.kernels


def test_every_name_that_a_message_offers_is_a_format() -> None:
    assert known() == sorted({*formats.formats(), *device_formats()})
    assert not set(formats.formats()) & set(device_formats())


# The files themselves


@each_format
def test_a_file_explains_itself_and_keeps_to_its_names(made: DeviceFormat) -> None:
    lines = made.code.split("\n")
    first = next(at for at, line in enumerate(lines) if line and not line.startswith("//"))
    idea = [line for line in lines[:first] if re.match(r"// \S", line)]
    assert 3 <= len(idea) <= 14
    assert max(len(line) for line in lines if not line.startswith("//!")) <= 100
    prepared = [line.kernel for line in made.header.prepares]
    assert sorted(made.kernels) == sorted(prepared)
    assert all(kernel.startswith(f"{made.name}_") for kernel in made.kernels)
    assert made.base in formats.formats()


@each_format
@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.short)
def test_a_file_asks_only_for_what_there_is(made: DeviceFormat, dtype: DType) -> None:
    text = (
        f"//! op spmv\n//! format {made.name}\n//! launch k grid=1 block=1\n"
        'extern "C" __global__ void k(real* y) {}\n'
    )
    check_names(parse(text), Op.SPMV, dtype)


def helpers(found: list[Token]) -> set[str]:
    """Functions, constants and types that a file defines outside of kernels and namespaces."""
    names: set[str] = set()
    depth = 0
    statement: list[str] = []
    for token in found:
        if token.kind == "newline" or statement[:1] == ["#"]:
            statement = [] if token.kind == "newline" and statement[:1] == ["#"] else statement
            continue
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if token.text in "{};" and depth <= (token.text == "{"):
            if "__device__" in statement:
                names.add(statement[statement.index("(") - 1])
            elif statement[:1] == ["constexpr"]:
                names.add(statement[statement.index("=") - 1])
            elif statement[:1] == ["typedef"]:
                names.add(statement[-1])
            elif statement[:1] == ["struct"]:
                names.add(statement[1])
            statement = []
        elif depth == 0:
            statement.append(token.text)
    return names


@each_format
def test_the_documentation_knows_every_name_of_a_format_and_no_other(made: DeviceFormat) -> None:
    (row,) = (line for line in DOCS.read_text().split("\n") if line.startswith(f"| `{made.name}`:"))
    _, _, base, parameters, sizes, arrays, offered, _ = row.split("|")
    header = made.header
    assert header.base is not None
    spelled = " ".join([header.base[0], *(f"{k}={v}" for k, v in header.base[1].items())])
    defaults = [f"{name}={value}" for name, value in header.parameters.items()]

    def quoted(cell: str) -> list[str]:
        return sorted(re.findall(r"`([^`]+)`", cell))

    assert quoted(base) == [spelled]
    assert quoted(parameters) == sorted([*defaults, *header.constants])
    assert quoted(sizes) == sorted(name for name, _, _ in header.sizes)
    assert quoted(arrays) == sorted(array.name for array in header.derived)
    assert quoted(offered) == sorted(helpers(list(tokens(made.code))))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("//! derived a int 1\n", r"odd\.cu: no '//! base' line"),
        ("//! base csr\n//! base coo\n", r"odd\.cu line 2: expected one //! base"),
        ("//! base bsr b\n", r"odd\.cu line 1: expected one //! base"),
        ("//! base csr\n//! op spmv\n", r"odd\.cu line 2: unknown header 'op'; known are base"),
        ("//! base csr\n//! param A\n", r"odd\.cu line 2: expected //! param NAME INTEGER"),
        ("//! base csr\n//! let A 1\n//! param A 1\n", r"odd\.cu line 3: A is already a constant"),
        ("//! base csr\n//! param A 1\n//! size A 1\n", r"odd\.cu line 3: expected //! size"),
        ("//! base csr\n#include <x>\n", r"odd\.cu line 2: #include is refused"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_file(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "odd.cu"
    path.write_text(text)
    with pytest.raises(ParseError, match=f"^{says}"):
        read(path)
