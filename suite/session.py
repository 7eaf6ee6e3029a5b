"""The life of one campaign in one pytest process: opened, measured, put on record, closed.

With pytest-xdist the workers measure and the controller keeps the record: it alone writes
``campaign.json`` and talks to MLflow. Without it, one process does both.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from suite.campaign import Campaign, Evaluates, Pair, check_files, pairs
from suite.config import SuiteConfig
from suite.harness.device import DeviceFacts
from suite.journal import Journal, JournalError, Record, read
from suite.locks import Locks
from suite.mlstore import TrackingError, masked, tracking_uri
from suite.problem import Op
from suite.provenance import facts
from suite.record import Ask
from suite.resume import (
    Before,
    check_asks,
    check_device,
    finish,
    resumed,
    write_identity,
)
from suite.tracking import RunStatus, Tracker


def new_name() -> str:
    """An identifier that sorts by time and that no other campaign has."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class Session:
    """One process's part in a campaign.

    Args:
        name: The campaign's identifier.
        config: What was decided.
        make_evaluator: Called when measuring starts, not before.
        folder: Where pytest was started; the default MLflow file is there.
        worker: Name of the xdist worker; empty in the process that keeps the record.
        locks: Of the campaign's folder.
        identity: What decides the campaign's numbers, as ``resume.identity`` has it.
        before: What an earlier run of the campaign has left, where it is resumed.

    Attributes:
        warnings: One line for each thing that went wrong with the record; the exit code says so
            too.
        interrupted: Whether completing the record was interrupted.
    """

    def __init__(
        self,
        name: str,
        config: SuiteConfig,
        make_evaluator: Callable[[], Evaluates],
        folder: Path,
        worker: str = "",
        locks: Locks | None = None,
        identity: Mapping[str, Any] = MappingProxyType({}),
        before: Before | None = None,
    ) -> None:
        self.name = name
        self.before = before
        self.config = config
        self.device: DeviceFacts | None = None
        self.campaign: Campaign | None = None
        self.record: Record | None = None
        self.warnings: list[str] = []
        self.interrupted = False
        self._make_evaluator = make_evaluator
        self._uri = tracking_uri(folder)
        self._worker = worker
        self._identity = identity
        self._locks = locks or Locks(self.folder)
        self._tracker: Tracker | None = None
        self._recording = False
        position = {spec.name: at for at, spec in enumerate(config.matrices)}
        everything = [pair for op in config.ops for pair in pairs(config, op)]
        self._order = {
            (pair.op, pair.id): (pair, (position[pair.matrix.name], at))
            for at, pair in enumerate(everything)
        }

    def find(self, op: Op, identifier: str) -> tuple[Pair, tuple[int, int]] | None:
        """The pair with a pytest id, with the positions of its matrix and of itself."""
        return self._order.get((op, identifier))

    @property
    def folder(self) -> Path:
        """Where the campaign's journal is."""
        return self.config.folder / self.name

    @property
    def where(self) -> str:
        """Where the results are, in words."""
        if self._tracker is None:
            return f"journal {self.folder}"
        store = masked(self._tracker.uri)
        return f"MLflow {store}, run {self.name} (see: make ui); journal {self.folder}"

    @property
    def _process(self) -> str:
        return self._worker or "main"

    def look(self) -> None:
        """Finds out what the device is without keeping it, to keep the record only.

        Raises:
            ConfigError: A matrix file cannot be used.
            RuntimeError: The device is not there.
        """
        check_files(self.config.matrices, self.config.dtype)
        evaluator = self._make_evaluator()
        self.device = evaluator.facts
        evaluator.close()
        self._check_device()

    def measure(self, asks: Sequence[Ask]) -> Campaign:
        """Opens the device and writes down what will be asked.

        Raises:
            ConfigError: A matrix file cannot be used.
            RuntimeError: The device is not there.
            JournalError: The journal cannot be written.
        """
        asked = {ask.matrix for ask in asks}
        wanted = [spec for spec in self.config.matrices if spec.name in asked]
        specs = check_files(wanted, self.config.dtype)
        if self.before is not None:
            check_asks(self.before, asks)
        evaluator = self._make_evaluator()
        self.device = evaluator.facts
        try:
            self._check_device()
            self._locks.hold(self._process)
            journal = Journal(self.folder, self._process)
            config = replace(self.config, matrices=tuple(specs))
            earlier = (self.before.rows, self.before.answers) if self.before else ({}, {})
            self.campaign = Campaign(self.name, config, evaluator, journal, *earlier)
            self.campaign.plan(asks, alone=not self._worker)
        except BaseException:
            evaluator.close()
            raise
        return self.campaign

    def _check_device(self) -> None:
        if self.before is not None and self.device is not None:
            check_device(self.before, self.device)

    def keep_record(self) -> None:
        """Starts the record; a store that cannot be used is a warning, for the journal has it all.

        Raises:
            JournalError: The journal cannot be written.
        """
        if self._worker or self.device is None:
            return
        known = {"campaign": self.name, **facts(self.device, options(self.config))}
        if self.before is not None:
            known = resumed(self.before.record.facts, known)
        self._locks.hold(self._process)
        journal = Journal(self.folder, self._process)
        if self.before is None:
            write_identity(self.folder, self._identity)
        journal.facts(known)
        self._recording = True
        if not self.config.tracking:
            return
        try:
            self._tracker = Tracker(self._uri, self.name, known)
        except TrackingError as error:
            self._lost(str(error))

    def finish(self, status: RunStatus) -> None:
        """Closes everything; the process that keeps the record completes it.

        An interrupt or a damaged journal becomes a warning, for the run has more to close.
        """
        try:
            self._finish(status)
        except TrackingError as error:
            self._lost(str(error))
        except JournalError as error:
            self.close("FAILED")
            self._lost(str(error))
        except KeyboardInterrupt:
            self.interrupted = True
            self.close("KILLED")
            self._lost("logging interrupted")

    def close(self, status: RunStatus) -> None:
        """Leaves no run open in the store, as far as it can be reached."""
        if self._tracker is not None and self._tracker.open:
            with suppress(TrackingError):
                self._tracker.end(status)

    def _finish(self, status: RunStatus) -> None:
        if self.campaign is not None:
            self.campaign.close()
        if not self._recording:
            return
        self.record = read(self.folder)
        if self._tracker is not None:
            self._tracker.complete(self.record, status)
        if not self.record.unanswered and bool(self._tracker) == self.config.tracking:
            finish(self.folder)

    def abandon(self) -> None:
        """Leaves nothing half-written behind when measuring could not start."""
        if self.campaign is None and self.before is None and not self._worker:
            self._locks.release()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _lost(self, what: str) -> None:
        self._tracker = None
        folder = shlex.quote(str(self.folder))
        self.warnings.append(f"{what}; import with: python -m suite import {folder}")


def options(config: SuiteConfig) -> Mapping[str, Any]:
    """The decided options as plain values, for the record."""
    return {
        "matrices": ",".join(spec.name for spec in config.matrices),
        "ops": ",".join(config.ops),
        "authors": ",".join(author.name for author in config.authors),
        "device": config.device,
        "columns": ",".join(map(str, config.columns)),
        "samples": config.samples,
        "dtype": config.dtype.value,
        "sanitize": "on" if config.sanitizer else "off",
    }


@contextmanager
def sigterm_interrupts() -> Iterator[list[int]]:
    """SIGTERM counts as an interrupt inside, so that the record is completed and closed.

    Yields:
        The signals that came.
    """
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt("SIGTERM")

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)
