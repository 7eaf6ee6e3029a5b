"""The database of a study: SQLite or PostgreSQL, signs of life, and trials that are run again.

A worker writes a sign of life every few seconds while a trial runs. Whoever asks for the next trial
finds those whose worker has been silent for too long, records them as failed and puts the same
parameters back into the queue.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from suite.mlstore import masked
from training.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

SILENT = 6  # signs of life that may be missing
ATTEMPTS = 5  # of making the tables, which several workers may try at once
WAIT_S = 20.0  # for a worker that is just making the study
# What a study and its trials say of themselves.
ASKED = "asked"
WORKER = "worker"
START = "start"
RETRIES = "retries"


def open_storage(url: str, heartbeat: int, retries: int) -> RDBStorage:
    """The database; its tables are made where they are missing.

    Args:
        url: As SQLAlchemy writes it.
        heartbeat: Seconds between signs of life.
        retries: How often a trial whose worker died is run again.

    Raises:
        TrainingError: It cannot be used.
    """
    import optuna
    from optuna.exceptions import ExperimentalWarning
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sqlite = url.startswith("sqlite")
    if sqlite and "///" in url:
        with suppress(OSError):  # the database says what is wrong
            Path(url.partition("///")[2]).parent.mkdir(parents=True, exist_ok=True)
    engine = {"connect_args": {"timeout": 60}} if sqlite else {"pool_pre_ping": True}
    for attempt in range(ATTEMPTS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)
                return optuna.storages.RDBStorage(
                    url,
                    engine_kwargs=engine,
                    heartbeat_interval=heartbeat,
                    grace_period=SILENT * heartbeat,
                    heartbeat_stale_trial_callback=_again(retries),
                )
        except ImportError as error:
            raise TrainingError(
                f"--storage {masked(url)}: {error}; pip install 'psycopg[binary]' for PostgreSQL"
            ) from error
        except DBAPIError as error:
            failure = error
            time.sleep(0.1 * (attempt + 1))
        except (SQLAlchemyError, ValueError, RuntimeError) as error:
            raise unusable(url, error) from error
    raise unusable(url, failure) from failure


def open_study(storage: RDBStorage, name: str, objectives: int) -> tuple[Study, bool]:
    """Makes a study, or joins the one of this name.

    Args:
        storage: Where it is.
        name: Of the study.
        objectives: How many it has; all are to be large.

    Returns:
        The study, and whether this process made it and is to ``settle`` it.
    """
    import optuna
    from optuna.exceptions import DuplicatedStudyError

    directions = [optuna.study.StudyDirection.MAXIMIZE] * objectives
    try:
        return optuna.create_study(storage=storage, study_name=name, directions=directions), True
    except DuplicatedStudyError:
        return optuna.load_study(study_name=name, storage=storage), False


def settle(study: Study, asked: Mapping[str, str]) -> None:
    """Says that a new study is ready for everybody, and what was asked of it."""
    study.set_user_attr(ASKED, dict(asked))


def compare(study: Study, asked: Mapping[str, str]) -> None:
    """Waits until a study is settled, and holds it to what is asked now.

    Raises:
        ConfigError: Lists what differs.
        TrainingError: Whoever made it did not come to an end.
    """
    before = _settled(study)
    differs = [
        f"--study {study.study_name}: has {key} {before.get(key)}, not {asked.get(key)};"
        " give another --study, or what it has"
        for key in sorted(before.keys() | asked.keys())
        if before.get(key) != asked.get(key)
    ]
    if differs:
        raise ConfigError(differs)


@contextmanager
def failures(url: str) -> Iterator[None]:
    """Turns what a database raises into one line.

    Raises:
        TrainingError: For any error of the database inside.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        raise unusable(url, error) from error


def unusable(url: str, error: BaseException) -> TrainingError:
    """What to tell a person."""
    cause = error.__cause__ or error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return TrainingError(masked(f"--storage {url}: {lines[0]}; the same command goes on"))


def release_silent(study: Study, heartbeat: int) -> None:
    """Puts trials back whose worker has been silent for too long, or died before the first sign."""
    import optuna
    from optuna.exceptions import ExperimentalWarning
    from optuna.trial import TrialState

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
    late = datetime.now() - timedelta(seconds=SILENT * heartbeat)
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if WORKER not in trial.user_attrs and trial.datetime_start and trial.datetime_start < late:
            # Another worker may have been quicker.
            with suppress(ValueError, optuna.exceptions.UpdateFinishedTrialError):
                study.tell(trial.number, state=TrialState.FAIL)
                run_again(study, trial)


def run_again(study: Study, trial: FrozenTrial, died: bool = False) -> None:
    """Puts a trial's parameters back into the queue.

    Args:
        study: Has the trial.
        trial: Did not come to its end.
        died: Whether its worker did, which is counted.
    """
    values = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    kept = {key: trial.user_attrs[key] for key in (START, RETRIES) if key in trial.user_attrs}
    if died:
        kept[RETRIES] = [*kept.get(RETRIES, []), trial.number]
    study.enqueue_trial(values, user_attrs=kept)


def _again(retries: int) -> Callable[[Study, FrozenTrial], None]:
    def again(study: Study, trial: FrozenTrial) -> None:
        if len(trial.user_attrs.get(RETRIES, [])) < retries:
            run_again(study, trial, died=True)

    return again


def _settled(study: Study) -> Mapping[str, str]:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        found = study.user_attrs.get(ASKED)
        if found is not None:
            return {str(k): str(v) for k, v in found.items()}
        time.sleep(0.2)
    raise TrainingError(
        f"--study {study.study_name}: was begun and never settled, its worker died;"
        " give another name"
    )
