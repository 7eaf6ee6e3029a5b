"""``python -m training sft``: teaches a base to write right programs, through TRL; resumable."""

from __future__ import annotations

import argparse

from training.options import add_options, from_options
from training.pace import TimeBox
from training.sft import SftConfig

HELP = "stage two: fine-tune on pairs of a matrix and a right program"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, SftConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; a session that stops early is no error.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, SftConfig)
    config.check()
    box = TimeBox(config.minutes)
    from training.sft_run import sft

    with box.signals():
        outcome = sft(config, lambda line: print(line, flush=True), box)
    if outcome.log:
        print(f"MLflow: {outcome.log}")
    if outcome.adapter is None:
        print(
            f"stopped at step {outcome.step:,} of {outcome.steps:,}, saved;"
            " the same command goes on"
        )
    else:
        print(f"finished: {outcome.adapter}")
    return 0
