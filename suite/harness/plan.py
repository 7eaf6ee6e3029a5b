"""The two shapes that a program takes between text and device.

``parse`` turns a text into a ``Declaration``; ``bind`` turns a declaration and one problem into a
``Plan``, in which every name has become a buffer or a number. Devices know plans only.
"""

from __future__ import annotations

from dataclasses import dataclass

from suite.formats.base import Format

# What any GPU since compute capability 3.0 accepts; x, y, z.
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_THREADS = 1024  # of a block


_LONGEST = 1000  # characters of a message


class ProgramError(ValueError):
    """A program that says what it may not; the message names the line and what is right.

    It is one line of bearable length, whatever the program's own words in it are.
    """

    def __init__(self, message: str) -> None:
        line = " ".join(message.splitlines())
        super().__init__(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}...")


class ParseError(ProgramError):
    """The text or its header lines cannot be read."""


class BindError(ProgramError):
    """The program asks for something that its format and problem do not offer."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, for example ``const int* __restrict__ row_ptr``.

    Attributes:
        name: Its name, by which it binds.
        base: Its type without ``const``, ``volatile``, ``__restrict__`` and the star: ``int``,
            ``float``, ``real``, ``unsigned int``, ``long long``.
        pointer: Whether it is a pointer.
        const: Whether what it points to is const.
        line: Line of the text, from 1.
    """

    name: str
    base: str
    pointer: bool
    const: bool
    line: int


@dataclass(frozen=True)
class LaunchLine:
    """A ``//! launch`` or ``//! prepare`` line, unevaluated. Tuples hold x, y, z."""

    kernel: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str
    where: str  # "line 7" of the program, or "ell4.cu line 7" of a device format


@dataclass(frozen=True)
class ArrayLine:
    """A ``//! workspace`` or ``//! derived`` line; cleared before it is used when ``zero``."""

    name: str
    dtype: str  # a key of ``suite.harness.bind.ARRAY_TYPES``
    count: str  # arithmetic: elements
    zero: bool
    where: str


@dataclass(frozen=True)
class Declaration:
    """A program's text, read.

    Attributes:
        op: ``spmv`` or ``spmm``.
        format: What the host converts to: the storage format it reads, or that this is made of.
        spelling: The storage format it reads, with every parameter: ``sell c=32 sigma=1024``.
        constants: ``//! let NAME INTEGER`` lines; macros for the code and names for the arithmetic.
            A device format's constants and parameters are among them.
        sizes: A device format's sizes: name, arithmetic and where it stands.
        requires: Arithmetic that must be nonzero for the program to apply, and where it stands.
        prepares: What runs once for a matrix and its values, in order, to fill ``derived``.
        launches: What runs at each multiplication, in order.
        derived: Arrays that the program makes of the matrix before it multiplies by it.
        workspaces: Scratch memory.
        init_zero: Whether the output is cleared before each run, inside the timed region.
        kernels: Parameters of each ``extern "C" __global__`` kernel, by its name.
        support: A device format's code, which stands before the program's.
        code: What the compiler gets: the text with fences and byte-order mark removed.
    """

    op: str
    format: Format
    spelling: str
    constants: dict[str, int]
    sizes: tuple[tuple[str, str, str], ...]
    requires: tuple[tuple[str, str], ...]
    prepares: tuple[LaunchLine, ...]
    launches: tuple[LaunchLine, ...]
    derived: tuple[ArrayLine, ...]
    workspaces: tuple[ArrayLine, ...]
    init_zero: bool
    kernels: dict[str, tuple[Parameter, ...]]
    support: str
    code: str


@dataclass(frozen=True)
class BufferArg:
    """A kernel argument that is a buffer, by name."""

    name: str


@dataclass(frozen=True)
class ScalarArg:
    """A kernel argument that is a number, with the C type that the kernel declares for it."""

    value: int
    ctype: str  # int, unsigned int, long long, unsigned long long


@dataclass(frozen=True)
class Launch:
    """One kernel launch with everything decided. An empty grid is not launched."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[BufferArg | ScalarArg, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to launch."""
        return 0 in self.grid


@dataclass(frozen=True)
class Array:
    """A workspace or a derived array with its size decided."""

    name: str
    nbytes: int
    zero: bool


@dataclass(frozen=True)
class Plan:
    """What a program does: prepare once, then clear and launch at each run.

    Attributes:
        output: Name of the output buffer: ``y`` or ``C``.
        init_zero: Clear the output before each run.
        workspaces: Scratch memory to provide; those with ``zero`` are cleared before each run, and
            before preparing.
        launches: Kernels of a run, in order.
        bound: Names of all the problem's and the format's buffers that some kernel uses.
        derived: Arrays that ``prepares`` fill and ``launches`` read; those with ``zero`` are
            cleared first.
        prepares: Kernels that run once for a matrix and its values, in order.
        streamed: Names of the format's and the derived arrays that ``launches`` use.
    """

    output: str
    init_zero: bool
    workspaces: tuple[Array, ...]
    launches: tuple[Launch, ...]
    bound: tuple[str, ...]
    derived: tuple[Array, ...] = ()
    prepares: tuple[Launch, ...] = ()
    streamed: tuple[str, ...] = ()

    @property
    def kernels(self) -> tuple[Launch, ...]:
        """Everything that is launched at some time, empty grids left out."""
        return tuple(launch for launch in (*self.prepares, *self.launches) if not launch.empty)
