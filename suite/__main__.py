"""Logs a campaign from its journal: ``python -m suite import .suite/<campaign>``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from suite.journal import JournalError, read
from suite.mlstore import TrackingError, masked, tracking_uri
from suite.tracking import import_record


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m suite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("import", help="log measurements that could not reach MLflow")
    command.add_argument(
        "folder", type=Path, nargs="+", help="folder of a campaign: .suite/<campaign>"
    )
    parsed = parser.parse_args(arguments)
    uri = tracking_uri(Path.cwd())
    try:
        for folder in parsed.folder:
            record = read(folder.absolute())
            run = import_record(record, uri)
            what = (
                f"{len(record.rows)} rows, run {run}" if run else "is there already, nothing done"
            )
            print(f"{record.campaign}: {what} ({masked(uri)})")
    except (JournalError, TrackingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the same command starts over", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
