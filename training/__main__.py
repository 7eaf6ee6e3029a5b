"""Teaches a model, one stage a command: ``python -m training STAGE --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from training.errors import ConfigError, TrainingError

# Modules with HELP, add_arguments(parser) and run(arguments) -> exit code. One that trains imports
# torch inside run(), so that help and mistakes take no seconds.
COMMANDS = {
    "corpus": "training.corpus.command",
    "tokenizer": "training.tokenizer_command",
    "pack": "training.packing_command",
    "pretrain": "training.pretrain_command",
    "draws": "training.draws_command",
    "pairs": "training.pairs_command",
    "sft": "training.sft_command",
    "rates": "training.rates_command",
    "probe": "training.probe_command",
    "rl": "training.rl_command",
    "sweep": "training.sweep.command",
    "autotune": "training.autotune_command",
    "found": "training.found_command",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    modules = {name: import_module(path) for name, path in COMMANDS.items()}
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(command)
    parsed = parser.parse_args(arguments)
    try:
        return int(modules[parsed.command].run(parsed))
    except ConfigError as error:
        for mistake in error.mistakes:
            print(f"error: {mistake}", file=sys.stderr)
        return 2
    except TrainingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the same command goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
