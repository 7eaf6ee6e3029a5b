"""Shows what was measured: reports, comparisons, and results that are published and restored."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from reports.source import Campaign, SourceError, Store
from suite.mlstore import EXPERIMENT, TrackingError, masked, tracking_uri


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        for line in parsed.act(parsed):
            print(line)
    except (SourceError, TrackingError, ReportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = error.filename or getattr(parsed, "out", "")
        print(f"error: {where}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


class ReportError(RuntimeError):
    """A report cannot be made of what is there; the message is one line."""


def _build(parsed: argparse.Namespace) -> list[str]:
    from reports.build import report
    from reports.closeup import NoSuchMatrixError
    from reports.write import write, write_shown

    store = Store(tracking_uri(Path.cwd()), parsed.experiment)
    campaign = _chosen(store, parsed)
    try:
        document = report(
            campaign, store.training(), lambda row: store.program(campaign, row), parsed.matrix
        )
    except NoSuchMatrixError as error:
        raise ReportError(str(error)) from error
    written = write(document, parsed.out)
    if parsed.log:
        with tempfile.TemporaryDirectory() as folder:
            write_shown(document, Path(folder))
            store.attach(campaign, Path(folder))
    where = [f"logged in MLflow run {campaign.run}"] if parsed.log else []
    return [f"campaign {campaign.name}", *map(str, written), *where]


def _chosen(store: Store, parsed: argparse.Namespace) -> Campaign:
    if parsed.run:
        return store.of_run(parsed.run)
    return store.campaign(parsed.campaign) if parsed.campaign else store.newest()


def _compare(parsed: argparse.Namespace) -> list[str]:
    from reports.compare import comparison
    from reports.write import write

    store = Store(tracking_uri(Path.cwd()), parsed.experiment)
    first, second = (store.campaign(name) for name in (parsed.first, parsed.second))
    return [str(path) for path in write(comparison(first, second), parsed.out)]


def _publish(parsed: argparse.Namespace) -> list[str]:
    from reports.publish import PublishError, publish
    from reports.trained import TrainedError

    store = Store(tracking_uri(Path.cwd()), parsed.experiment)
    campaigns = [store.campaign(name) for name in parsed.campaign]
    try:
        runs = store.training()[: parsed.training] if parsed.training > 0 else []
        publish(campaigns, parsed.made_by, parsed.out, store.program, runs)
    except (PublishError, TrainedError) as error:
        raise ReportError(str(error)) from error
    return [f"{parsed.out}: rows.parquet, programs.json, {_PAGES}"]


_PAGES = "summary.json, README.md, report.html, report.pdf"


def _refresh(parsed: argparse.Namespace) -> list[str]:
    from reports.publish import refresh
    from reports.restore import RestoreError
    from reports.trained import TrainedError

    try:
        refresh(parsed.folder)
    except (RestoreError, TrainedError) as error:
        raise ReportError(str(error)) from error
    return [f"{parsed.folder}: {_PAGES}"]


def _readme(parsed: argparse.Namespace) -> list[str]:
    from reports.readme import ReadmeError, filled

    file: Path = parsed.file
    try:
        file.write_text(filled(file.read_text(encoding="utf-8"), file.parent), encoding="utf-8")
    except ReadmeError as error:
        raise ReportError(f"{file}: {error}") from error
    return [str(file)]


def _restore(parsed: argparse.Namespace) -> list[str]:
    from reports import trained
    from reports.restore import RestoreError, restore

    uri = tracking_uri(Path.cwd())
    try:
        found = {**restore(parsed.folder, uri), **trained.restore(parsed.folder, uri)}
    except (RestoreError, trained.TrainedError) as error:
        raise ReportError(str(error)) from error
    return [
        f"{name}: {f'run {run}' if run else 'is there already'} ({masked(uri)})"
        for name, run in found.items()
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reports", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    build = commands.add_parser("build", help="the report of a campaign: HTML, PDF, LaTeX")
    which = build.add_mutually_exclusive_group()
    which.add_argument("--campaign", default="", help="its name; the newest one if left out")
    which.add_argument("--run", default="", help="id of one of its MLflow runs")
    build.add_argument("--matrix", default="", help="matrix to look at closely")
    build.add_argument("--log", action="store_true", help="also into its MLflow run")
    build.set_defaults(act=_build)

    compare = commands.add_parser("compare", help="two campaigns side by side")
    compare.add_argument("first", metavar="A", help="name of a campaign")
    compare.add_argument("second", metavar="B", help="name of the one to compare with it")
    compare.set_defaults(act=_compare)

    publish = commands.add_parser("publish", help="rows, figures and tables as small files")
    publish.add_argument("campaign", nargs="+", help="its name, then names of repetitions of it")
    publish.add_argument("--made-by", action="append", required=True, help="command that made them")
    publish.add_argument(
        "--training", type=int, default=0, help="also so many of the newest training runs"
    )
    publish.set_defaults(act=_publish)

    restore = commands.add_parser("restore", help="put published results back into MLflow")
    restore.add_argument("folder", type=Path, help="what publish wrote")
    restore.set_defaults(act=_restore)

    refresh = commands.add_parser("refresh", help="pages of published results anew from their rows")
    refresh.add_argument("folder", type=Path, help="what publish wrote")
    refresh.set_defaults(act=_refresh)

    readme = commands.add_parser("readme", help="the table of results in a README")
    readme.add_argument("file", type=Path, help="with <!-- results: SUMMARY --> in it")
    readme.set_defaults(act=_readme)

    for command in (build, compare, publish):
        command.add_argument("--out", type=Path, required=True, help="folder to write to")
        command.add_argument("--experiment", default=EXPERIMENT, help="MLflow experiment to read")
    return parser


if __name__ == "__main__":
    sys.exit(main())
