"""What a campaign was asked to do: made once from pytest's options, and complete.

Every mistake is collected and reported together before anything expensive starts. Nothing reads an
option later. Left out on purpose: where results are tracked is ``MLFLOW_TRACKING_URI``'s business
(see ``tracking``).
"""

from __future__ import annotations

import difflib
import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from suite.author import Author, Kind
from suite.harness.sanitize import SanitizerUnavailable
from suite.harness.sanitize import find as find_sanitizer
from suite.matrices.base import MatrixError, MatrixSpec
from suite.metrics import BEST, REFERENCES
from suite.problem import DType, Op

DeviceKind = Literal["cuda", "emulator"]

COLUMNS = "32,128"  # everywhere, also where most of the emulator's time goes into them
MAX_COLUMNS = 65536
RESERVED = (BEST, *REFERENCES)  # the suite's own authors


class ConfigError(ValueError):
    """One or several mistakes in what was asked, one a line."""


@dataclass(frozen=True)
class Requested:
    """The options as a person typed them; None where left out.

    Attributes:
        matrices: A set, families, globs or paths, comma-separated.
        ops: ``spmv``, ``spmm`` or both.
        authors: Names, globs or paths of ``.cu`` files.
        device: ``auto``, ``cuda`` or ``emulator``.
        columns: Dense columns for SpMM.
        samples: Programs asked of each author for each problem.
        dtype: ``float32`` or ``float64``.
        tracking: ``on`` or ``off``.
        sanitize: ``on`` where it was asked for.
        folder: Where the journals of campaigns are.
    """

    matrices: str | None = None
    ops: str | None = None
    authors: str | None = None
    device: str | None = None
    columns: str | None = None
    samples: str | None = None
    dtype: str | None = None
    tracking: str | None = None
    sanitize: str | None = None
    folder: str | None = None


@dataclass(frozen=True)
class SuiteConfig:
    """A campaign, decided.

    Attributes:
        matrices: What is multiplied, in order.
        ops: Operations.
        authors: Who is compared; library authors first, so that their times are known early.
        device: Where it runs; ``auto`` where that was left to the evaluator.
        columns: Dense columns for SpMM.
        samples: Programs asked of each author for each problem.
        dtype: Precision.
        tracking: Whether results go to MLflow.
        folder: Where the journals of campaigns are.
        sanitizer: What repeats each verification of a right program; None where nothing does.
    """

    matrices: tuple[MatrixSpec, ...]
    ops: tuple[Op, ...]
    authors: tuple[Author, ...]
    device: Literal["auto", "cuda", "emulator"]
    columns: tuple[int, ...]
    samples: int
    dtype: DType
    tracking: bool
    folder: Path
    sanitizer: Path | None = None


@dataclass(frozen=True)
class Sources:
    """Where names are looked up.

    Attributes:
        select: Matrices from a text; raises ``MatrixError``.
        authors: Everyone who can be compared on a device.
        from_path: An author from a ``.cu`` file; raises ``ValueError`` or ``OSError``.
        detect: The device that ``auto`` probably stands for.
        sanitizer: The sanitizer of this host; raises ``SanitizerUnavailable``.
    """

    select: Callable[[str], Sequence[MatrixSpec]]
    authors: Callable[[DeviceKind], Sequence[Author]]
    from_path: Callable[[Path], Author]
    detect: Callable[[], DeviceKind]
    sanitizer: Callable[[], Path] = find_sanitizer


def resolve(requested: Requested, sources: Sources) -> SuiteConfig:
    """Decides everything, or says everything that is wrong.

    Raises:
        ConfigError: With all the mistakes, one a line, each naming its option.
    """
    check = _Mistakes()
    given = {name: text for name, text in asdict(requested).items() if text is not None}
    empty = [name for name, text in given.items() if not text.strip()]
    check.found += [f"--suite-{name}: is empty; give a value or leave it out" for name in empty]
    requested = replace(requested, **dict.fromkeys(empty))
    device = check(_device, requested.device or "auto", sources)
    ops = check(_ops, requested.ops or "spmv,spmm") or tuple(Op)
    dtype = check(_choice, "--suite-dtype", requested.dtype or "float32", [d.value for d in DType])
    samples = check(_integer, "--suite-samples", requested.samples or "1", 1, 10_000)
    columns = check(_columns, requested.columns or COLUMNS)
    tracking = check(_choice, "--suite-tracking", requested.tracking or "on", ["on", "off"])
    sanitizer = check(_sanitizer, requested.sanitize, device, sources)
    matrices = check(_matrices, requested.matrices or "smoke", sources)
    authors = check(_authors, requested.authors or "", device or "emulator", ops, sources)
    if check.found:
        raise ConfigError("\n".join(check.found))
    return SuiteConfig(
        matrices=cast("tuple[MatrixSpec, ...]", matrices),
        ops=ops,
        authors=cast("tuple[Author, ...]", authors),
        device=cast("Any", requested.device or "auto"),
        columns=cast("tuple[int, ...]", columns),
        samples=cast("int", samples),
        dtype=DType(dtype),
        tracking=tracking == "on",
        sanitizer=sanitizer,
        folder=folder_of(requested),
    )


