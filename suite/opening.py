"""From pytest's options to the session of this process: a new campaign, or one that goes on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from suite import resume
from suite.author import Author
from suite.campaign import Evaluates
from suite.config import ConfigError, DeviceKind, Requested, SuiteConfig, folder_of, resolve
from suite.journal import JournalError
from suite.locks import Locks
from suite.session import Session, new_name
from suite.sources import sources

_OPTIONS = {
    "matrices": "a set (smoke, paper), families, globs or paths, comma-separated (default: smoke)",
    "ops": "spmv, spmm or both (default: both)",
    "authors": "names, globs, or paths of .cu programs, comma-separated (default: all)",
    "device": "auto, cuda or emulator (default: auto)",
    "columns": "dense columns for SpMM (default: 32,128)",
    "samples": "programs asked of each author for each problem (default: 1)",
    "dtype": "float32 or float64 (default: float32)",
    "tracking": "on or off: log to MLflow at MLFLOW_TRACKING_URI, or mlflow.db here (default: on)",
    "folder": "where every measurement is kept as it is made (default: .suite)",
}
_FLAGS = {
    "sanitize": "verify right programs once more under each tool of compute-sanitizer",
}

MOST_TOGETHER = 4  # a program takes every processor where it can

SESSION = pytest.StashKey[Session]()


def add_options(parser: pytest.Parser) -> None:
    """The ``--suite-*`` options."""
    group = parser.getgroup("suite", "SparseRL bench")
    for name, what in _OPTIONS.items():
        group.addoption(f"--suite-{name}", metavar=name.upper(), help=what)
    for name, what in _FLAGS.items():
        group.addoption(f"--suite-{name}", action="store_const", const="on", help=what)
    group.addoption(
        resume.OPTION,
        metavar="CAMPAIGN",
        nargs="?",
        const=resume.LATEST,
        help="go on with a campaign that was stopped (default: the latest unfinished one);"
        " options left out are the campaign's",
    )


def session_of(config: pytest.Config) -> Session:
    """The session of this process, made when first needed.

    Raises:
        ConfigError: With every mistake in the options.
    """
    if SESSION not in config.stash:
        given = {name: config.getoption(f"suite_{name}") for name in (*_OPTIONS, *_FLAGS)}
        requested = Requested(**given)
        worker = worker_of(config)
        name = getattr(config, "workerinput", {}).get("suite_campaign") or ""
        wanted = config.getoption("suite_resume")
        before = None
        if wanted is not None:
            if not wanted.strip():
                raise ConfigError(f"{resume.OPTION}: is empty; give a campaign or nothing at all")
            folder = resume.find(folder_of(requested), name or wanted)
            locks = _claim(config, folder, worker)
            before, name = resume.load(folder), folder.name
            requested = before.requested(requested)
        else:
            name = name or new_name()
            locks = Locks(folder_of(requested) / name)
        config.add_cleanup(locks.release)
        chosen = resolve(requested, sources(lambda device: _authors(config, device)))
        identity = {} if worker else resume.identity(requested, chosen)
        if before is not None and not worker:
            resume.check_same(before, identity)
        config.stash[SESSION] = Session(
            name,
            chosen,
            lambda: _evaluator(config, chosen),
            config.invocation_params.dir,
            worker,
            locks,
            identity,
            before,
        )
    return config.stash[SESSION]


def _claim(config: pytest.Config, folder: Path, worker: str) -> Locks:
    """Makes sure that this process alone goes on with the campaign."""
    locks = Locks(folder)
    config.add_cleanup(locks.release)
    if not config.option.collectonly:
        try:
            locks.hold(worker or "main")
            if not worker:
                locks.check()
        except JournalError as error:
            raise ConfigError(f"{resume.OPTION}: {error}") from error
    return locks


def _authors(config: pytest.Config, device: DeviceKind) -> list[Author]:
    found: list[Sequence[Author]] = config.hook.pytest_suite_authors(device=device)
    return [author for authors in found for author in authors]


def _evaluator(config: pytest.Config, chosen: SuiteConfig) -> Evaluates:
    made: Evaluates | None = config.hook.pytest_suite_evaluator(device=chosen.device)
    if made is None:
        from suite.harness.evaluate import Evaluator, Settings

        settings = Settings(sanitizer=chosen.sanitizer, together=_together(config))
        made = first = Evaluator(chosen.device, settings)
        if first.facts.kind == "emulator" and settings.together > 1:
            from suite.harness.together import Together

            made = Together(first, lambda: Evaluator("emulator", settings), settings.together)
    if made.facts.kind != "cuda" and config.getoption("benchmark_compare_fail", None):
        made.close()
        raise ConfigError(
            "--benchmark-compare-fail: emulated times say nothing about speed; leave it out, or"
            " run on a GPU"
        )
    return made


def _together(config: pytest.Config) -> int:
    """How many programs the emulator judges at a time; with xdist there are processes enough."""
    return 1 if worker_of(config) else min(MOST_TOGETHER, len(os.sched_getaffinity(0)))


def is_wanted(config: pytest.Config) -> bool:
    """Whether mistakes in the options concern this run: one is given, or the suite is collected."""
    options = (*_OPTIONS, *_FLAGS, "resume")
    if any(config.getoption(f"suite_{name}") is not None for name in options):
        return True
    here = Path(__file__).parent
    paths = [
        Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args
    ]
    return any(here == path or here in path.parents or path in here.parents for path in paths)


def worker_of(config: pytest.Config) -> str:
    """Name of this xdist worker; empty in the process that was started."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def is_controller(config: pytest.Config) -> bool:
    """Whether this process only hands items to xdist workers."""
    return (
        not worker_of(config)
        and config.getoption("dist", "no") != "no"
        and bool(config.getoption("tx"))
    )
