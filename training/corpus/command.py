"""``python -m training corpus``: CUDA source from permissively licensed packages."""

from __future__ import annotations

import argparse
from pathlib import Path

from training.corpus.sources import TABLE, read_sources
from training.errors import TrainingError

HELP = "build the corpus of CUDA source from PyPI and Debian packages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--sources", type=Path, default=TABLE, help="table of packages")
    parser.add_argument(
        "--registries",
        choices=("all", "pypi", "debian"),
        default="all",
        help="leave a registry out; the card says what is in (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: The corpus could not be built; what was fetched stays.
    """
    from training.corpus.build import build

    sources = [
        s
        for s in read_sources(arguments.sources)
        if arguments.registries in ("all", "debian" if s.debian else "pypi")
    ]
    built = build(sources, arguments.out.absolute(), lambda line: print(line, flush=True))
    if built.missing:
        raise TrainingError(
            f"{len(built.missing)} of {len(sources)} packages are missing, no corpus was written;"
            f" the same command goes on. First: {built.missing[0]}"
        )
    for split, totals in built.card["splits"].items():
        print(f"{split}: {totals['files']:,} files, {totals['bytes'] / 1e6:.1f} MB")
    print(f"data card: {arguments.out / 'card.md'}")
    return 0
