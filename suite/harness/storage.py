"""What a ``//! format`` line stands for: a format of the host, or one that is made on the device.

A device format is a file in ``suite/formats/device``: header lines that say of which host format it
is made, its parameters, its arrays and how they are filled, and the code that fills them and that
programs read them with. A program that names it gets all of that before its own lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from suite import formats
from suite.formats.base import Format
from suite.harness.arithmetic import evaluate, names_in
from suite.harness.header import IN_DEVICE_FORMATS, Header
from suite.harness.plan import ArrayLine, LaunchLine, Parameter, ParseError
from suite.harness.signature import check_directives, check_names, kernels, macros, tokens

FOLDER = Path(formats.__file__).parent / "device"


@dataclass(frozen=True)
class Storage:
    """What a program's ``//! format`` line brings along.

    Attributes:
        name: As in the line.
        format: What the host converts to.
        spelling: The line with every parameter: ``ell4 BITS=16``.
        constants: Parameters and constants of a device format; macros for all code.
        sizes: Name, arithmetic and place of each of its sizes, each made of those before it.
        requires: See ``Declaration``; so are the next four.
        derived: See there.
        workspaces: See there.
        prepares: See there.
        kernels: See there.
        support: Its code, with ``constants`` before it.
        taken: Names that a program may not give to something of its own.
    """

    name: str
    format: Format
    spelling: str
    constants: Mapping[str, int] = field(default_factory=dict)
    sizes: tuple[tuple[str, str, str], ...] = ()
    requires: tuple[tuple[str, str], ...] = ()
    derived: tuple[ArrayLine, ...] = ()
    workspaces: tuple[ArrayLine, ...] = ()
    prepares: tuple[LaunchLine, ...] = ()
    kernels: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    support: str = ""
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True)
class DeviceFormat:
    """A file of ``suite/formats/device``, read.

    Attributes:
        name: Its stem.
        base: The host format's name.
        header: Its lines.
        kernels: Parameters of each of its kernels.
        macros: Names that its code defines.
        code: The whole file.
    """

    name: str
    base: str
    header: Header
    kernels: Mapping[str, tuple[Parameter, ...]]
    macros: frozenset[str]
    code: str

    def chosen(self, given: Mapping[str, int]) -> Storage:
        """The format with these parameters, and defaults for the others.

        Raises:
            ValueError: An unknown parameter, or values that the format refuses.
        """
        header = self.header
        for name, value in given.items():
            if name not in header.parameters:
                offer = f"it takes {', '.join(header.parameters) or 'none'}"
                raise ValueError(f"format {self.name} has no parameter {name!r}; {offer}")
            if value < 1:
                raise ValueError(f"format {self.name}: {name} must be at least 1, not {value}")
        parameters = {**header.parameters, **given}
        constants = {**parameters, **header.constants}
        for text, _ in header.requires:
            if names_in(text) <= constants.keys() and not evaluate(text, constants):
                raise ValueError(f"format {self.name} requires {text}")
        of_base = header.base[1] if header.base else {}
        defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
        sizes = tuple(header.sizes)
        arrays = {array.name for array in header.arrays}
        return Storage(
            name=self.name,
            format=formats.make(
                self.base,
                {k: constants[v] if v in constants else int(v) for k, v in of_base.items()},
            ),
            spelling=" ".join([self.name, *(f"{k}={v}" for k, v in parameters.items())]),
            constants=constants,
            sizes=sizes,
            requires=tuple(header.requires),
            derived=tuple(header.derived),
            workspaces=tuple(header.workspaces),
            prepares=tuple(header.prepares),
            kernels=self.kernels,
            support=f'{defines}#line 1 "{self.name}.cu"\n{self.code}\n',
            taken=frozenset(
                {*constants, *self.macros, *self.kernels, *arrays, *(size[0] for size in sizes)}
            ),
        )


def read(path: Path) -> DeviceFormat:
    """Reads the file of a device format.

    Raises:
        ParseError: As for programs; the message names the file.
    """
    code = path.read_text(encoding="utf-8")
    header = Header(IN_DEVICE_FORMATS, source=path.name)
    header.read(code)
    if header.base is None:
        raise ParseError(f"{path.name}: no '//! base' line; of which host format is it made?")
    found = list(tokens(code))
    try:
        check_directives(found)
        check_names(found)
        defined = kernels(found)
    except ParseError as error:
        raise ParseError(f"{path.name} {error}") from None
    names = frozenset(token.text for token in macros(found))
    return DeviceFormat(path.stem, header.base[0], header, defined, names, code)


@cache
def device_formats() -> tuple[str, ...]:
    """The names of all device formats, in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.cu")))


@cache
def device_format(name: str) -> DeviceFormat:
    """One of ``device_formats``; its file is read once."""
    return read(FOLDER / f"{name}.cu")


def choose(name: str, parameters: Mapping[str, int]) -> Storage:
    """What ``//! format NAME param=INTEGER …`` stands for.

    Raises:
        ValueError: An unknown format or parameter, or a value that the format refuses; lists the
            known ones.
    """
    if name in device_formats():
        return device_format(name).chosen(parameters)
    if name not in formats.formats():
        problem = f"unknown format {name!r}; " if name else "which format? "
        raise ValueError(f"{problem}known are {', '.join(known())}")
    chosen = formats.make(name, parameters)
    return Storage(name, chosen, chosen.spelling)


def known() -> list[str]:
    """The names of all formats, in alphabetical order."""
    return sorted({*formats.formats(), *device_formats()})
