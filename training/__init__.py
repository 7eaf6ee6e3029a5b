"""Teaches a model to write better programs, using only what the suite measures."""
