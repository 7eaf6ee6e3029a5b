"""Lets the trained variants join the suite, and says which are left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from suite.author import Author
from suite.models.author import authors
from suite.models.variants import trained, weights


def pytest_suite_authors(device: str) -> Sequence[Author]:
    """Every variant whose weights are there."""
    return authors()


def pytest_report_header(config: pytest.Config) -> str | None:
    """One line where variants have no weights and the suite is asked for."""
    from suite.plugin import is_wanted

    missing = trained(weights())[1]
    if not missing or not is_wanted(config):
        return None
    return f"suite: no weights in {weights()} for {', '.join(v.name for v in missing)}; left out"
