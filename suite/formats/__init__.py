"""The storage formats, found by looking: a module here that defines a ``Format`` adds it.

``formats()`` maps the name used in ``//! format`` to the class; ``make`` builds one from its
parameters.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache

from suite.formats.base import Format


@cache
def formats() -> Mapping[str, type[Format]]:
    """Every format by name, in alphabetical order."""
    found: dict[str, type[Format]] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        loaded = importlib.import_module(f"{__name__}.{module}")
        for _, cls in inspect.getmembers(loaded, inspect.isclass):
            if (
                issubclass(cls, Format)
                and cls.__module__ == loaded.__name__
                and not inspect.isabstract(cls)
            ):
                found[cls.name] = cls
    return dict(sorted(found.items()))


def make(name: str, parameters: Mapping[str, int]) -> Format:
    """Builds a format from what a program's ``//! format`` line says.

    Raises:
        ValueError: Unknown format or parameter, or a value that the format refuses; lists the known
        ones.
    """
    cls = formats().get(name)
    if cls is None:
        raise ValueError(f"unknown format {name!r}; known are {', '.join(formats())}")
    known = [f.name for f in dataclasses.fields(cls)]
    for parameter, value in parameters.items():
        if parameter not in known:
            offer = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ValueError(f"format {name} has no parameter {parameter!r}; {offer}")
        if value < 1:
            raise ValueError(f"format {name}: {parameter} must be at least 1, not {value}")
    return cls(**parameters)
