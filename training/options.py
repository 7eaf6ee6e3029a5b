"""Command-line options made of a frozen dataclass, so that each is named and explained once.

A field ``save_every: Annotated[int, "steps between checkpoints"] = 500`` is the option
``--save-every``. A ``Literal`` has choices, ``float | None`` may be left out, ``tuple[Path, ...]``
takes several, and a field without a default must be given.
"""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, TypeVar

T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser, cls: type[Any]) -> None:
    """Adds an option for each field of a dataclass."""
    hints = typing.get_type_hints(cls, include_extras=True)
    for one in fields(cls):
        hint, text = _parts(hints[one.name])
        required = one.default is MISSING
        shown = "" if required or one.default in (None, ()) else f" (default: {one.default})"
        parser.add_argument(
            f"--{one.name.replace('_', '-')}",
            dest=one.name,
            required=required,
            default=None if required else one.default,
            help=f"{text}{shown}".replace("%", "%%"),
            **_type(hint),
        )


def from_options(arguments: argparse.Namespace, cls: type[T]) -> T:
    """The dataclass, filled from parsed arguments."""
    given = {name: getattr(arguments, name) for name in typing.get_type_hints(cls)}
    return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})


def _parts(hint: Any) -> tuple[Any, str]:
    if typing.get_origin(hint) is not Annotated:
        raise TypeError(f"{hint}: an option is Annotated with its help")
    inner, text = typing.get_args(hint)
    return inner, text


def _type(hint: Any) -> Mapping[str, Any]:
    if typing.get_origin(hint) is Literal:
        return {"choices": typing.get_args(hint)}
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        return {"type": typing.get_args(hint)[0], "nargs": "+"}
    return {"type": hint}
