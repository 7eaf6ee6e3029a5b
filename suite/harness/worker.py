"""A process that does what may go wrong: it is asked, and replaced when it does not answer.

Only this module knows how processes talk. A service is an object whose methods are called by name;
it is made in the child by a factory, ``module:function``. The child gets a short list of
environment variables, so no credential reaches a program, a temporary folder of its own, and ends
when its parent does.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from suite.harness.processes import die_with_parent, environment, private_folder

START_SECONDS = 120.0  # importing SciPy and opening a GPU on a busy host


# A child ends with the thread that made it (``die_with_parent``), and whoever asks may be a thread
# that soon ends; so one thread makes them all, and lasts as long as this process.
_MAKER = ThreadPoolExecutor(1, "worker-maker")


class WorkerDied(RuntimeError):
    """The process ended instead of answering.

    Attributes:
        killed: Whether somebody ended it, as a host that is out of memory does; no program can.
    """

    def __init__(self, message: str, *, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed


class WorkerTimeout(RuntimeError):
    """No answer within the time given; the process has been killed."""


class WorkerUnavailable(RuntimeError):
    """The process could not be started; nothing is known of what it was to do."""


class Worker:
    """One process with one service, started when first called and again after it was lost.

    Args:
        service: The factory, for example ``suite.harness.services:cuda``.
        arguments: Its keyword arguments; must pickle.
        environment: Variables that its process gets beside the few that are passed on.
    """

    def __init__(
        self, service: str, arguments: dict[str, Any], environment: Mapping[str, str] | None = None
    ) -> None:
        self._service, self._arguments = service, arguments
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._starting = False  # asked to start, and has not said yet that it did
        self._folder: Path | None = None
        self._lock = threading.Lock()

    def call(self, method: str, *args: Any, timeout: float) -> Any:
        """Calls a method of the service.

        Args:
            method: Its name.
            *args: Its arguments; must pickle.
            timeout: Seconds to wait for the answer; starting the process has a limit of its own.

        Returns:
            What the method returned.

        Raises:
            WorkerTimeout: No answer in time.
            WorkerDied: The process ended.
            WorkerUnavailable: It could not be started.
            Exception: Whatever the method raised.
        """
        with self._lock:
            if self._process is None:
                self._start()
            if self._starting:
                self._finish_start()
            return self._ask((method, args), timeout)

    @property
    def running(self) -> bool:
        """Whether there is a process, as far as anybody has noticed."""
        return self._process is not None

    def start(self) -> None:
        """Starts the process, if there is none, without waiting for it."""
        with self._lock:
            if self._process is None:
                self._start()

    def close(self) -> None:
        """Ends the process, if there is one. May be called from any thread and more than once."""
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._folder = private_folder()
        command = [sys.executable, "-m", "suite.harness.worker", str(theirs.fileno())]
        making = _MAKER.submit(
            subprocess.Popen,
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is the parent's to handle
            env=_environment() | {"TMPDIR": str(self._folder)} | self._environment,
        )
        try:
            self._process = making.result()
        except BaseException:
            making.add_done_callback(_end)  # interrupted: nobody would know of it
            ours.close()
            raise
        finally:
            theirs.close()
        self._connection = Connection(ours.detach())
        self._starting = True
        with contextlib.suppress(OSError):  # it ended at once: told when its answer is read
            self._connection.send((self._service, self._arguments))

    def _finish_start(self) -> None:
        self._starting = False
        try:
            self._ask(None, START_SECONDS)
        except (WorkerDied, WorkerTimeout) as error:
            raise WorkerUnavailable(f"while it started: {error}") from error
        except BaseException:
            self.close()  # half made: the next call starts another
            raise

    def _ask(self, message: object, timeout: float) -> Any:
        connection = self._connection
        assert connection is not None
        try:
            if message is not None:
                connection.send(message)
            if not connection.poll(timeout):
                self.close()
                raise WorkerTimeout(f"no answer within {timeout:g} s")
            good, answer = connection.recv()
        except (EOFError, ConnectionError, OSError) as error:
            process = self._process
            with contextlib.suppress(subprocess.TimeoutExpired):
                process and process.wait(5)
            code = process.poll() if process else None
            self.close()
            raise WorkerDied(
                f"the {self._service.rpartition(':')[2]} process ended ({_ending(code)})",
                killed=code == -signal.SIGKILL,
            ) from error
        except BaseException:
            self.close()  # interrupted: its answer must not be taken for the next one's
            raise
        if not good:
            raise answer
        return answer


def _end(making: Future[subprocess.Popen[bytes]]) -> None:
    if not making.cancelled() and making.exception() is None:
        os.killpg(making.result().pid, signal.SIGKILL)


def _ending(code: int | None) -> str:
    if code is None:
        return "still there, but not answering"
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _environment() -> dict[str, str]:
    kept = environment()
    # The child must find this package however the parent found it.
    paths = [str(Path(__file__).parents[2]), *kept.get("PYTHONPATH", "").split(os.pathsep)]
    return kept | {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "OMP_NUM_THREADS": "1"}


def _serve(connection: Connection) -> None:
    service: Any = None
    while True:
        try:
            name, payload = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            if service is None:
                module, _, factory = name.partition(":")
                service = getattr(importlib.import_module(module), factory)(**payload)
                answer = None
            else:
                answer = getattr(service, name)(*payload)
            reply = (True, answer)
        except Exception as error:
            reply = (False, _portable(error))
        connection.send(reply)


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))


if __name__ == "__main__":
    die_with_parent()
    _serve(Connection(int(sys.argv[1])))
