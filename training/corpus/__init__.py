"""CUDA source to pre-train on, harvested from permissively licensed packages.

    python -m training corpus --out ~/corpus

See ``docs/corpus.md`` for what gets in and what does not. The corpus is never part of the
repository.
"""
