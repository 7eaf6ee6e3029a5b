"""What makes a number reproducible: who ran what, where, with which versions."""

from __future__ import annotations

import dataclasses
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from suite.harness.device import DeviceFacts

PACKAGES = (
    "sparserl-bench",
    "numpy",
    "scipy",
    "pandas",
    "pyamg",
    "scikit-fem",
    "networkx",
    "cuda-core",
    "nvidia-cuda-nvrtc",
    "pycuda",
    "nvmath-python",
    "nvidia-cusparse",
    "torch",
    "transformers",
    "peft",
    "pytest",
    "pytest-benchmark",
    "mlflow",
    "mlflow-skinny",
)


@dataclass(frozen=True)
class Process:
    """A process, told apart from every other one.

    Attributes:
        host: Host name, with the namespace that process ids count in.
        identity: Process id, boot and start time: a reused id differs.
    """

    host: str
    identity: str

    @property
    def alive(self) -> bool | None:
        """Whether it still runs; None where that cannot be told from here."""
        if self.host != _host():
            return None
        pid = self.identity.partition(":")[0]
        return pid.isdigit() and _identity(int(pid)) == self.identity


def this_process() -> Process:
    """The process that asks."""
    return Process(_host(), _identity(os.getpid()))


def _host() -> str:
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def _identity(pid: int) -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "" if Path("/proc/self").exists() else f"{pid}:"
    fields = stat.rpartition(")")[2].split()  # the name before may hold blanks
    if fields[0] in "ZX":
        return ""
    return f"{pid}:{boot}:{fields[19]}"


@dataclass(frozen=True)
class Commit:
    """State of the sources: commit id (``unknown`` outside a repository), uncommitted changes."""

    id: str
    dirty: bool | None


def commit() -> Commit:
    """The commit of the sources that run.

    Outside a repository, as where only the files were copied to, it is what ``GIT_COMMIT`` says.
    """
    folder = Path(__file__).parent
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return Commit(os.environ.get("GIT_COMMIT") or "unknown", None)
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Commit(head, None if changes is None else bool(changes))


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def packages() -> dict[str, str]:
    """Versions of what is installed of ``PACKAGES``."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def facts(device: DeviceFacts, options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything to go on record about a campaign that starts now, as plain values."""
    source, process = commit(), this_process()
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": ["pytest", *sys.argv[1:]],
        "commit": source.id,
        "dirty": source.dirty,
        "host": process.host,
        "process": process.identity,
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "packages": packages(),
        "device": {**dataclasses.asdict(device), "details": dict(device.details)},
        "options": dict(options),
    }
