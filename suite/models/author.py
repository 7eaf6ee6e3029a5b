"""A trained variant as an author: reads the problem's matrix and writes programs for it.

Importing this loads neither torch nor weights; the first problem does. Weights are held to their
digests before anything is measured.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.author import Kind
from suite.config import ConfigError
from suite.harness.compile import Target
from suite.harness.lock import gpu_lock
from suite.matrices.base import Matrix
from suite.models import manifest
from suite.models.errors import ModelError
from suite.models.manifest import Manifest
from suite.models.variants import BASE, Variant, lacking, trained, weights
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram

if TYPE_CHECKING:
    from suite.models.generate import Completion, Generator
    from suite.models.policy import Policy

TEMPERATURE = 0.8  # for several samples; a single one is the likeliest program
LIMIT = 1024  # tokens
ROWS = {"cuda": 64, "cpu": 8}  # of a batch of samples
LIKELIEST = 4  # rows of a batch where a single program is asked for


@dataclass(frozen=True)
class _Asked:
    """What is asked of a matrix."""

    op: Op
    columns: int
    dtype: DType
    samples: int


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
    """The GPU that torch sees; the CPU where it sees none."""
    import torch

    from suite.harness.compile import architecture, supported_architectures

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
        load: Loads the policy for a device; called for the first problem.
        place: Says where to run; called for the first problem.
        seed: Of all samples.
        limit: Tokens of a program, at most.
    """

    kind = Kind.MODEL

    def __init__(
        self,
        name: str,
        load: Callable[[str], Policy],
        place: Callable[[], Place] = here,
        seed: int = 0,
        limit: int = LIMIT,
    ) -> None:
        self.name = name
        self._load, self._find_place = load, place
        self._seed, self._limit = seed, limit
        self._generators: dict[bool, Generator] = {}
        self._before: dict[_Asked, None] = {}
        self._matrix: Callable[[], Matrix | None] = lambda: None
        self._written: dict[_Asked, list[KernelProgram]] = {}

    def answers(self, op: str) -> bool:
        """Both operations."""
        return op in list(Op)

    def write(self, problem: Problem, samples: int) -> Sequence[KernelProgram]:
        """Samples programs; a single one is the likeliest. The same seed writes the same.

        Where a batch has room, it also writes what was asked of other matrices before: that will
        be asked of this one next, and another row costs much less than another batch.
        """
        if self._matrix() is not problem.matrix:
            self._matrix, self._written = weakref.ref(problem.matrix), {}
        asked = _Asked(problem.op, problem.columns, problem.dtype, samples)
        if asked not in self._written:
            room = self._rows(samples > 1) // max(samples, 1) - 1
            likely = [a for a in self._before if a != asked and a.samples == samples]
            ahead = [a for a in likely if a not in self._written][: max(room, 0)]
            self._written |= self._write(problem.matrix, [asked, *ahead])
        self._before[asked] = None
        return self._written.pop(asked)

    def _write(self, matrix: Matrix, asked: Sequence[_Asked]) -> dict[_Asked, list[KernelProgram]]:
        from suite.models.generate import Request, seed_of

        requests, owners = [], []
        for one in asked:
            problem = Problem(one.op, matrix, one.columns, one.dtype)
            ids = tuple(self._policy.prompt(problem, self._place.arch))
            for sample in range(one.samples):
                requests.append(Request(ids, seed_of(ids, sample, self._seed)))
                owners.append((one, sample))
        with self._place.lock():
            completions = self._generator(asked[0].samples > 1).generate(requests)
        found: dict[_Asked, list[KernelProgram]] = {one: [] for one in asked}
        for (one, sample), completion in zip(owners, completions, strict=True):
            found[one].append(self._program(completion, sample))
        return found

    def _program(self, completion: Completion, sample: int) -> KernelProgram:
        from suite.models.generate import Outcome

        cut = completion.outcome is Outcome.LENGTH
        unfinished = f"the model came to no end within {self._limit} tokens" if cut else ""
        return KernelProgram(self.name, self._policy.decode(completion.tokens), sample, unfinished)

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
        return self._load(self._place.device)

    def _rows(self, several: bool) -> int:
        return ROWS[self._place.device] if several else LIKELIEST

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


def authors(folder: Path | None = None) -> list[ModelAuthor]:
    """The variants whose weights are there; none where the packages to run them are not.

    Raises:
        ConfigError: Weights are damaged or do not belong together, with a line for each folder.
    """
    folder = folder or weights()
    variants, _ = trained(folder)
    if not variants or lacking():
        return []
    wrong: list[str] = []
    base = _read(folder / BASE, "base", wrong)
    for variant in variants:
        adapter = _read(folder / variant.name, "adapter", wrong)
        if base and adapter:
            wrong += _differences(folder / variant.name, variant, adapter, base)
    if wrong:
        raise ConfigError("\n".join(wrong))
    return [ModelAuthor(v.name, _Loader(folder / BASE, folder / v.name)) for v in variants]


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
