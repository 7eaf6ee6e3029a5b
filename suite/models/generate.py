"""Batches of prompts to completions, each the same whatever else is in its batch.

What is drawn for a request depends on the request's own seed and the position in its text. What the
model computes depends on shapes, since another shape may be summed in another order; so every batch
has the same number of rows, filled up where there is less to do, and the width of a prompt is its
own length rounded up, never that of its neighbours. On the CPU rows that have ended are left out
where products were found to give a row the same bits then.

Letters: B rows, T new tokens, W columns of a prompt.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch

from suite.models.decode import Choice, Loop, rows_are_apart
from suite.models.errors import ModelError, Stopped
from suite.models.lm import CausalLM

WIDTH = 64  # prompts are padded to a multiple
READ = {"cuda": 16}  # prompts that are read at once, fewer are filled up; elsewhere one
KEPT = 2  # loops that are kept: each has a cache for a whole batch


class Outcome(StrEnum):
    """How a completion came to its end."""

    ENDED = "ended"  # with the end token
    LENGTH = "length"  # at the limit


@dataclass(frozen=True)
class Request:
    """A prompt and what is drawn for it.

    Attributes:
        prompt: Token ids; from V on they are coordinates.
        seed: 64 bits; see ``seed_of``.
    """

    prompt: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Completion:
    """What a model wrote.

    Attributes:
        tokens: Token ids; the end token is the last one where it ended.
        logprobs: Logarithm of each token's probability at the temperature used, before top-p.
        outcome: How it ended.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    outcome: Outcome


def seed_of(prompt: Sequence[int], sample: int, seed: int = 0) -> int:
    """The seed of one of several samples for a prompt: all differ, wherever they are drawn."""
    h = hashlib.blake2b(np.asarray(prompt, dtype=np.int64).tobytes(), digest_size=8)
    h.update(f"/{sample}/{seed}".encode())
    return int.from_bytes(h.digest(), "little")


