"""What a sanitizer's tool finds is the verdict of a right program; a fake tool says what we want.

The fake runs the watched process as the real one does, on the emulator.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from suite.config import ConfigError, Requested, resolve
from suite.evaluation import Status
from suite.harness import sanitize
from suite.harness.evaluate import Evaluator, Settings
from tests.harness.samples import GOOD, body, verdict
from tests.suite.test_config import sources

FAKE = """#!/bin/sh
# compute-sanitizer --tool T --error-exitcode N --log-file F command…
tool=$2 code=$4 log=$6
shift 6
echo "$tool" >> {calls}
{mischief}
"$@"
ended=$?
echo "========= COMPUTE-SANITIZER" > "$log"
if [ "$tool" = "{finds}" ]; then
  echo "========= {says}" >> "$log"
  echo "=========     at k+0x50 in program.cu:7" >> "$log"
  echo "========= ERROR SUMMARY: 1 error" >> "$log"
  exit "$code"
fi
echo "========= ERROR SUMMARY: 0 errors" >> "$log"
exit $ended
"""


class Fake:
    """Makes sanitizers, and tells which tools were run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = folder / "calls"

    def make(self, finds: str = "", says: str = "", mischief: str = "") -> Path:
        self._calls.unlink(missing_ok=True)
        path = self._folder / sanitize.PROGRAM
        path.write_text(FAKE.format(calls=self._calls, finds=finds, says=says, mischief=mischief))
        path.chmod(0o755)
        return path

    @property
    def tools(self) -> list[str]:
        return self._calls.read_text().split() if self._calls.exists() else []


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


@pytest.fixture
def watched(cache: Path, fake: Fake) -> Iterator[Evaluator]:
    settings = Settings(cache=cache, run_s=3.0, sanitizer=fake.make(), sanitize_s=60.0)
    with Evaluator("emulator", settings) as evaluator:
        yield evaluator


def test_a_right_program_is_verified_under_every_tool(watched: Evaluator, fake: Fake) -> None:
    found = verdict(watched, GOOD)
    assert found.status is Status.OK, found.error
    assert fake.tools == ["memcheck", "racecheck", "initcheck", "synccheck"]
    assert found.detail == "memcheck, racecheck, initcheck, synccheck: nothing found"
    assert found.emulated_us is not None


def test_a_wrong_program_is_not_looked_at(watched: Evaluator, fake: Fake) -> None:
    assert verdict(watched, body("y[row] = 0;")).status is Status.WRONG_RESULT
    assert fake.tools == []


@pytest.mark.parametrize(
    ("tool", "says", "status"),
    [
        ("memcheck", "Invalid __global__ read of size 4 bytes", Status.MEMORY_FAULT),
        ("racecheck", "Error: Race reported between Write access", Status.WRONG_RESULT),
        pytest.param(
            *("initcheck", "Uninitialized __global__ memory read", Status.WRONG_RESULT),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("synccheck", "Barrier error detected. Divergent thread(s)", Status.WRONG_RESULT),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_a_tool_finds_is_the_verdict(
    watched: Evaluator, fake: Fake, tool: str, says: str, status: Status
) -> None:
    fake.make(finds=tool, says=says)
    found = verdict(watched, GOOD)
    assert (found.status, found.error) == (status, f"compute-sanitizer {tool}: {says}")
    assert fake.tools[-1] == tool  # the first that finds something is the last
    assert (found.emulated_us, found.detail) == (None, "")


def test_a_program_that_is_wrong_only_under_a_tool_is_wrong(
    watched: Evaluator, fake: Fake, tmp_path: Path
) -> None:
    answer = '{"status": "wrong_result", "error": "3 wrong elements"}'
    # Of the command, the answer's path is the last but one.
    fake.make(
        mischief=f"for last; do path=$next; next=$last; done; echo '{answer}' > $path; exit 0"
    )
    found = verdict(watched, GOOD)
    assert found.status is Status.WRONG_RESULT
    assert found.error == "under compute-sanitizer memcheck: 3 wrong elements"


@pytest.mark.parametrize(
    ("mischief", "says"),
    [
        ("echo 'no device' >&2; exit 3", "memcheck ended with 3: no device"),
        ("exit 86", "memcheck ended with 86: it said nothing"),
        pytest.param("exit 0", "memcheck ended with 0: it said nothing", marks=pytest.mark.slow),
    ],
)
def test_a_tool_that_cannot_do_its_work_is_nobodys_wrong_program(
    watched: Evaluator, fake: Fake, mischief: str, says: str
) -> None:
    fake.make(mischief=mischief)
    found = verdict(watched, GOOD)
    assert found.status is Status.INFRASTRUCTURE_ERROR
    assert says in found.error


def test_a_tool_that_hangs_is_ended(cache: Path, fake: Fake) -> None:
    sanitizer = fake.make(mischief="sleep 60")
    settings = Settings(cache=cache, run_s=3.0, sanitizer=sanitizer, sanitize_s=0.3)
    with Evaluator("emulator", settings) as evaluator:
        found = verdict(evaluator, GOOD)
    assert found.status is Status.INFRASTRUCTURE_ERROR
    assert "memcheck did not end within 0.3 s" in found.error


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("", ""),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", ""),
        (
            "printed by the program\n========= \n========= Invalid read\n=========     at k\n",
            "Invalid read",
        ),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", ""),
    ],
)
def test_the_first_line_that_says_something_is_told(log: str, first: str) -> None:
    assert sanitize.first_line(log) == first


def test_a_host_without_the_tools_says_so_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sanitize.SanitizerUnavailable, match="not on PATH; install the CUDA"):
        sanitize.find(folders=())
    with pytest.raises(ConfigError, match="--suite-sanitize: its tools need an NVIDIA GPU"):
        resolve(Requested(sanitize="on", device="emulator"), sources())
    bare = replace(sources("cuda"), sanitizer=lambda: sanitize.find(folders=()))
    with pytest.raises(ConfigError, match="--suite-sanitize: compute-sanitizer is not on PATH"):
        resolve(Requested(sanitize="on"), bare)


def test_a_sanitizer_is_found_on_path_and_where_the_toolkit_is(
    monkeypatch: pytest.MonkeyPatch, fake: Fake, tmp_path: Path
) -> None:
    path = fake.make()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sanitize.find(folders=()) == path
    assert resolve(Requested(sanitize="on"), sources("cuda")).sanitizer == path
    monkeypatch.setenv("PATH", "/nowhere")
    assert sanitize.find(folders=(tmp_path,)) == path


def test_unasked_nothing_is_sanitized() -> None:
    assert resolve(Requested(), sources()).sanitizer is None


def test_what_a_tool_watches_ends_in_time_also_when_nobody_ends_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "request")  # it waits for what nobody sends
    command = [sys.executable, "-m", "suite.harness.sanitized"]
    told = [str(tmp_path / "request"), str(tmp_path / "answer"), "1"]
    assert subprocess.run([*command, *told], timeout=30).returncode == -signal.SIGALRM
