"""Text of the program language and of prompts, so that the tokenizer knows their words.

The corpus has CUDA but no ``//!`` lines, and names such as ``row_ptr`` or ``slice_ptr`` are rare in
it. What is drawn here is made of the suite's own tables, never of a baseline, and is no program: it
has headers and signatures but no bodies.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from suite.formats import formats
from suite.formats.base import Format
from suite.harness.bind import ARRAY_TYPES, DENSE, OUTPUT, PROBLEM_SIZES
from suite.problem import Op

_SIZES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_LETS = ("LANES", "BLOCK", "UNROLL", "ROWS", "VEC", "TILE", "WARPS", "ITEMS", "COLS", "STEP")
_ARRAYS = ("partial", "carry", "order", "starts", "counts", "flags", "packed", "tiles", "bins")
_VERBS = ("spmv", "spmm", "kernel", "multiply", "sum_rows", "fill", "gather", "scatter", "reduce")


def samples(count: int, seed: int = 0) -> Iterator[str]:
    """``count`` texts, each a prompt followed by a header and the signature of its kernel."""
    draw = random.Random(seed)
    for _ in range(count):
        op = draw.choice(list(Op))
        fmt = draw.choice(list(formats().values()))
        yield _prompt(draw, op) + _header(draw, op, fmt)


def _header(draw: random.Random, op: Op, fmt: type[Format]) -> str:
    name = f"{draw.choice(_VERBS)}_{fmt.name}"
    lines = [f"op {op.value}", f"format {_spelled(draw, fmt)}"]
    lets = draw.sample(_LETS, draw.randint(0, 3))
    lines += [f"let {let} {draw.choice(_SIZES)}" for let in lets]
    sizes = [*PROBLEM_SIZES, *fmt.size_names]
    if draw.random() < 0.3:
        lines.append(
            f"require {draw.choice(sizes)} {draw.choice(['<=', '>', '=='])} {draw.randint(0, 9)}"
        )
    arrays = draw.sample(_ARRAYS, draw.choice((0, 0, 1, 2)))
    for array in arrays:
        kind = draw.choice(("workspace", "derived"))
        zero = draw.choice(("", " zero"))
        lines.append(
            f"{kind} {array} {draw.choice(list(ARRAY_TYPES))} {_work(draw, sizes, lets)}{zero}"
        )
    if draw.random() < 0.2:
        lines.append("init zero")
    if arrays and draw.random() < 0.5:
        lines.append(f"prepare {name}_prepare {_shape(draw, sizes, lets)}")
    lines.append(f"launch {name} {_shape(draw, sizes, lets)}")
    head = "".join(f"//! {line}\n" for line in lines)
    return f'{head}extern "C" __global__ void {name}({_parameters(draw, op, fmt)}) {{\n}}\n'


def _spelled(draw: random.Random, fmt: type[Format]) -> str:
    values = [f"{f.name}={draw.choice(_SIZES[1:])}" for f in dataclasses.fields(fmt)]
    return " ".join([fmt.name, *(v for v in values if draw.random() < 0.8)])


def _work(draw: random.Random, sizes: list[str], lets: list[str]) -> str:
    size = draw.choice(sizes)
    return draw.choice((size, f"{size}+1", f"{size}*{draw.choice([*lets, '32'])}"))


def _shape(draw: random.Random, sizes: list[str], lets: list[str]) -> str:
    block = draw.choice([str(draw.choice(_SIZES[5:])), *lets])
    size = draw.choice(sizes)
    work = draw.choice((size, f"{size}*{draw.choice([*lets, '32'])}"))
    grid = draw.choice((f"ceildiv({work},{block})", f"min(sms*8,ceildiv({work},{block}))", size))
    across = draw.choice(("", "", f",ceildiv(n,{draw.choice(_SIZES[3:8])})"))
    shared = draw.choice(("", "", f" shared={draw.choice(_SIZES[5:])}*itemsize"))
    return f"grid={grid}{across} block={block}{shared}"


def _parameters(draw: random.Random, op: Op, fmt: type[Format]) -> str:
    restrict = draw.choice((" ", " __restrict__ "))
    scalars = draw.sample([*PROBLEM_SIZES, *fmt.size_names], draw.randint(1, 3))
    between = draw.choice((", ", ",\n    ", ",\n        "))
    return between.join(
        [f"{draw.choice(('int', 'int', 'long long'))} {s}" for s in scalars]
        + [f"const int*{restrict}{name}" for name in fmt.index_names]
        + [f"const real*{restrict}{name}" for name in (*fmt.value_names, DENSE[op])]
        + [f"real*{restrict}{OUTPUT[op]}"]
    )


def _prompt(draw: random.Random, op: Op) -> str:
    """The lines around the nonzeros, and a few of those as text."""
    columns = "" if op is Op.SPMV else f" n {draw.choice(_SIZES)}"
    sizes = " ".join(f"{name} {draw.randint(1, 120)}" for name in PROBLEM_SIZES[:7] if name != "n")
    lengths = " ".join(str(draw.randint(1, 60)) for _ in range(8))
    rows = ""
    for _ in range(3):
        first = draw.randint(0, 1 << draw.randint(3, 20))
        rows += f"{first}: {' '.join(str(first + draw.randint(0, 40)) for _ in range(4))}\n"
    dtype, arch = draw.choice(("f32", "f64")), draw.choice(("sm_80", "sm_90", "sm_100"))
    return (
        f"// write {op.value}{columns} {dtype} {arch}\n// {sizes}\n// lengths {lengths}\n"
        f"// entries\n{rows}// program\n"
    )
