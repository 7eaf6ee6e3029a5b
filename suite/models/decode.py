"""The decode loop: one step per token for a whole batch, captured as a CUDA graph on a GPU.

A step works on buffers at fixed addresses and never asks the device for a value, so that what is
captured once can be replayed for every token. On the CPU the same step is simply called, and rows
that have ended are left out of it. Weights may change in place between runs (training does); a
graph sees that.

Letters: B rows, T new tokens, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch

from suite.models.cache import FixedCache, call, grouped_attention, masks
from suite.models.embedding import CoordinateEmbedding
from suite.models.errors import Stopped
from suite.models.lm import CausalLM

VIEW = 128  # attention reads a multiple of so many columns; a graph for each
ASKED = 16  # tokens between two looks at whether all rows have ended
APART = 4  # steps have a multiple of so many rows: only from there on are products done row by row


@dataclass(frozen=True)
class Choice:
    """How a token is chosen.

    Attributes:
        temperature: 0 takes the likeliest.
        top_p: Share of probability that the likeliest tokens make up among which is drawn.
    """

    temperature: float = 0.8
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100 or not 0 < self.top_p <= 1:
            raise ValueError(
                f"temperature {self.temperature} must be from 0 to 100, top_p {self.top_p} above 0"
                " and at most 1"
            )


def choose(
    logits: torch.Tensor, choice: Choice, uniform: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """A token for each row.

    Args:
        logits: B × V, float32.
        choice: How.
        uniform: B numbers in [0, 1); the same number chooses the same token.

    Returns:
        Tokens, B, and the logarithm of their probability at this temperature, before top-p.
    """
    if choice.temperature == 0:
        tokens = logits.argmax(dim=-1)
        known = logits.log_softmax(dim=-1)
        return tokens, known.gather(1, tokens[:, None])[:, 0]
    known = (logits / choice.temperature).log_softmax(dim=-1)
    shares, order = known.exp(), None
    if choice.top_p < 1:
        shares, order = shares.sort(dim=-1, descending=True, stable=True)
        before = shares.cumsum(dim=-1) - shares
        shares = shares.masked_fill(before >= choice.top_p, 0.0)
    summed = shares.cumsum(dim=-1)
    # Below the whole sum also after rounding, so that what is chosen has a probability above 0.
    wanted = uniform.clamp(max=1 - 2**-20)[:, None] * summed[:, -1:]
    at = (summed <= wanted).sum(dim=-1, keepdim=True).clamp(max=summed.shape[-1] - 1)
    tokens = at if order is None else order.gather(1, at)
    return tokens[:, 0], known.gather(1, tokens)[:, 0]


class Loop:
    """Generates for B rows whose prompts end at the same column.

    Args:
        model: With the coordinate embedding; in evaluation mode.
        rows: B.
        width: Columns of the prompts.
        limit: T.
        choice: How tokens are chosen.
        end: Token that ends a row.
        pad: Token that follows it.
        forbidden: Tokens that are never chosen.
        graphs: Capture steps; needs a GPU.
        leave_out: Rows that have ended take part in no step; see ``rows_are_apart``.
    """

    def __init__(
        self,
        model: CausalLM,
        rows: int,
        width: int,
        limit: int,
        choice: Choice,
        end: int,
        pad: int,
        forbidden: list[int],
        graphs: bool,
        leave_out: bool = False,
    ) -> None:
        self.model, self.choice = model, choice
        self.rows, self.width, self.limit = rows, width, limit
        self.end, self.pad = end, pad
        self._leave_out = leave_out and not graphs
        self.live = rows  # the first so many places take part in a step
        self.places = list(range(rows))  # which row is where
        self._graphs: dict[int, torch.cuda.CUDAGraph] | None = {} if graphs else None
        self._pool: Any = None
        device = model.device
        self.at = torch.zeros(1, dtype=torch.int64, device=device)  # column of the token to be read
        self.start = torch.zeros(
            rows, dtype=torch.int64, device=device
        )  # first column of each prompt
        self.uniforms = torch.zeros(limit, rows, device=device)
        self.logits = torch.zeros(rows, _vocabulary(model), device=device)
        self.barred = torch.zeros(_vocabulary(model), device=device)
        self.barred[forbidden] = -torch.inf
        self.ended = torch.zeros(rows, dtype=torch.bool, device=device)
        self.tokens = torch.zeros(limit, rows, dtype=torch.int64, device=device)
        self.logprobs = torch.zeros(limit, rows, device=device)
        self.columns = torch.arange(_rounded(width + limit), device=device)
        self.cache = FixedCache(model, rows, _rounded(width + limit), self.at)

    def begin(self, start: torch.Tensor, uniforms: torch.Tensor, count: int) -> None:
        """Starts a batch.

        Args:
            start: First column of each row's prompt, B.
            uniforms: Random numbers, T × B.
            count: Rows that are wanted; the others have ended before they begin.
        """
        self.start.copy_(start)
        self.uniforms.copy_(uniforms)
        self.at.fill_(self.width)
        self.ended.fill_(True)
        self.ended[:count] = False
        self.tokens.fill_(self.pad)
        self.logprobs.zero_()
        self.live, self.places = self.rows, list(range(self.rows))
        if self._leave_out:
            self._shrink(count)

    @torch.inference_mode()
    def read(self, ids: torch.Tensor, start: list[int], rows: list[list[int]]) -> None:
        """Reads prompts, P × width, padded on the left.

        Args:
            ids: Token ids.
            start: First column of each.
            rows: For each of the first prompts the rows that begin with it.
        """
        device = ids.device
        columns = self.columns[: self.width]
        back = columns[:, None] - columns
        first = torch.tensor(start, device=device)[:, None]
        # Padding sees itself: what sees nothing would be NaN in half precision.
        seen = ((back >= 0) & (columns >= first[:, None])) | (back == 0)
        of = torch.tensor([at for at, mine in enumerate(rows) for _ in mine], device=device)
        to = torch.tensor([row for mine in rows for row in mine], device=device)
        self.cache.read_prompts(of, to)
        with grouped_attention(self.model):
            logits = call(
                self.model,
                self.cache,
                inputs_embeds=self.model.get_input_embeddings()(ids),
                attention_mask=masks(self.model, seen, back),
                position_ids=(columns - first).clamp(min=0),
            )
        self.logits[to] = logits[of]
        self.cache.read_tokens()

    def run(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Generates until every row has ended or T tokens are there.

        Args:
            stop: Asked now and then whether to give up.

        Raises:
            Stopped: It was asked to.

        Returns:
            How many steps it took.
        """
        for step in range(self.limit):
            if step and step % ASKED == 0:
                if bool(self.ended.all()):
                    return step
                if stop():
                    raise Stopped
                if self._leave_out:
                    self._close_ranks()
            self._stepper(_rounded(self.width + step + 1))()
        return self.limit

    def step(self, view: int) -> None:
        """One token for every row: chooses it from ``logits``, reads it, and leaves new ``logits``.

        Args:
            view: Columns that attention reads.
        """
        now = self.at - self.width
        start, ended, written = (b[: self.live] for b in (self.start, self.ended, self.logits))
        uniform = self.uniforms[:, : self.live].index_select(0, now)[0]
        tokens, logprobs = choose(written + self.barred, self.choice, uniform)
        tokens = torch.where(ended, self.pad, tokens)
        self.tokens[:, : self.live].index_copy_(0, now, tokens[None])
        self.logprobs[:, : self.live].index_copy_(0, now, torch.where(ended, 0.0, logprobs)[None])
        ended |= tokens == self.end
        columns = self.columns[:view]
        back = self.at - columns
        seen = (back >= 0) & (columns >= start[:, None])
        self.cache.look_at(view, self.live)
        written.copy_(
            call(
                self.model,
                self.cache,
                inputs_embeds=_ordinary(self.model, tokens[:, None]),
                attention_mask=masks(self.model, seen[:, None], back),
                position_ids=(self.at - start)[:, None],
            )
        )
        self.at += 1

    def written(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and the logarithms of their probabilities, B × T, by row."""
        order = torch.tensor(self.places, device=self.tokens.device).argsort()
        return self.tokens.T[order], self.logprobs.T[order]

    def _close_ranks(self) -> None:
        """Moves rows that go on to the first places, and leaves the others out."""
        ended = self.ended[: self.live].tolist()
        live = self._shrink(self.live - sum(ended))
        free = [place for place in range(live) if ended[place]]
        late = [place for place in range(live, len(ended)) if not ended[place]]
        for to, of in zip(free, late, strict=False):
            self.cache.move(of, to, int(self.at))
            for buffer in (self.start, self.ended, self.logits, self.uniforms.T):
                buffer[to] = buffer[of]
            for kept in (self.tokens.T, self.logprobs.T):
                kept[[to, of]] = kept[[of, to]]
            self.places[to], self.places[of] = self.places[of], self.places[to]
            self.ended[of] = True

    def _shrink(self, count: int) -> int:
        """Steps have as many rows as are needed for ``count``, from now on."""
        self.live = min(-(-max(count, 1) // APART) * APART, self.live)
        return self.live

    def _stepper(self, view: int) -> Callable[[], object]:
        """What does a step with this view: the step itself, or a graph of it."""
        if self._graphs is None:
            return lambda: self._eager(view)
        if view not in self._graphs:
            self._graphs[view] = self._capture(view)
        return self._graphs[view].replay

    @torch.inference_mode()
    def _eager(self, view: int) -> None:
        with grouped_attention(self.model):
            self.step(view)

    @torch.inference_mode()
    def _capture(self, view: int) -> torch.cuda.CUDAGraph:
        """Captures a step; what the warm-up that this takes has written is put back."""
        kept = [buffer.clone() for buffer in self._state()]
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with grouped_attention(self.model), torch.cuda.stream(aside):
            self.step(view)  # libraries set themselves up, which a capture cannot hold
        torch.cuda.current_stream().wait_stream(aside)
        for buffer, value in zip(self._state(), kept, strict=True):
            buffer.copy_(value)
        graph = torch.cuda.CUDAGraph()
        with grouped_attention(self.model), torch.cuda.graph(graph, pool=self._pool):
            self.step(view)
        self._pool = graph.pool()
        return graph

    def _state(self) -> tuple[torch.Tensor, ...]:
        """What a step changes; the cache's column is written again by the step that counts."""
        return self.at, self.logits, self.ended, self.tokens, self.logprobs


@torch.inference_mode()
def rows_are_apart(model: CausalLM, rows: int) -> bool:
    """Whether products here give a row the same bits, however many rows there are beside it.

    Libraries promise it only for one shape. It is tried for every size of the model's layers and
    every number of rows that a step may come to have.
    """
    modules = cast("torch.nn.Module", model).modules()
    layers = [module for module in modules if isinstance(module, torch.nn.Linear)]
    generator = torch.Generator().manual_seed(0)
    for layer in {layer.weight.shape: layer for layer in layers}.values():
        read = torch.randn(rows, layer.in_features, generator=generator).to(layer.weight)
        whole = layer(read)
        if not all(torch.equal(layer(read[:n]), whole[:n]) for n in range(APART, rows, APART)):
            return False
    return True


def _ordinary(model: CausalLM, ids: torch.Tensor) -> torch.Tensor:
    table = model.get_input_embeddings()
    return table.ordinary(ids) if isinstance(table, CoordinateEmbedding) else table(ids)


def _vocabulary(model: CausalLM) -> int:
    return int(model.get_output_embeddings().weight.shape[0])


def _rounded(columns: int) -> int:
    return -(-columns // VIEW) * VIEW
