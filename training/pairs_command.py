"""``python -m training pairs``: (matrix, right program) pairs for stage two, resumable."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from training.options import add_options, from_options
from training.pairs_config import PairsConfig

if TYPE_CHECKING:
    from training.pairs import Counts

HELP = "compile and verify drawn programs, keep those that are right"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, PairsConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, PairsConfig)
    from training.curve import Point
    from training.draws import read_meta
    from training.pairs import make
    from training.tracking import RunLog

    counts = make(config, lambda line: print(line, flush=True))
    for line in summary(counts):
        print(line)
    tags = {"stage": "pairs", "space": read_meta(config.draws)["space"]}
    log = RunLog(config.out, "pairs", vars(config), tags, config.tracking == "on")
    log.log([Point(counts.kept, figures(counts))], "FINISHED")
    if log.failure:
        print(f"not logged: {log.failure}")
    elif log.where:
        print(f"MLflow: {log.where}")
    return 0


def summary(counts: Counts) -> Iterator[str]:
    """What was made, for a person."""
    judged = counts.statuses.total()
    yield f"{counts.kept:,} programs over {counts.matrices:,} matrices; {judged:,} judged"
    yield "  ".join(f"{status} {many:,}" for status, many in counts.statuses.most_common())
    for strategy, many in sorted(counts.kept_of.items()):
        yield f"{many:7,}  {strategy}"


def figures(counts: Counts) -> dict[str, float]:
    """The same for MLflow."""
    names = {f"status.{k}": v for k, v in counts.statuses.items()}
    names |= {f"strategy.{k.replace(' ', '_')}": v for k, v in counts.kept_of.items()}
    plain = {"kept": counts.kept, "matrices": counts.matrices}
    return {name: float(value) for name, value in (names | plain).items()}
