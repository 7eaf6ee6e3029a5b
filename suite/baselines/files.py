"""Programs that lie in files: the baselines that ship with the project, and anybody's own.

A baseline is a ``.cu`` file in ``suite/baselines/spmv`` or ``spmm``; the same stem in both folders
is one author that answers both operations. A ``//! choose NAME INTEGER ...`` line makes the file
stand for one program, and one author, for each value: ``csr_vector.cu`` with
``//! choose LANES 2 4`` gives ``csr_vector-lanes2`` and ``csr_vector-lanes4``. The line then reads
``//! let NAME VALUE``, and a format parameter that names it (``bsr b=EDGE``) reads as the number; a
device format's parameter of the same name (``ell4 BITS=BITS``) makes the ``let`` needless.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.author import Kind
from suite.problem import Op, Problem
from suite.program import KernelProgram

BASELINES = Path(__file__).parent

_AUTHOR_NAME = re.compile(r"[A-Za-z0-9_.-]+")


class AuthorFileError(ValueError):
    """A program file that cannot be an author; the message names the file and says what to do."""


@dataclass(frozen=True)
class FileAuthor:
    """An author whose one program for each operation was read from a file.

    Attributes:
        name: File stem, with the chosen values appended.
        kind: ``BASELINE`` or ``FILE``.
        texts: Program text by operation (``spmv``, ``spmm``).
    """

    name: str
    kind: Kind
    texts: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Hex digest of the texts."""
        whole = repr(sorted(self.texts.items())).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(whole, digest_size=8).hexdigest()

    def answers(self, op: str) -> bool:
        """Whether there is a file for the operation."""
        return op in self.texts

    def write(self, problem: Problem, samples: int) -> Sequence[KernelProgram]:
        """The file's program, once; none where ``samples`` is 0.

        Raises:
            ValueError: The author does not answer this operation.
        """
        if not self.answers(problem.op):
            known = ", ".join(self.texts)
            raise ValueError(f"{self.name} has no program for {problem.op}; it has {known}")
        return [KernelProgram(self.name, self.texts[problem.op])][:samples]


def baselines(folder: Path = BASELINES) -> list[FileAuthor]:
    """Every baseline below ``folder``, by name.

    Raises:
        AuthorFileError: A file cannot be read, states another operation than its folder, or has a
            malformed ``choose`` line.
    """
    texts: dict[str, dict[str, str]] = {}
    for op in Op:
        for path in sorted((folder / op).glob("*.cu")):
            text = _read(path)
            if _op_of(text, path) is not op:
                raise AuthorFileError(f"{path}: lies in {op}/ but says //! op {_op_of(text, path)}")
            for suffix, program in _expand(text, path):
                texts.setdefault(_name(path) + suffix, {})[op.value] = program
    return [FileAuthor(name, Kind.BASELINE, by_op) for name, by_op in sorted(texts.items())]


def from_path(path: Path) -> FileAuthor:
    """Somebody's own program as an author, named after the file.

    Raises:
        AuthorFileError: The file cannot be read, is not text, or does not say its operation.
    """
    text = _read(path)
    return FileAuthor(_name(path), Kind.FILE, {_op_of(text, path).value: text})


def _read(path: Path) -> str:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise AuthorFileError(f"{path}: is a device or a pipe; give a .cu file")
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise AuthorFileError(
            f"{path}: cannot be read ({error.strerror}); give a .cu file"
        ) from error
    except UnicodeDecodeError as error:
        raise AuthorFileError(
            f"{path}: byte {error.start} is not UTF-8; give CUDA source as text"
        ) from error
    if "\0" in text:
        raise AuthorFileError(f"{path}: holds NUL bytes; give CUDA source as text")
    return text


def _name(path: Path) -> str:
    if not _AUTHOR_NAME.fullmatch(path.stem):
        raise AuthorFileError(
            f"{path}: an author's name has letters, digits, '_', '-' and '.' only; rename the file"
        )
    return path.stem


def _header(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line index and words of each ``//!`` line, the marker left out."""
    for at, line in enumerate(text.split("\n")):
        statement = line.strip().removeprefix("\ufeff").lstrip()
        if statement.startswith("//!"):
            yield at, statement[3:].split()


def _op_of(text: str, path: Path) -> Op:
    for at, words in _header(text):
        if words[:1] == ["op"]:
            if len(words) == 2 and words[1] in list(Op):
                return Op(words[1])
            raise AuthorFileError(f"{path}:{at + 1}: write //! op spmv or //! op spmm")
    raise AuthorFileError(f"{path}: no //! op line; add //! op spmv or //! op spmm on top")


@dataclass(frozen=True)
class _Choice:
    at: int
    name: str
    values: tuple[int, ...]


def _expand(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """The name's suffix and the text of every program that a file stands for."""
    choices = [_choice(words, at, path) for at, words in _header(text) if words[:1] == ["choose"]]
    for choice, other in itertools.combinations(choices, 2):
        if choice.name == other.name:
            raise AuthorFileError(
                f"{path}:{other.at + 1}: {other.name} is chosen twice; drop one line"
            )
    for values in itertools.product(*(choice.values for choice in choices)):
        chosen = {choice.name: value for choice, value in zip(choices, values, strict=True)}
        suffix = "".join(f"-{name.lower()}{value}" for name, value in chosen.items())
        yield suffix, _substitute(text, {c.at: c.name for c in choices}, chosen)


def _choice(words: list[str], at: int, path: Path) -> _Choice:
    match words:
        case [_, name, *values] if (
            re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
            and values
            and len(set(values)) == len(values)
            and all(re.fullmatch(r"0|[1-9][0-9]*", value, re.ASCII) for value in values)
        ):
            return _Choice(at, name, tuple(map(int, values)))
    raise AuthorFileError(
        f"{path}:{at + 1}: //! {' '.join(words)}: write //! choose NAME INTEGER INTEGER ...,"
        " each value once"
    )


def _substitute(text: str, choose_lines: Mapping[int, str], chosen: Mapping[str, int]) -> str:
    """The text with its ``choose`` lines decided; line numbers stay right."""
    lines = text.split("\n")
    for at, name in choose_lines.items():
        lines[at] = f"//! let {name} {chosen[name]}"
    for at, words in _header(text):
        if words[:1] == ["format"]:
            settled = [_settled(word, chosen) for word in words]
            lines[at] = f"//! {' '.join(settled)}"
            for choice, name in choose_lines.items():
                if f"{name}={name}" in words:  # the format has it as a constant already
                    lines[choice] = "//"
    return "\n".join(lines)


def _settled(word: str, chosen: Mapping[str, int]) -> str:
    parameter, equals, value = word.partition("=")
    return f"{parameter}={chosen[value]}" if equals and value in chosen else word
