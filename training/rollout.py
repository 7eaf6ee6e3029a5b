"""Programs of the current policy for some problems, judged: generate, compile, measure.

What overlaps: compilers work on a batch while the next one is generated; problems of the next step
are brought to the device while this one's update and the next generation run. What does not:
while programs are measured, nothing else is asked of the GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from suite.models.generate import WIDTH, Completion, Generator, Outcome, Request, seed_of
from suite.models.policy import Policy
from suite.problem import Problem
from suite.program import KernelProgram
from training.judging import Judge, Judged
from training.outcome import Outcome as Verdict
from training.reward import Reward, RewardWeights, log_speedup, reward
from training.strategies import strategy_of

AUTHOR = "policy"
PHASES = ("build", "generate", "compile", "load", "measure")


class Loads(Protocol):
    """Something that brings problems to a device ahead of their programs."""

    def load(self, problem: Problem) -> None:
        """Brings one."""
        ...


@dataclass(frozen=True)
class Sample:
    """A program of the policy, and what it is worth.

    Attributes:
        problem: What was asked.
        prompt: Token ids.
        completion: What was written.
        program: Its text.
        judged: The verdict.
        reference: What the library's default takes; None where it was not timed.
        reward: None where the machine failed.
        logarithm: Of the speedup over the reference; None without two times.
        strategy: How it goes about it, "" where it cannot be read.
    """

    problem: Problem
    prompt: tuple[int, ...]
    completion: Completion
    program: KernelProgram
    judged: Judged
    reference: Verdict | None
    reward: Reward | None
    logarithm: float | None
    strategy: str


class Roller:
    """Samples and judges.

    Args:
        policy: What writes; its weights may change in place.
        generator: Of the policy.
        judge: Judges.
        device: Gets problems ahead of their programs.
        weights: Of the reward.
        arch: What programs are written for.
        seed: Of all samples.
        quiet: Waits until this process has nothing running on the GPU.

    Attributes:
        seconds: Wall time by phase since it was last emptied.
    """

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        judge: Judge,
        device: Loads,
        weights: RewardWeights,
        arch: str,
        seed: int,
        quiet: Callable[[], None] = lambda: None,
    ) -> None:
        self._policy, self._generator, self._judge = policy, generator, judge
        self._device, self._weights, self._arch, self._seed = device, weights, arch, seed
        self._quiet = quiet
        self._compiling = ThreadPoolExecutor(1, "compiling")
        self._loading = ThreadPoolExecutor(1, "loading")
        self._loads: list[Future[None]] = []
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)

    def close(self) -> None:
        """Waits for what was begun."""
        self._compiling.shutdown(cancel_futures=True)
        self._loading.shutdown(cancel_futures=True)

    def load(self, problems: Sequence[Problem]) -> None:
        """Begins to bring problems to the device; not while anything is measured."""
        self._loads += [self._loading.submit(self._device.load, one) for one in problems]

    def settle(self) -> None:
        """Waits for what is being brought to the device."""
        with self.timed("load"):
            for load in self._loads:
                load.result()
            self._loads.clear()

    def roll(self, problems: Sequence[Problem], group: int, draw: int) -> list[Sample]:
        """``group`` programs of each problem, problem by problem.

        Args:
            problems: What is asked.
            group: Programs of each.
            draw: Another number gives other samples.
        """
        prompts = [tuple(self._policy.prompt(problem, self._arch)) for problem in problems]
        asked = [
            (at, Request(prompts[at], seed_of(prompts[at], sample, (self._seed << 32) + draw)))
            for at in range(len(problems))
            for sample in range(group)
        ]
        written = self._write(problems, asked)
        self.settle()
        self._quiet()
        with self.timed("measure"):
            references = [self._judge.reference(problem) for problem in problems]
            judged = self._judge.judge(
                [(problems[at], written[n][1]) for n, (at, _) in enumerate(asked)]
            )
        return [
            self._sample(problems[at], request.prompt, *written[n], judged[n], references[at])
            for n, (at, request) in enumerate(asked)
        ]

    def example(self, like: Sample, text: str) -> Sample | None:
        """A text that somebody else wrote as if it were a sample of the policy.

        Args:
            like: A sample of the same problem.
            text: A program.

        Returns:
            None where it has more tokens than the policy may write.
        """
        tokens = (*self._policy.encode(text), self._policy.end)
        if len(tokens) > self._generator.limit:
            return None
        completion = Completion(tokens, (0.0,) * len(tokens), Outcome.ENDED)
        program = KernelProgram(AUTHOR, text)
        (judged,) = self._judge.judge([(like.problem, program)])
        return self._sample(like.problem, like.prompt, completion, program, judged, like.reference)

    def _sample(
        self,
        problem: Problem,
        prompt: tuple[int, ...],
        completion: Completion,
        program: KernelProgram,
        judged: Judged,
        reference: Verdict | None,
    ) -> Sample:
        outcome, cold = judged.outcome, self._weights.cold
        speed = log_speedup(outcome, reference, cold) if outcome.ok else None
        worth = reward(outcome, reference, len(program.text), self._weights)
        strategy = strategy_of(program.text)
        whole = (problem, prompt, completion, program, judged, reference)
        return Sample(*whole, worth, speed, strategy)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Counts the time inside to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] += time.perf_counter() - started

    def _write(
        self, problems: Sequence[Problem], asked: Sequence[tuple[int, Request]]
    ) -> dict[int, tuple[Completion, KernelProgram]]:
        """Generates in batches; each is compiled while the next one is generated."""
        order = sorted(range(len(asked)), key=lambda n: _width(asked[n][1].prompt))
        found: dict[int, tuple[Completion, KernelProgram]] = {}
        compiled: list[Future[None]] = []
        for start in range(0, len(order), self._generator.rows):
            batch = order[start : start + self._generator.rows]
            with self.timed("generate"):
                completions = self._generator.generate([asked[n][1] for n in batch])
            pairs = []
            for n, completion in zip(batch, completions, strict=True):
                program = self._program(completion)
                found[n] = (completion, program)
                pairs.append((problems[asked[n][0]], program))
            compiled.append(self._compiling.submit(self._judge.compile, pairs))
        with self.timed("compile"):
            for one in compiled:
                one.result()
        return found

    def _program(self, completion: Completion) -> KernelProgram:
        cut = completion.outcome is Outcome.LENGTH
        unfinished = f"no end within {self._generator.limit} tokens" if cut else ""
        text = self._policy.decode(completion.tokens)
        return KernelProgram(AUTHOR, text, unfinished=unfinished)


def _width(prompt: Sequence[int]) -> int:
    return -(-len(prompt) // WIDTH)
