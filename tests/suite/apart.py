"""A process of its own that is forked from this one, which has imported everything.

A new interpreter would import pytest, pandas and MLflow again, for seconds. What is to hold for one
that a shell starts is tried in ``test_signals``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_FORK = multiprocessing.get_context("fork")


class Apart:
    """It is started, may be killed, and may end itself as it likes.

    No connection to a store may be open here that it uses too: ``suite_dir`` sees to that.

    Args:
        work: What it does.
        arguments: Of ``work``.
    """

    def __init__(self, work: Callable[..., object], *arguments: object) -> None:
        self._said = TemporaryDirectory()
        given = (self._said.name, work, arguments)
        self._process = _FORK.Process(target=_work, args=given, daemon=True)  # outlives no failure
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # xdist has a thread that waits
            self._process.start()

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self._process.exitcode is not None

    def kill(self, after_s: float) -> bool:
        """Kills it then; whether it still ran."""
        self._process.join(after_s)
        self._process.kill()
        self._process.join()
        return self._process.exitcode == -signal.SIGKILL

    def result(self) -> pytest.RunResult:
        """How it ended, and what it said; it has two minutes."""
        self._process.join(120)
        code = self._process.exitcode
        if code is None:
            self.kill(0)
        assert code is not None, "it did not end"
        out, err = ((Path(self._said.name) / name).read_text() for name in ("1", "2"))
        return pytest.RunResult(code, out.splitlines(), err.splitlines(), 0.0)


def run_pytest(folder: Path, *options: str) -> None:
    """What ``pytest`` does when it is started in a folder."""
    os.chdir(folder)
    # That plugin ends with collecting the garbage of all that was imported, five times.
    sys.exit(int(pytest.main(["-p", "no:unraisableexception", *options])))


def _work(said: str, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(f"{said}/{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        setattr(sys, name, os.fdopen(file, "w", buffering=1, encoding="utf-8"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    work(*arguments)