def folder_of(requested: Requested) -> Path:
    """Where the journals of campaigns are."""
    return Path(requested.folder or ".suite").absolute()


def detect_device() -> DeviceKind:
    """``cuda`` where an NVIDIA driver shows a device, ``emulator`` elsewhere."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "emulator"
    shown = any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/dxg"))
    return "cuda" if shown else "emulator"


class _Mistakes:
    """Calls a check and keeps its mistake, so that the next check runs all the same."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __call__(self, check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except ConfigError as error:
            self.found += str(error).splitlines()
            return None


def _words(option: str, text: str) -> list[str]:
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise ConfigError(f"{option}: nothing given")
    return words


def _choice(option: str, text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise ConfigError(f"{option}: {text!r} is none of {', '.join(known)}")
    return text


def _integer(option: str, text: str, least: int, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is not an integer") from None
    if not least <= number <= most:
        raise ConfigError(f"{option}: {number} is not between {least} and {most}")
    return number


def _device(text: str, sources: Sources) -> DeviceKind:
    _choice("--suite-device", text, ["auto", "cuda", "emulator"])
    return sources.detect() if text == "auto" else cast("DeviceKind", text)


def _sanitizer(asked: str | None, device: DeviceKind | None, sources: Sources) -> Path | None:
    if not asked:
        return None
    if device == "emulator":
        raise ConfigError("--suite-sanitize: its tools need an NVIDIA GPU; leave it out")
    try:
        return sources.sanitizer()
    except SanitizerUnavailable as error:
        raise ConfigError(f"--suite-sanitize: {error}") from error


def _ops(text: str) -> tuple[Op, ...]:
    known = [op.value for op in Op]
    return tuple(Op(_choice("--suite-ops", word, known)) for word in _words("--suite-ops", text))


def _columns(text: str) -> tuple[int, ...]:
    words = _words("--suite-columns", text)
    return tuple(_integer("--suite-columns", word, 0, MAX_COLUMNS) for word in words)


def _matrices(text: str, sources: Sources) -> tuple[MatrixSpec, ...]:
    try:
        specs = tuple(sources.select(text))
    except MatrixError as error:
        lines = [f"--suite-matrices: {line}" for line in str(error).splitlines()]
        raise ConfigError("\n".join(lines)) from error
    if not specs:
        raise ConfigError(f"--suite-matrices: {text!r} selects no matrix")
    names = [spec.name for spec in specs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            f"--suite-matrices: {', '.join(twice)} selected twice; rename one of the files"
        )
    return specs


def _authors(
    text: str, device: DeviceKind, ops: Sequence[Op], sources: Sources
) -> tuple[Author, ...]:
    offered = sources.authors(device)
    known = {author.name: author for author in offered}
    chosen: dict[str, Author] = {}
    files: dict[str, Path] = {}
    counts = Counter(author.name for author in offered)
    wrong = [f"{counts[n]} authors are called {n}; rename one" for n in counts if counts[n] > 1]
    for word in _words("--suite-authors", text) if text else ["*"]:
        if word.endswith(".cu"):
            for path in _program_paths(word):
                try:
                    author = sources.from_path(path)
                except (OSError, ValueError) as error:
                    wrong.append(_unreadable(path, error))
                    continue
                first = files.setdefault(author.name, path)
                if author.name in RESERVED:
                    wrong.append(f"{path}: {author.name} is the suite's own name; rename the file")
                elif author.name in known:
                    wrong.append(f"{path}: the name {author.name} is taken; rename the file")
                elif first.resolve() != path.resolve():
                    wrong.append(f"{first} and {path} are both called {author.name}; rename one")
                chosen[author.name] = author
            continue
        names = fnmatch.filter(known, word)
        if not names:
            wrong.append(_unknown_author(word, list(known), device))
        chosen.update((name, known[name]) for name in names)
    if not wrong and not any(author.answers(op) for author in chosen.values() for op in ops):
        wrong.append(f"no author in {text or '*'!r} answers {', '.join(ops)}")
    if wrong:
        raise ConfigError("\n".join(f"--suite-authors: {reason}" for reason in wrong))
    return tuple(sorted(chosen.values(), key=lambda author: author.kind is not Kind.LIBRARY))


def _program_paths(word: str) -> list[Path]:
    """The files that a path or a pattern for paths stands for; itself where it matches none."""
    path = Path(word).expanduser()
    if path.exists():
        return [path]
    return [Path(match) for match in sorted(glob.glob(str(path)))] or [path]


def _unreadable(path: Path, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason if str(path) in reason else f"{path}: {reason}"


def _unknown_author(word: str, known: list[str], device: DeviceKind) -> str:
    if device != "cuda" and fnmatch.filter(REFERENCES, word):
        return f"{word} runs on a GPU only, and the device is the {device}"
    close = difflib.get_close_matches(word, known, 4, 0.5)
    hint = (
        f"did you mean {', '.join(close)}? The" if close else f"known are {', '.join(known)}; the"
    )
    return f"no author is called {word!r}; {hint} path of a program ends in .cu"
