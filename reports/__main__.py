"""``python -m reports publish``: a campaign's results as a folder of small files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reports.publish import PublishError, fetch, publish
from suite.mlstore import TrackingError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reports", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("publish", help="write rows, figures and tables of a campaign")
    command.add_argument("campaign", nargs="+", help="its name, then names of repetitions of it")
    command.add_argument("--out", type=Path, required=True, help="folder to write to")
    command.add_argument("--made-by", action="append", required=True, help="command that made them")
    parsed = parser.parse_args(arguments)
    try:
        publish([fetch(name) for name in parsed.campaign], parsed.made_by, parsed.out)
    except (PublishError, TrackingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{parsed.out}: rows.parquet, summary.json, README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
