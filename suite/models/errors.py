"""The one error of this folder; it imports nothing, so that it can be caught without torch."""

from __future__ import annotations


class ModelError(ValueError):
    """A model, its weights or its input cannot be used; the message says which and what to do."""


class Stopped(Exception):
    """Writing was given up because it was asked to be."""
