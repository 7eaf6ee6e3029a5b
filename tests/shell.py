"""The environment that a person's shell would give to a pytest started inside a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

OURS = ("MLFLOW_TRACKING_URI", "FAKE_GPU")


def plain(patch: pytest.MonkeyPatch) -> None:
    """Takes from the environment all that it has of the run that this test belongs to."""
    patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    patch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")  # it imports and rewrites for a second
    for name in [n for n in os.environ if n in OURS or n.startswith("PYTEST_XDIST_")]:
        patch.delenv(name)
