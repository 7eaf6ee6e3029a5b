"""Hooks by which a conftest or a plugin adds to the suite: its authors, another evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from suite.author import Author
from suite.campaign import Evaluates


@pytest.hookspec(firstresult=True)
def pytest_suite_evaluator(device: str) -> Evaluates | None:
    """Makes the evaluator that judges every answer, in each process that measures.

    Args:
        device: ``auto``, ``cuda`` or ``emulator``.

    Raises:
        DeviceUnavailable: It is not there; the message is one line and becomes a usage error.
    """


@pytest.hookspec
def pytest_suite_authors(device: str) -> Sequence[Author]:
    """Authors for the device (``cuda`` or ``emulator``), beside those of others."""
    return ()
