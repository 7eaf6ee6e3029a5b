"""``python -m training found``: the fastest known programs as pairs to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "make pairs for stage two of the fastest programs that runs and searches have found"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("known", nargs="+", type=Path, help="known.sqlite of a run or a search")
    parser.add_argument("--out", required=True, type=Path, help="folder of the pairs")
    parser.add_argument(
        "--within",
        type=float,
        default=1.05,
        help="times the fastest time of a problem, up to which others come too (default: 1.05)",
    )
    parser.add_argument(
        "--most", type=int, default=4, help="programs of a problem, at most (default: 4)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: What must be put right first.
    """
    from training.found import export

    count = export(arguments.known, arguments.out, arguments.within, arguments.most)
    print(f"{count:,} pairs in {arguments.out}")
    return 0
