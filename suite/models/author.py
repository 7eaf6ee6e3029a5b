"""A trained variant as an author: reads the problem's matrix and writes programs for it.

Importing this loads neither torch nor weights; the first text that has to be written does. Weights
are held to their digests before anything is measured.

A step for many programs costs little more than one for a few. So what is known to be asked soon is
written along: on a GPU what else is asked of the matrix, on the CPU what is asked of the next ones
too, and that begins at once, in the background. A program is the same either way. Texts that were
written on the CPU are kept on disk.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.author import Coming, Kind
from suite.config import ConfigError, detect_device
from suite.harness.compile import Target
from suite.harness.lock import gpu_lock
from suite.harness.settings import Settings
from suite.matrices.base import Matrix
from suite.models import manifest
from suite.models.errors import ModelError
from suite.models.manifest import Manifest
from suite.models.prompt import Encoding, Parts, PromptStyle, told
from suite.models.texts import Text, Texts, key
from suite.models.variants import BASE, Variant, lacking, trained, weights
from suite.problem import Op, Problem
from suite.program import KernelProgram

if TYPE_CHECKING:
    from suite.models.generate import Generator
    from suite.models.policy import Policy

TEMPERATURE = 0.8  # for several samples; a single one is the likeliest program
LIMIT = 1024  # tokens
ROWS = {"cuda": 64, "cpu": 8}  # of a batch of samples
LIKELIEST = {"cuda": 4, "cpu": 36}  # where a single program is asked for
_LOADING = threading.Lock()  # transformers loads one model at a time


@dataclass(frozen=True)
class Reading:
    """How a variant reads a matrix, and which weights it has; known without loading them.

    Attributes:
        style: What it was trained to read.
        weights: Digests of everything that it is loaded from.
    """

    style: PromptStyle
    weights: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Wanted:
    """A text to be written: one sample for a prompt.

    Attributes:
        key: Tells it from all others.
        parts: Of the prompt.
        sample: Which one.
        drawn: Whether it is one of several; a single one is the likeliest.
    """

    key: str
    parts: Parts
    sample: int
    drawn: bool


@dataclass(frozen=True)
class Place:
    """Where a model runs and what it writes for.

    Attributes:
        device: ``cpu`` or ``cuda``.
        arch: The architecture that programs are compiled for.
        bus_id: Address of the GPU, None on the CPU.
    """

    device: str = "cpu"
    arch: str = Target().arch
    bus_id: str | None = None

    def lock(self) -> AbstractContextManager[object]:
        """Held while generating: it would disturb who measures."""
        return gpu_lock(self.bus_id)


def here() -> Place:
    """The GPU that torch sees; the CPU where there is none or it sees none."""
    from suite.harness.compile import architecture, supported_architectures

    if detect_device() != "cuda":
        return Place()
    import torch

    if not torch.cuda.is_available():
        return Place()
    facts: Any = torch.cuda.get_device_properties(0)
    arch = architecture(10 * facts.major + facts.minor, supported_architectures())
    bus = f"{facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}.0"
    return Place("cuda", arch, bus)


class ModelAuthor:
    """A variant.

    Attributes:
        name: The variant's.
        kind: ``MODEL``.

    Args:
        name: The variant's.
        load: Loads the policy for a device; called for the first text.
        reading: What can be known of it before.
        place: Says where to run; called for the first problem.
        texts: Where texts that the CPU has written are kept; None for nowhere.
        seed: Of all samples.
        limit: Tokens of a program, at most.
    """

    kind = Kind.MODEL

    def __init__(
        self,
        name: str,
        load: Callable[[str], Policy],
        reading: Reading,
        place: Callable[[], Place] = here,
        texts: Texts | None = None,
        seed: int = 0,
        limit: int = LIMIT,
    ) -> None:
        self.name = name
        self._load, self._reading, self._find_place, self._texts = load, reading, place, texts
        self._seed, self._limit = seed, limit
        self._generators: dict[bool, Generator] = {}
        self._coming: list[Coming] = []
        self._written: dict[str, Text] = {}  # ahead of being asked for
        self._alone = True
        self._writing = threading.Lock()
        self._ending = threading.Event()

    @property
    def fingerprint(self) -> str:
        """Changes with the weights."""
        return key(self._reading.weights)

    def answers(self, op: str) -> bool:
        """Both operations."""
        return op in list(Op)

    def foresee(self, coming: Sequence[Coming], alone: bool = True) -> None:
        """See ``Foresees``; on the CPU, the first batch is begun."""
        self._coming, self._alone = list(coming), alone
        if self._across:
            writer = threading.Thread(target=self._begin, daemon=True)
            atexit.register(self._end, writer)  # a thread inside torch must not outlive Python
            writer.start()

    def write(self, problem: Problem, samples: int) -> Sequence[KernelProgram]:
        """Samples programs; a single one is the likeliest. The same seed writes the same."""
        wanted = self._wanted(problem, samples)
        with self._writing:
            self._coming = [one for one in self._coming if not _same(one, problem)]
            lacking = [one for one in wanted if self._known(one) is None]
            if lacking:
                room = self._rows(samples > 1) - len(lacking)
                self._write(lacking + self._next(room, samples, problem.matrix))
            found = [self._written.pop(one.key) for one in wanted]
        return [self._program(text, at) for at, text in enumerate(found)]

    def _begin(self) -> None:
        """Writes the first batch of what is coming."""
        with self._writing, suppress(Exception):  # said when it is asked for
            if self._coming:
                samples = self._coming[0].samples
                self._write(self._next(self._rows(samples > 1), samples))

    def _end(self, writer: threading.Thread) -> None:
        self._ending.set()
        writer.join()

    @property
    def _across(self) -> bool:
        """Whether one batch is for several matrices: on a GPU they may be large."""
        return self._alone and self._place.device == "cpu"

    def _next(self, room: int, samples: int, matrix: Matrix | None = None) -> list[_Wanted]:
        """What is asked next and not written yet, as far as there is room for it.

        Args:
            room: Texts, at most.
            samples: Asked of each problem.
            matrix: One that is built.
        """
        name = matrix.name if matrix else None
        likely = [c for c in self._coming if c.samples == samples]
        if not self._across:
            likely = [c for c in likely if c.matrix.name == name]
        found: list[_Wanted] = []
        for coming in likely[: max(room, 0) // samples]:
            if matrix is None or matrix.name != coming.matrix.name:
                try:
                    matrix = coming.matrix.build()
                except Exception:  # a source may fail in any way: said when it is asked for
                    continue
            problem = Problem(coming.op, matrix, coming.columns, coming.dtype)
            found += [one for one in self._wanted(problem, samples) if self._known(one) is None]
        return found

    def _wanted(self, problem: Problem, samples: int) -> list[_Wanted]:
        parts = told(problem, self._place.arch, self._reading.style)
        choice = (TEMPERATURE, self._seed) if samples > 1 else ()
        same = (self.name, self._reading.weights, self._limit, parts, choice)
        return [_Wanted(key(*same, at), parts, at, samples > 1) for at in range(samples)]

    def _known(self, wanted: _Wanted) -> Text | None:
        if wanted.key not in self._written and self._keeps is not None:
            kept = self._keeps.get(wanted.key)
            if kept is not None:
                self._written[wanted.key] = kept
        return self._written.get(wanted.key)

    def _write(self, wanted: Sequence[_Wanted]) -> None:
        if not wanted:
            return
        from suite.models.generate import Outcome, Request, seed_of

        policy = self._policy
        requests = []
        for one in wanted:
            ids = tuple(policy.assemble(one.parts))
            requests.append(Request(ids, seed_of(ids, one.sample, self._seed)))
        generator = self._generator(wanted[0].drawn)
        with self._place.lock():
            completions = generator.generate(requests, self._ending.is_set)
        for one, completion in zip(wanted, completions, strict=True):
            text = Text(policy.decode(completion.tokens), completion.outcome is Outcome.ENDED)
            self._written[one.key] = text
            if self._keeps is not None:
                self._keeps.put(one.key, text)
        if self._place.device == "cpu":
            self._generators.clear()  # of large batches: made anew in no time

    @property
    def _keeps(self) -> Texts | None:
        return self._texts if self._place.device == "cpu" else None

    def _program(self, text: Text, sample: int) -> KernelProgram:
        cut = not text.ended
        unfinished = f"the model came to no end within {self._limit} tokens" if cut else ""
        return KernelProgram(self.name, text.text, sample, unfinished)

    @cached_property
    def _place(self) -> Place:
        return self._find_place()

    @cached_property
    def _policy(self) -> Policy:
        import torch

        if self._place.device == "cpu":
            # Threads that wait for each other at every small product lose more than they gain
            # where the next matrix is built and programs are compiled meanwhile.
            torch.set_num_threads(max((os.cpu_count() or 1) // 2, 1))
        with _LOADING:
            return self._load(self._place.device)

    def _rows(self, several: bool) -> int:
        return (ROWS if several else LIKELIEST)[self._place.device]

    def _generator(self, several: bool) -> Generator:
        from suite.models.decode import Choice
        from suite.models.generate import Generator

        if several not in self._generators:
            policy = self._policy
            self._generators[several] = Generator(
                policy.model,
                policy.end,
                policy.pad,
                len(policy.tokenizer),
                rows=self._rows(several),
                limit=self._limit,
                choice=Choice(TEMPERATURE if several else 0.0),
            )
        return self._generators[several]


def _same(coming: Coming, problem: Problem) -> bool:
    asked = problem.op, problem.matrix.name, problem.columns, problem.dtype
    return asked == (coming.op, coming.matrix.name, coming.columns, coming.dtype)


def authors(folder: Path | None = None, kept: Path | None = None) -> list[ModelAuthor]:
    """The variants whose weights are there; none where the packages to run them are not.

    Args:
        folder: With the weights; ``variants.weights`` where left out.
        kept: Where texts are kept; the cache of compiled programs where left out.

    Raises:
        ConfigError: Weights are damaged or do not belong together, with a line for each folder.
    """
    folder = folder or weights()
    variants, _ = trained(folder)
    if not variants or lacking():
        return []
    wrong: list[str] = []
    found: list[ModelAuthor] = []
    texts = Texts(kept or Settings().cache / "texts")
    base = _read(folder / BASE, "base", wrong)
    for variant in variants:
        adapter = _read(folder / variant.name, "adapter", wrong)
        if base and adapter:
            wrong += _differences(folder / variant.name, variant, adapter, base)
            style = PromptStyle(Encoding(adapter.encoding), adapter.vocabulary, adapter.shown)
            digests = tuple(str(sorted(of.files.items())) for of in (base, adapter))
            loader = _Loader(folder / BASE, folder / variant.name)
            found.append(ModelAuthor(variant.name, loader, Reading(style, digests), texts=texts))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return found


@dataclass(frozen=True)
class _Loader:
    base: Path
    adapter: Path

    def __call__(self, device: str) -> Policy:
        from suite.models.policy import load

        return load(self.base, self.adapter, device=device)


def _read(folder: Path, kind: str, wrong: list[str]) -> Manifest | None:
    try:
        return manifest.read(folder, kind)
    except ModelError as error:
        wrong.append(str(error))
        return None


def _differences(folder: Path, variant: Variant, adapter: Manifest, base: Manifest) -> list[str]:
    found = []
    if adapter.base != base.base:
        found.append(f"{folder}: was trained on base {adapter.base}, and {BASE} is {base.base}")
    if adapter.encoding != variant.encoding:
        found.append(
            f"{folder}: was taught to read {adapter.encoding}; {variant.name} reads"
            f" {variant.encoding}"
        )
    return found
