"""Names become buffers and numbers; what is not offered is refused with a list of what is."""

import pytest

from suite.formats.base import NotApplicableError
from suite.harness.bind import bind, check_names
from suite.harness.parse import parse
from suite.harness.plan import BindError, BufferArg, ScalarArg
from suite.problem import DType, Op

SIZES = {"rows": 100, "cols": 90, "nnz": 500, "n": 1, "sms": 4, "itemsize": 4}


def program(
    header: str = "", signature: str = "int rows, const real* vals, real* y", launch: str = ""
):
    launch = launch or "//! launch k grid=ceildiv(rows,32) block=32"
    text = f"//! op spmv\n//! format csr\n{header}\n{launch}\n"
    return parse(text + f'extern "C" __global__ void k({signature}) {{}}\n')


def bound(*args, **kwargs):
    declaration = program(*args, **kwargs)
    check_names(declaration, Op.SPMV, DType.FLOAT32)
    return bind(declaration, Op.SPMV, DType.FLOAT32, SIZES)


def test_parameters_bind_by_name_in_the_kernels_order() -> None:
    plan = bound(signature="real* y, unsigned nnz, const int* row_ptr, size_t rows, const float* x")
    assert plan.launches[0].args == (
        BufferArg("y"),
        ScalarArg(500, "unsigned int"),
        BufferArg("row_ptr"),
        ScalarArg(100, "unsigned long long"),
        BufferArg("x"),
    )
    assert plan.launches[0].grid == (4, 1, 1)
    assert (plan.output, plan.bound) == ("y", ("row_ptr", "x", "y"))


def test_workspaces_are_sized_and_belong_to_no_input() -> None:
    plan = bound(
        "//! workspace w real nnz*2 zero\n//! workspace c int 3", "real* w, int* c, real* y"
    )
    assert [(w.name, w.nbytes, w.zero) for w in plan.workspaces] == [
        ("w", 4000, True),
        ("c", 12, False),
    ]
    assert plan.bound == ("y",)


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        (
            {"signature": "int height, real* y"},
            "line 5: kernel k: parameter height is unknown; known numbers are",
        ),
        (
            {"signature": "const real* w, real* y"},
            "parameter w is unknown; known arrays are col_idx, row_ptr",
        ),
        (
            {"signature": "const double* vals, real* y"},
            r"vals points to real \(float here\), not double",
        ),
        ({"signature": "const float4* x, real* y"}, "reinterpret it inside the kernel"),
        ({"signature": "const long long* row_ptr, real* y"}, "points to int"),
        ({"signature": "int* rows, real* y"}, "rows is a number, take it by value"),
        ({"signature": "int vals, real* y"}, "vals is an array, take it by pointer"),
        ({"signature": "float rows, real* y"}, "a number of type int, not float"),
        ({"launch": "//! launch q grid=1 block=1"}, "line 4: no kernel 'q'; the text has k"),
        (
            {"launch": "//! launch k grid=slices block=1"},
            "line 4: unknown name 'slices'; known are",
        ),
        ({"launch": "//! launch k grid=1 block=2048"}, "block x is 2048; at most 1024"),
        ({"launch": "//! launch k grid=1 block=64,64"}, "a block of 4096 threads"),
        ({"launch": "//! launch k grid=1 block=0"}, "a block of 0 threads"),
        ({"launch": "//! launch k grid=1,70000 block=1"}, "grid y is 70000; at most 65535"),
        ({"launch": "//! launch k grid=rows%(n-1) block=1"}, "divides by zero"),
        ({"header": "//! let rows 3"}, "constant rows hides"),
        ({"header": "//! let vals 3"}, "constant vals hides"),
        ({"header": "//! workspace x int 3"}, "array x hides"),
        (
            {"header": "//! let BIG 4294967296", "signature": "int BIG, real* y"},
            "BIG is 4294967296, too large",
        ),
    ],
)
def test_what_is_not_offered_is_refused(kwargs, says: str) -> None:
    with pytest.raises(BindError, match=says):
        bound(**kwargs)


def test_a_program_for_the_other_operation_is_refused() -> None:
    with pytest.raises(BindError, match="the program says //! op spmv, the problem is spmm"):
        check_names(program(), Op.SPMM, DType.FLOAT32)


def test_a_requirement_that_does_not_hold_makes_the_program_not_applicable() -> None:
    with pytest.raises(NotApplicableError, match="requires n % 4 == 0"):
        bound("//! require n % 4 == 0")


def test_an_empty_grid_is_bound_and_known_to_be_empty() -> None:
    assert bound(launch="//! launch k grid=n-1 block=32").launches[0].empty


def test_double_is_accepted_where_the_problem_is_double() -> None:
    declaration = program(signature="const double* vals, real* y")
    check_names(declaration, Op.SPMV, DType.FLOAT64)


@pytest.mark.parametrize(("ctype", "largest"), [("int", 2**31 - 1), ("unsigned", 2**32 - 1)])
def test_a_number_fits_its_type_to_the_last(ctype: str, largest: int) -> None:
    def plan(value: int):
        return bound(f"//! let BIG {value}", f"{ctype} BIG, real* y")

    assert plan(largest).launches[0].args[0].value == largest
    with pytest.raises(BindError, match="too large"):
        plan(largest + 1)


@pytest.mark.parametrize("block", ["1024", "32,32", "1,1,64"])
def test_the_largest_blocks_are_bound(block: str) -> None:
    assert bound(launch=f"//! launch k grid=1 block={block}")


@pytest.mark.parametrize("block", ["1025", "33,32", "1,1,65"])
def test_blocks_beyond_them_are_not(block: str) -> None:
    with pytest.raises(BindError, match=r"at most|are possible"):
        bound(launch=f"//! launch k grid=1 block={block}")


@pytest.mark.parametrize(
    ("ctype", "size"), [("int", 4), ("unsigned", 4), ("float", 4), ("double", 8), ("real", 4)]
)
def test_a_workspace_has_the_bytes_of_its_type(ctype: str, size: int) -> None:
    c = "unsigned int" if ctype == "unsigned" else ctype
    assert bound(f"//! workspace w {ctype} 3", f"{c}* w, real* y").workspaces[0].nbytes == 3 * size


@pytest.mark.parametrize("what", ["derived", "workspace"])
def test_an_array_that_no_device_holds_is_refused_before_its_size_is_written_anywhere(
    what: str,
) -> None:
    const = "const " if what == "derived" else ""
    for count, fits in ((2**47, True), (2**47 + 1, False)):
        arguments = (f"//! {what} a double {count}", f"{const}double* a, real* y")
        if fits:
            assert bound(*arguments)
            continue
        with pytest.raises(BindError, match=r"line 3: array a would have .* bytes; at most"):
            bound(*arguments)
