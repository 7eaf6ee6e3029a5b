"""``python -m training rl``: reinforcement learning on measured speed, resumable."""

from __future__ import annotations

import argparse

from training.options import add_options, from_options
from training.pace import TimeBox
from training.rl_config import RlConfig

HELP = "stage three: reinforcement learning on what the suite measures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, RlConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; a session that stops early is no error.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, RlConfig)
    box = TimeBox(config.minutes)
    from training.rl import train

    with box.signals():
        outcome = train(config, lambda line: print(line, flush=True), box)
    if outcome.log:
        print(f"MLflow: {outcome.log}")
    if outcome.step < outcome.steps:
        print(
            f"stopped at step {outcome.step:,} of {outcome.steps:,}, saved;"
            " the same command goes on"
        )
    print(f"adapter: {outcome.adapter}")
    return 0