class Generator:
    """Generates in batches of B rows.

    Args:
        model: With the coordinate embedding attached; adapters merged, or its own base model.
        end: Token that ends a program.
        pad: Token that fills batches.
        tokens: Tokens that have a text; the table may be larger.
        rows: B.
        limit: T.
        choice: How tokens are chosen.
        graphs: Whether steps are captured as CUDA graphs; where left out, on a GPU.
    """

    def __init__(
        self,
        model: CausalLM,
        end: int,
        pad: int,
        tokens: int,
        rows: int,
        limit: int,
        choice: Choice,
        graphs: bool | None = None,
    ) -> None:
        if rows < 1 or limit < 1:
            raise ModelError(f"{rows} rows and {limit} tokens: both must be at least 1")
        self.model, self.rows, self.limit, self.choice = model, rows, limit, choice
        self._end, self._pad = end, pad
        out = int(model.get_output_embeddings().weight.shape[0])
        self._forbidden = [*range(tokens, out), *({pad} - {end})]
        self._graphs = model.device.type == "cuda" if graphs is None else graphs
        self._leave_out = model.device.type == "cpu" and rows_are_apart(model, rows)
        self._loops: dict[int, Loop] = {}
        self.steps = 0  # that were taken in all, of B rows each
        self.seconds = {"prompts": 0.0, "steps": 0.0}  # that reading and writing took in all

    def generate(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> list[Completion]:
        """A completion for each request, in their order.

        Args:
            requests: What to write.
            stop: Asked now and then whether to give up.

        Raises:
            Stopped: It was asked to.
            ModelError: A prompt is empty, or too long for the model with what is to follow.
        """
        self._check(requests)
        found: dict[int, Completion] = {}
        was_training = self.model.training
        self.model.eval()
        try:
            for width, batch in self._batches(requests):
                loop = self._loop(width)
                with self._timed("prompts"):
                    self._begin(loop, [requests[at] for at in batch], stop)
                with self._timed("steps"):
                    self.steps += loop.run(stop)
                found |= zip(batch, self._collect(loop, len(batch)), strict=True)
        finally:
            self.model.train(was_training)
        return [found[at] for at in range(len(requests))]

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        self.seconds[what] += time.perf_counter() - started

    def _check(self, requests: Iterable[Request]) -> None:
        config = self.model.config.get_text_config(decoder=True)
        most = int(getattr(config, "max_position_embeddings", 0) or 1 << 31)
        for request in requests:
            if not request.prompt:
                raise ModelError("a prompt is empty; it needs at least one token")
            if len(request.prompt) + self.limit > most:
                raise ModelError(
                    f"a prompt of {len(request.prompt)} tokens and {self.limit} new ones are more"
                    f" than the model's {most} positions; show fewer nonzeros or lower the limit"
                )

    def _batches(self, requests: Sequence[Request]) -> Iterator[tuple[int, list[int]]]:
        """Width and request numbers of each batch; equal prompts stand together."""
        by_width: dict[int, list[int]] = {}
        for at, request in enumerate(requests):
            by_width.setdefault(-(-len(request.prompt) // WIDTH) * WIDTH, []).append(at)
        for width, members in by_width.items():
            first = {requests[at].prompt: at for at in reversed(members)}
            members.sort(key=lambda at: first[requests[at].prompt])
            for start in range(0, len(members), self.rows):
                yield width, members[start : start + self.rows]

    def _loop(self, width: int) -> Loop:
        loop = self._loops.pop(width, None)
        if loop is None:
            while len(self._loops) >= KEPT:
                del self._loops[next(iter(self._loops))]
            loop = Loop(
                self.model,
                self.rows,
                width,
                self.limit,
                self.choice,
                self._end,
                self._pad,
                self._forbidden,
                self._graphs,
                self._leave_out,
            )
        self._loops[width] = loop  # the one used last comes last
        return loop

    def _begin(self, loop: Loop, batch: Sequence[Request], stop: Callable[[], bool]) -> None:
        """Reads every prompt once and copies it to the other rows that have it."""
        device = self.model.device
        places: dict[tuple[int, ...], list[int]] = {}
        for row, request in enumerate(batch):
            places.setdefault(request.prompt, []).append(row)
        uniforms = np.zeros((self.limit, self.rows), dtype=np.float32)
        for row, request in enumerate(batch):
            drawn = np.random.Generator(np.random.Philox(request.seed))
            uniforms[:, row] = drawn.random(self.limit, dtype=np.float32)
        lengths = [len(request.prompt) for request in batch]
        # Rows without a request read a prompt that is there, and end at once.
        lengths += lengths[:1] * (self.rows - len(batch))
        start = torch.tensor([loop.width - length for length in lengths], device=device)
        loop.begin(start, torch.from_numpy(uniforms).to(device), len(batch))
        prompts = list(places)
        count = min(READ.get(device.type, 1), self.rows)
        for first in range(0, len(prompts), count):
            if stop():
                raise Stopped
            some = prompts[first : first + count]
            filled = some + some[:1] * (count - len(some))
            ids = torch.tensor(
                [[self._pad] * (loop.width - len(prompt)) + list(prompt) for prompt in filled],
                device=device,
            )
            rows = [places[prompt] for prompt in some]
            loop.read(ids, [loop.width - len(prompt) for prompt in filled], rows)

    def _collect(self, loop: Loop, count: int) -> list[Completion]:
        tokens, logprobs = (found.tolist() for found in loop.written())
        return [self._completion(tokens[row], logprobs[row]) for row in range(count)]

    def _completion(self, tokens: list[int], logprobs: list[float]) -> Completion:
        ended = self._end in tokens
        count = tokens.index(self._end) + 1 if ended else len(tokens)
        outcome = Outcome.ENDED if ended else Outcome.LENGTH
        return Completion(tuple(tokens[:count]), tuple(logprobs[:count]), outcome)
