"""Repeats a verification under the tools of NVIDIA's ``compute-sanitizer``.

They see what a right answer hides: an access that stays within mapped memory, a race that nobody
lost, a read of what nobody wrote. Each tool runs a fresh process (``sanitized``), many times slower
than the judge itself, so this is done on request only and to programs that are right.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suite.evaluation import Status
from suite.formats.base import Format
from suite.harness.device import Compiled
from suite.harness.plan import Plan
from suite.harness.processes import environment
from suite.harness.resident import ProblemRef

PROGRAM = "compute-sanitizer"
# What an error that a tool finds says about the program.
TOOLS: Mapping[str, Status] = {
    "memcheck": Status.MEMORY_FAULT,
    "racecheck": Status.WRONG_RESULT,
    "initcheck": Status.WRONG_RESULT,
    "synccheck": Status.WRONG_RESULT,
}
_FOUND = 86  # exit code that a tool is asked for where it has found an error
_MARK = "========="  # begins every line of a tool's own
_HEADINGS = (PROGRAM.upper(), "SUMMARY")
_USUAL_PLACES = (Path("/usr/local/cuda/bin"),)


class SanitizerUnavailable(RuntimeError):
    """There is no sanitizer on this host; the message says what to do."""


class SanitizerFailed(RuntimeError):
    """A tool could not do its work; nothing is known about the program."""


@dataclass(frozen=True)
class Request:
    """A program to verify, as it travels to the process that a tool watches.

    Attributes:
        service: What makes the bench: a function of ``suite.harness.services``.
        arguments: Its keyword arguments.
        ref: The problem.
        format: What the program reads.
        plan: What it does.
        compiled: The program.
    """

    service: str
    arguments: Mapping[str, object]
    ref: ProblemRef
    format: Format
    plan: Plan
    compiled: Compiled


@dataclass(frozen=True)
class Finding:
    """What a tool found; ``status`` is the program's verdict."""

    tool: str
    status: Status
    message: str


def find(folders: tuple[Path, ...] = _USUAL_PLACES) -> Path:
    """The sanitizer of this host, on PATH or where the toolkit is installed.

    Raises:
        SanitizerUnavailable: There is none.
    """
    found = shutil.which(PROGRAM)
    for folder in folders:
        found = found or shutil.which(PROGRAM, path=str(folder))
    if found is None:
        raise SanitizerUnavailable(
            f"{PROGRAM} is not on PATH; install the CUDA toolkit, or leave the sanitizer out"
        )
    return Path(found)


def examine(sanitizer: Path, request: Request, seconds: float) -> Finding | None:
    """Verifies a program under each tool in turn, until one finds something.

    Args:
        sanitizer: The program.
        request: What to verify.
        seconds: Time for each tool.

    Raises:
        SanitizerFailed: A tool did not end in time or ended in an unknown way.
    """
    for tool in TOOLS:
        with tempfile.TemporaryDirectory(prefix="sanitizer-") as folder:
            finding = _run(sanitizer, tool, request, Path(folder), seconds)
        if finding is not None:
            return finding
    return None


def first_line(log: str) -> str:
    """The first thing that a tool's log says about the program; empty where it says nothing."""
    for line in log.splitlines():
        mark, said = line[: len(_MARK)], line.removeprefix(_MARK).strip()
        if mark == _MARK and said and not any(word in said for word in _HEADINGS):
            return said
    return ""


def _run(
    sanitizer: Path, tool: str, request: Request, folder: Path, seconds: float
) -> Finding | None:
    asked, log, answer = folder / "request", folder / "log", folder / "answer"
    asked.write_bytes(pickle.dumps(request))
    options = ["--tool", tool, "--error-exitcode", str(_FOUND), "--log-file", str(log)]
    limit = str(math.ceil(seconds))
    watched = [sys.executable, "-m", "suite.harness.sanitized", str(asked), str(answer), limit]
    modules = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    process = subprocess.Popen(
        [str(sanitizer), *options, *watched],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**environment(), "PYTHONPATH": modules, "TMPDIR": str(folder)},
    )
    try:
        said = process.communicate(timeout=seconds)[1].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        raise SanitizerFailed(f"{tool} did not end within {seconds:g} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    error = first_line(log.read_text(errors="replace")) if log.exists() else ""
    if process.returncode == _FOUND and error:
        return Finding(tool, TOOLS[tool], f"{PROGRAM} {tool}: {error}")
    if process.returncode or not answer.exists():
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        why = f"{error}; {last}" if error else last
        raise SanitizerFailed(f"{tool} ended with {process.returncode}: {why}")
    verdict = json.loads(answer.read_text())
    if verdict["status"] != Status.OK:  # a race that is lost at another speed
        status = Status(verdict["status"])
        return Finding(tool, status, f"under {PROGRAM} {tool}: {verdict['error']}")
    return None
