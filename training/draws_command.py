"""``python -m training draws``: programs of the teacher's space for training matrices."""

from __future__ import annotations

import argparse

from training.draws_config import DrawsConfig
from training.options import add_options, from_options

HELP = "draw programs for training matrices, to be verified by pairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, DrawsConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, DrawsConfig)
    from training.draws import make

    drawn = make(config, lambda line: print(line, flush=True))
    for strategy, many in sorted(drawn.items()):
        print(f"{many:7,}  {strategy}")
    return 0
