"""``python -m training rates``: how often a model's programs compile, are right and are new."""

from __future__ import annotations

import argparse
import json
from typing import Any

from training.options import add_options, from_options
from training.pace import TimeBox
from training.rates_config import RatesConfig

HELP = "sample programs for many problems and judge them; no timing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, RatesConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; a session that stops early is no error.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, RatesConfig)
    config.check()
    box = TimeBox(config.minutes)
    from training.curve import Point
    from training.rates_run import SUMMARY, rates
    from training.tracking import RunLog

    with box.signals():
        summary = rates(config, lambda line: print(line, flush=True), box)
    if summary is None:
        print("stopped between two matrices, saved; the same command goes on")
        return 0
    print(json.dumps(summary["statuses"]))
    print(f"finished: {config.out / SUMMARY}")
    log = RunLog(config.out, "rates", vars(config), config.tags("rates"), config.tracking == "on")
    log.log([Point(0, figures(summary))], "FINISHED")
    if log.failure:
        print(f"not logged: {log.failure}")
    elif log.where:
        print(f"MLflow: {log.where}")
    return 0


def figures(summary: dict[str, Any]) -> dict[str, float]:
    """The rates over all families for MLflow: ``spmm32.correct_rate``."""
    return {
        f"{row['op']}.{name}": float(value)
        for row in summary["rates"]
        if row["family"] == "all"
        for name, value in row.items()
        if name not in ("op", "family")
    }
