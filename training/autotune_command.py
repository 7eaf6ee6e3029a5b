"""``python -m training autotune``: search the teacher's space for each problem, resumable."""

from __future__ import annotations

import argparse
import json

from training.autotune_config import AutotuneConfig
from training.options import add_options, from_options
from training.pace import TimeBox

HELP = "search the teacher's space per problem, and say what 1, 8, 64, 1,000 measurements find"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, AutotuneConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; a session that stops early is no error.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, AutotuneConfig)
    box = TimeBox(config.minutes)
    from training.autotune import autotune, results_in
    from training.autotune_report import curves, read, table

    with box.signals():
        done = autotune(config, lambda line: print(line, flush=True), box)
    if not done:
        print("stopped, what was measured is kept; the same command goes on")
    folder = results_in(config)
    if any(folder.glob("*--*.parquet")):
        found = list(curves(read(folder)))
        rows = json.dumps([one.as_row() for one in found], indent=1)
        (folder / "curves.json").write_text(f"{rows}\n", encoding="utf-8")
        for line in table(found) if found else ():
            print(line)
    print(f"results: {folder}")
    return 0
