"""From declaration and problem to plan: every name becomes a buffer or a number.

``check_names`` needs no matrix and runs before the compiler does; ``bind`` needs the sizes of the
format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from suite.formats.base import Format, NotApplicableError
from suite.harness.arithmetic import ExpressionError, evaluate, names_in
from suite.harness.plan import (
    MAX_BLOCK,
    MAX_GRID,
    MAX_THREADS,
    Array,
    ArrayLine,
    BindError,
    BufferArg,
    Declaration,
    Launch,
    LaunchLine,
    Parameter,
    Plan,
    ScalarArg,
)
from suite.problem import DType, Op

DENSE = {Op.SPMV: "x", Op.SPMM: "B"}
OUTPUT = {Op.SPMV: "y", Op.SPMM: "C"}
PROBLEM_SIZES = ("rows", "cols", "nnz", "n", "longest", "filled", "reach", "sms", "itemsize")
MAX_ARRAY_BYTES = 1 << 50  # more than any device has; sums of such sizes fit 64 bits
_INTEGER_RANGE = {
    "int": (-(2**31), 2**31),
    "unsigned int": (0, 2**32),
    "long long": (-(2**63), 2**63),
    "unsigned long long": (0, 2**64),
}
# What a workspace or derived line calls a type: C's name for it, and its bytes.
ARRAY_TYPES: Mapping[str, tuple[str, int | None]] = {
    "int": ("int", 4),
    "unsigned": ("unsigned int", 4),
    "short": ("short", 2),
    "ushort": ("unsigned short", 2),
    "uchar": ("unsigned char", 1),
    "float": ("float", 4),
    "double": ("double", 8),
    "real": ("real", None),  # as the problem asks
}
_C_TYPE = {"int32": "int", "uint32": "unsigned int", "int16": "short", "uint16": "unsigned short"}


def real_name(dtype: DType) -> str:
    """The C type that ``real`` stands for."""
    return "float" if dtype is DType.FLOAT32 else "double"


def buffer_types(declaration: Declaration) -> dict[str, str]:
    """C element type of every buffer that preparing kernels may name; ``real`` for values."""
    fmt = declaration.format
    offered = {name: _C_TYPE[dtype] for name, dtype in fmt.index_names.items()}
    offered |= dict.fromkeys(fmt.value_names, "real")
    arrays = (*declaration.derived, *declaration.workspaces)
    return offered | {array.name: ARRAY_TYPES[array.dtype][0] for array in arrays}


def check_names(declaration: Declaration, op: Op, dtype: DType) -> None:
    """Checks everything that can be said about a program without its matrix.

    Raises:
        BindError: Another operation, an unknown kernel, name or type; lists what is known.
    """
    if declaration.op != op:
        raise BindError(f"the program says //! op {declaration.op}, the problem is {op}")
    numbers = set(PROBLEM_SIZES) | set(declaration.format.size_names)
    matrix = buffer_types(declaration)
    offered = {DENSE[op]: "real", OUTPUT[op]: "real", **matrix}
    for name in declaration.constants:
        if name in numbers or name in offered:
            raise BindError(f"constant {name} hides a name of the problem or the format; rename it")
    for array in (*declaration.derived, *declaration.workspaces):
        if array.name in numbers or array.name in _reserved(declaration.format, op):
            raise BindError(f"{array.where}: array {array.name} hides a name; rename it")
    numbers |= set(declaration.constants) | {name for name, _, _ in declaration.sizes}
    for text, where in _arithmetic(declaration):
        unknown = sorted(names_in(text) - numbers)
        if unknown:
            raise BindError(f"{where}: unknown name {unknown[0]!r}; known are {_listed(numbers)}")
    derived = {array.name for array in declaration.derived}
    for prepare in declaration.prepares:
        for parameter in _kernel(declaration, prepare):
            _check_parameter(parameter, prepare.kernel, numbers, matrix, dtype)
    for launch in declaration.launches:
        for parameter in _kernel(declaration, launch):
            _check_parameter(parameter, launch.kernel, numbers, offered, dtype)
            if parameter.name in derived and not parameter.const:
                raise BindError(
                    f"line {parameter.line}: kernel {launch.kernel}: parameter {parameter.name} is"
                    " const here; only prepare kernels write what is derived"
                )


def bind(declaration: Declaration, op: Op, dtype: DType, sizes: Mapping[str, int]) -> Plan:
    """Decides sizes, geometry and arguments.

    Args:
        declaration: A declaration that ``check_names`` has passed.
        op: The operation.
        dtype: Precision.
        sizes: Value of every name of ``PROBLEM_SIZES`` and of the format's sizes.

    Returns:
        The plan.

    Raises:
        NotApplicableError: A ``//! require`` line does not hold.
        BindError: A launch no device accepts, or a number that its parameter cannot hold.
    """
    known = with_sizes(declaration, sizes)
    for text, where in declaration.requires:
        if not _number(text, where, known):
            raise NotApplicableError(f"the program requires {text}")
    derived = _arrays(declaration.derived, known)
    workspaces = _arrays(declaration.workspaces, known)
    prepares = tuple(_launch(declaration, line, known) for line in declaration.prepares)
    launches = tuple(_launch(declaration, line, known) for line in declaration.launches)
    scratch = {array.name for array in workspaces}
    offered = set(buffer_types(declaration))
    return Plan(
        output=OUTPUT[op],
        init_zero=declaration.init_zero,
        derived=derived,
        workspaces=workspaces,
        prepares=prepares,
        launches=launches,
        bound=tuple(
            sorted(_used((*prepares, *launches)) - scratch - {array.name for array in derived})
        ),
        streamed=tuple(sorted((_used(launches) & offered) - scratch)),
    )


def with_sizes(declaration: Declaration, sizes: Mapping[str, int]) -> dict[str, int]:
    """These sizes with the declaration's constants and its format's own sizes.

    A size that is made of names that are missing here is missing too.
    """
    known = {**sizes, **declaration.constants}
    for name, text, where in declaration.sizes:
        if names_in(text) <= known.keys():
            known[name] = _number(text, where, known)
    return known


def _used(launches: Iterable[Launch]) -> set[str]:
    return {arg.name for launch in launches for arg in launch.args if isinstance(arg, BufferArg)}


def _arrays(lines: Iterable[ArrayLine], known: Mapping[str, int]) -> tuple[Array, ...]:
    found: list[Array] = []
    for line in lines:
        count = _number(line.count, line.where, known)
        nbytes = count * (ARRAY_TYPES[line.dtype][1] or known["itemsize"])
        if nbytes > MAX_ARRAY_BYTES:
            raise BindError(
                f"{line.where}: array {line.name} would have {nbytes:,} bytes; at most"
                f" {MAX_ARRAY_BYTES:,}"
            )
        found.append(Array(line.name, nbytes, line.zero))
    return tuple(found)


def _reserved(fmt: Format, op: Op) -> set[str]:
    return {DENSE[op], OUTPUT[op], *fmt.index_names, *fmt.value_names}


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _arithmetic(declaration: Declaration) -> list[tuple[str, str]]:
    texts = list(declaration.requires)
    texts += [(text, where) for _, text, where in declaration.sizes]
    texts += [(a.count, a.where) for a in (*declaration.derived, *declaration.workspaces)]
    for launch in (*declaration.prepares, *declaration.launches):
        texts += [(text, launch.where) for text in (*launch.grid, *launch.block, launch.shared)]
    return texts


def _kernel(declaration: Declaration, launch: LaunchLine) -> tuple[Parameter, ...]:
    if launch.kernel not in declaration.kernels:
        there = (
            _listed(set(declaration.kernels))
            or 'none (a kernel starts with extern "C" __global__ void)'
        )
        raise BindError(f"{launch.where}: no kernel {launch.kernel!r}; the text has {there}")
    return declaration.kernels[launch.kernel]


def _check_parameter(
    parameter: Parameter, kernel: str, numbers: set[str], offered: Mapping[str, str], dtype: DType
) -> None:
    where = f"line {parameter.line}: kernel {kernel}: parameter {parameter.name}"
    if not parameter.pointer:
        if parameter.name not in numbers:
            what = "is an array, take it by pointer" if parameter.name in offered else "is unknown"
            raise BindError(f"{where} {what}; known numbers are {_listed(numbers)}")
        if parameter.base not in _INTEGER_RANGE:
            raise BindError(f"{where} is a number of type int, not {parameter.base}")
        return
    if parameter.name not in offered:
        what = "is a number, take it by value" if parameter.name in numbers else "is unknown"
        raise BindError(f"{where} {what}; known arrays are {_listed(set(offered))}")
    wanted = offered[parameter.name]
    accepted = {"real", real_name(dtype)} if wanted == "real" else {wanted}
    if parameter.base not in accepted:
        hint = " (reinterpret it inside the kernel)" if parameter.base[-1:].isdigit() else ""
        raise BindError(
            f"{where} points to {wanted} ({real_name(dtype)} here), not {parameter.base}{hint}"
        )


def _number(text: str, where: str, known: Mapping[str, int]) -> int:
    try:
        return evaluate(text, known)
    except ExpressionError as error:
        raise BindError(f"{where}: {error}") from None


def _launch(declaration: Declaration, line: LaunchLine, known: Mapping[str, int]) -> Launch:
    grid = _geometry(line.grid, MAX_GRID, "grid", line, known)
    block = _geometry(line.block, MAX_BLOCK, "block", line, known)
    threads = block[0] * block[1] * block[2]
    if not 1 <= threads <= MAX_THREADS:
        raise BindError(
            f"{line.where}: a block of {threads} threads; from 1 to {MAX_THREADS} are possible"
        )
    args: list[BufferArg | ScalarArg] = []
    for parameter in _kernel(declaration, line):
        if parameter.pointer:
            args.append(BufferArg(parameter.name))
            continue
        value = known[parameter.name]
        low, high = _INTEGER_RANGE[parameter.base]
        if not low <= value < high:
            raise BindError(
                f"kernel {line.kernel}: {parameter.name} is {value}, too large for {parameter.base}"
            )
        args.append(ScalarArg(value, parameter.base))
    return Launch(line.kernel, grid, block, _number(line.shared, line.where, known), tuple(args))


def _geometry(
    texts: tuple[str, ...],
    limits: tuple[int, int, int],
    what: str,
    line: LaunchLine,
    known: Mapping[str, int],
) -> tuple[int, int, int]:
    values = [_number(text, line.where, known) for text in texts] + [1] * (3 - len(texts))
    for axis, value, limit in zip("xyz", values, limits, strict=True):
        if value > limit:
            raise BindError(f"{line.where}: {what} {axis} is {value}; at most {limit}")
    return values[0], values[1], values[2]
