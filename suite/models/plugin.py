"""Lets the trained variants join the suite, and says which are left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from suite.author import Author
from suite.models.author import authors
from suite.models.variants import lacking, trained, weights


def pytest_suite_authors(device: str) -> Sequence[Author]:
    """Every variant whose weights are there."""
    return authors()


def pytest_report_header(config: pytest.Config) -> str | None:
    """One line where variants are left out and the suite is asked for."""
    from suite.opening import is_wanted

    there, missing = trained(weights())
    if not is_wanted(config):
        return None
    if there and lacking():
        names = ", ".join(variant.name for variant in there)
        return f"suite: {names} left out: {', '.join(lacking())} not found; install the extra train"
    if missing:
        names = ", ".join(variant.name for variant in missing)
        return f"suite: {names} left out: no weights in {weights()}"
    return None
