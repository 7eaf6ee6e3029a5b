"""``python -m training pretrain``: next-token training on packed CUDA source, resumable."""

from __future__ import annotations

import argparse

from training.options import add_options, from_options
from training.pace import TimeBox
from training.pretrain import PretrainConfig

HELP = "stage one: train on CUDA source, from scratch or with LoRA on another base"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, PretrainConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; a session that stops early is no error.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, PretrainConfig)
    box = TimeBox(config.minutes)
    from training.trainer import pretrain

    with box.signals():
        outcome = pretrain(config, lambda line: print(line, flush=True), box)
    if outcome.log:
        print(f"MLflow: {outcome.log}")
    if outcome.model is None:
        print(
            f"stopped at step {outcome.step:,} of {outcome.steps:,}, saved;"
            " the same command goes on"
        )
    else:
        print(f"finished: {outcome.model}")
    return 0
