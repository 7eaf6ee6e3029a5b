"""Gets the pinned archives with the registries' ordinary clients, without running their code.

``pip download`` of a source archive would run its build, so ``unearth`` (a resolver that only
downloads) is asked, at the index that pip is configured for. Debian's packages come through
``apt-get`` with lists of its own, so that the host's configuration is neither needed nor touched.
Every archive must have the digest of the table. What is there already is not fetched again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from suite.models.manifest import digest as sha256
from training.corpus.sources import Source
from training.errors import TrainingError

LIMIT_S = 900
_WHEELS_FOR = ("--py", "3.11", "--impl", "cp")  # the wheels that the digests are of


def fetch(source: Source, folder: Path) -> Path:
    """The archive of a package, downloaded to ``folder`` unless it is there.

    Raises:
        TrainingError: It cannot be had, or is not the archive that the table means.
    """
    place = folder / f"{source.name}-{source.version}"
    archive = _present(place)
    if archive is not None and (not source.sha256 or sha256(archive) == source.sha256):
        return archive
    shutil.rmtree(place, ignore_errors=True)
    draft = place.with_name(f".{place.name}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    if source.debian:
        _apt(source, draft, folder / ".apt")
    else:
        _unearth(source, draft)
    archive = _present(draft)
    if archive is None:
        raise TrainingError(f"{source}: the client fetched nothing; is this version still served?")
    found = sha256(archive)
    if source.sha256 and found != source.sha256:
        raise TrainingError(
            f"{source}: {archive.name} has SHA-256 {found}, sources.csv says {source.sha256};"
            " the registry serves another file, check it before changing the table"
        )
    draft.rename(place)
    return place / archive.name


def _present(place: Path) -> Path | None:
    files = sorted(p for p in place.glob("*") if p.suffix != ".dsc") if place.is_dir() else []
    return files[0] if files else None


def _unearth(source: Source, folder: Path) -> None:
    if find_spec("unearth") is None:
        raise TrainingError("unearth is not installed: pip install -e '.[train]'")
    form = ("--only-binary", *_WHEELS_FOR) if source.kind == "pypi-wheel" else ("--no-binary",)
    requirement = f"{source.name}=={source.version}"
    command = [sys.executable, "-m", "unearth", *form, *_index(), "--download", str(folder)]
    _run(source, [*command, requirement], folder)


def _index() -> list[str]:
    """Where pip would look: its index and extra indexes; nothing when none is configured."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    urls: list[str] = []
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        if re.search(r"\.index-url$", key):
            urls += shlex.split(value)
    return [word for url in urls for word in ("--index-url", url)]


def _apt(source: Source, folder: Path, state: Path) -> None:
    if shutil.which("apt-get") is None:
        raise TrainingError(f"{source}: needs apt-get; leave Debian out with --registries pypi")
    options = _apt_options(source, state)
    pinned = f"{source.name}={source.version}"
    what = (
        ["source", "--download-only", "--tar-only", pinned]
        if source.kind == "debian-source"
        else ["download", pinned]
    )
    _run(source, ["apt-get", "-q", *options, *what], folder)


def _apt_options(source: Source, state: Path) -> list[str]:
    root = state / source.suite
    options = [
        f"-o{key}={value}"
        for key, value in {
            "Dir::State": root,
            "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache",
            "Dir::Etc::sourcelist": root / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
        }.items()
    ]
    if not (root / "ready").exists():
        shutil.rmtree(root, ignore_errors=True)
        for part in ("lists/partial", "cache/archives/partial"):
            (root / part).mkdir(parents=True)
        (root / "status").touch()
        mirror = _mirror(source)
        key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
        lines = [
            f"{t} {key} {mirror} {source.suite} main contrib non-free\n" for t in ("deb", "deb-src")
        ]
        (root / "sources.list").write_text("".join(lines), encoding="utf-8")
        _run(source, ["apt-get", "-q", *options, "update"], root)
        (root / "ready").touch()
    return options


def _mirror(source: Source) -> str:
    """The Debian mirror that this host is configured for."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(COMPONENT)|$(CREATED_BY)|$(LABEL)"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        uri, component, made, label = line.split("|")
        if (component, made, label) == ("main", "Packages", "Debian"):
            return uri
    raise TrainingError(
        f"{source}: apt knows no Debian mirror here; run apt-get update on a Debian host,"
        " or leave Debian out with --registries pypi"
    )


def _run(source: Source, command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise TrainingError(
            f"{source}: no archive within {LIMIT_S} s; the same command goes on"
        ) from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        client = "apt-get" if source.debian else "unearth"
        raise TrainingError(f"{source}: {client} ended with {done.returncode}: {lines[-1]}")
