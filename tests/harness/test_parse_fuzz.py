"""No text makes the parser crash, hang or swell: it is a declaration or a ``ParseError``.

``make fuzz`` runs this with many more examples.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suite.baselines.files import baselines
from suite.formats.base import NotApplicableError
from suite.harness.arithmetic import LIMIT, ExpressionError, evaluate, names_in
from suite.harness.bind import PROBLEM_SIZES, bind, check_names
from suite.harness.parse import parse
from suite.harness.plan import BindError, ParseError
from suite.problem import DType, Op
from tests.fuzz import fuzzed

SECONDS = 2.0  # of processor time, for texts that take a quarter of it at most
LENGTH = 40_000  # of repetitions: enough for what is quadratic to take ten seconds
BYTES_EACH = 2500  # of memory for each character, at most
HEADER = "//! op spmv\n//! format csr\n//! launch k grid=1 block=32\n"
PROGRAMS = [text for author in baselines() for text in author.texts.values()]
SIZES = dict.fromkeys(PROBLEM_SIZES, 7)
PIECES = (
    *("//! ", "//!", "op spmv", "format csr", "let A 1", "require rows", "init zero", "\n", " "),
    *("workspace w int 3 zero", "derived d ushort nnz", "prepare k grid=1 block=1", "shared=1"),
    *("launch k grid=1,1 block=(1),2", "/*", "*/", "//", "\\\n", "\\", '"', "'", 'R"(', ')"'),
    *("[[", "]]", "__attribute__((", "))", "(", ")", "{", "}", "<", ">", "<:", "%:", ",", ";"),
    *("#define X", "#pragma unroll", "#if", "extern", '"C"', "__global__", "void k(", "int rows"),
    *(
        "const real* __restrict__ x",
        "1'000",
        "0x1p+3",
        "é",
        "𝐱",
        "\u2028",
        "\x1c",
        "```cuda\n",
        "```",
    ),
)


@contextmanager
def soon_over() -> Iterator[None]:
    """Whatever happens inside takes little time."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < SECONDS


def read(text: str) -> None:
    """Parses, and binds what can be parsed; only what is documented may come of it."""
    refusal = ""
    with soon_over():
        try:
            declaration = parse(text)
            check_names(declaration, Op(declaration.op), DType.FLOAT32)
            sizes = {**SIZES, **dict.fromkeys(declaration.format.size_names, 3)}
            bind(declaration, Op(declaration.op), DType.FLOAT32, sizes)
        except (ParseError, BindError, NotApplicableError) as error:
            refusal = str(error) or "nothing said"
    assert refusal != "nothing said"
    assert len(refusal.splitlines()) <= 1
    assert len(refusal) <= 1003


@fuzzed(200)
@given(st.text(max_size=400))
def test_arbitrary_text(text: str) -> None:
    read(text)
    read(HEADER + text)


@fuzzed(300)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_pieces_of_programs_in_any_order(text: str) -> None:
    read(text)
    read(HEADER + text)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A program of the project with a few places cut, doubled, moved or overwritten."""
    text = draw(st.sampled_from(PROGRAMS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 80)))
        piece = text[start:end]
        match draw(st.sampled_from(["cut", "double", "move", "overwrite"])):
            case "cut":
                text = text[:start] + text[end:]
            case "double":
                text = text[:end] + piece * draw(st.integers(1, 5)) + text[end:]
            case "move":
                rest = text[:start] + text[end:]
                to = draw(st.integers(0, len(rest)))
                text = rest[:to] + piece + rest[to:]
            case "overwrite":
                other = draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)))
                text = text[:start] + other + text[end:]
    return text


@fuzzed(300)
@given(mutants())
def test_mutants_of_the_projects_own_programs(text: str) -> None:
    read(text)


@fuzzed(300)
@given(
    st.one_of(
        st.text(max_size=60),
        st.recursive(
            st.one_of(
                st.integers(-(10**40), 10**40).map(str),
                st.sampled_from(["rows", "nnz", "A", "0x1F", "1_0", "1.5", "True", "'a'", "..."]),
            ),
            lambda inner: st.one_of(
                st.tuples(
                    inner, st.sampled_from(["+", "-", "*", "//", "%", "**", "<<", "==", "<"]), inner
                ).map("".join),
                st.tuples(inner, st.sampled_from([" and ", " or ", " if ", " else "]), inner).map(
                    "".join
                ),
                inner.map("({})".format),
                inner.map("-{}".format),
                inner.map("not {}".format),
                st.tuples(
                    st.sampled_from(["min", "max", "ceildiv", "pow", "exec"]), inner, inner
                ).map(lambda parts: "{}({},{})".format(*parts)),
            ),
            max_leaves=60,
        ),
    )
)
@example("9**9**9**9")
@example("(" * 149 + "1" + ")" * 149)
@example("-" * 299 + "1")
@example("not " * 74 + "1")
@example("9" * 300)
@example("*".join(["9" * 18] * 15))
@example("ceildiv(-1,0)")
def test_hostile_arithmetic(text: str) -> None:
    for expression in (text, f"({text})*({text})"):
        with soon_over(), suppress(ExpressionError):
            assert 0 <= evaluate(expression, SIZES) < LIMIT
            assert names_in(expression) <= SIZES.keys()
    read(HEADER + f"//! require {text}\n")
    read(HEADER.replace("grid=1", f"grid={text}"))


@pytest.mark.parametrize(
    "piece",
    [
        *('\\"', "'\\", "[[", "[[a]]", "__attribute__((", "__attribute__((aligned(", "1'", "0x1'"),
        *('R"(', 'R"abcdefghijklmnop(', "/*", "(", "{", "<", "%:", "\\\n", "\\ \n", "\n", "'", '"'),
        *('extern "C" __global__ ', 'extern "C" {', "__global__ void k(int rows);", "#define X\n"),
        *("//! let A 1\n", "//! require 1\n", "//! workspace w int 1\n", "//! launch k grid=1\n"),
        *("``` ", "```\n", "\ufeff", "𝐱", ",", "a,", "__launch_bounds__(", "_Pragma(", "\u2028"),
    ],
)
@pytest.mark.parametrize("before", [HEADER, HEADER + 'extern "C" __global__ void k('])
def test_no_repetition_takes_long(piece: str, before: str) -> None:
    read(before + piece * (LENGTH // len(piece)))


@pytest.mark.parametrize("piece", ["(", "a,", "//! require 1\n", "//! let A 1\n", "#if\n", "é"])
def test_memory_grows_with_the_text_and_no_faster(piece: str) -> None:
    text = HEADER + piece * (LENGTH // 4 // len(piece))
    tracemalloc.start()
    with suppress(ParseError):
        parse(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BYTES_EACH * len(text)


@pytest.mark.parametrize(
    "text",
    [
        "//! op {}",
        "//! format {}",
        "//! let {} 1",
        HEADER + "//! require {}",
        HEADER + "//! workspace {} half 1",
        HEADER + "#{}\n",
        HEADER + 'extern "C" __global__ void {}(float z) {{}}',
        HEADER + 'extern "C" __global__ void k({}* z) {{}}',
        HEADER + "//! launch {} grid=1 block=1\n",
    ],
)
def test_a_name_without_end_does_not_make_a_message_without_end(text: str) -> None:
    read(text.format("a" * 100_000))


def test_a_text_far_beyond_the_limit_is_refused_at_once() -> None:
    text = "```\n" + "``` " * 10_000_000
    with soon_over(), pytest.raises(ParseError, match="at most 200,000"):
        parse(text)
