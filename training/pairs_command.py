"""``python -m training pairs``: (matrix, right program) pairs for stage two, resumable."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from training.options import add_options, from_options
from training.pairs_config import PairsConfig

if TYPE_CHECKING:
    from training.pairs import Counts

HELP = "draw programs from the teacher's space, verify them, keep those that are right"


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
    from training.pairs import make, same
    from training.tracking import RunLog

    counts = make(config, lambda line: print(line, flush=True))
    for line in summary(counts):
        print(line)
    tags = {"stage": "pairs", "space": same(config)["space"]}
    log = RunLog(config.out, "pairs", vars(config), tags, config.tracking == "on")
    log.log([Point(counts.shards, figures(counts))], "FINISHED")
    if log.failure:
        print(f"not logged: {log.failure}")
    elif log.where:
        print(f"MLflow: {log.where}")
    return 0


def summary(counts: Counts) -> Iterator[str]:
    """What was made, for a person."""
    judged = sum(counts.statuses.values())
    yield (
        f"{counts.kept:,} programs over {counts.matrices:,} matrices; {judged:,} judged,"
        f" {counts.repeated:,} repeated"
    )
    yield "  ".join(f"{status} {many:,}" for status, many in counts.statuses.most_common())
    for strategy, many in sorted(counts.kept_of.items()):
        yield f"{many:7,}  {strategy}"


def figures(counts: Counts) -> dict[str, float]:
    """The same for MLflow."""
    names = {f"status.{k}": v for k, v in counts.statuses.items()}
    names |= {f"strategy.{k.replace(' ', '_')}": v for k, v in counts.kept_of.items()}
    plain = {"kept": counts.kept, "repeated": counts.repeated, "matrices": counts.matrices}
    return {name: float(value) for name, value in (names | plain).items()}
