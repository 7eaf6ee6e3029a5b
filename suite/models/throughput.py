"""``python -m suite.models.throughput``: how many tokens a second a model writes.

Times whole batches, prompts included, after one that is not timed (it captures the graphs). No row
ends before the limit, so every row of every step is a token. Random weights do as well as trained
ones; ``--weights`` takes a folder of the project.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from suite.models.coordinates import coordinate_ids
from suite.models.decode import Choice
from suite.models.embedding import attach
from suite.models.errors import ModelError
from suite.models.generate import Generator, Request
from suite.models.lm import CausalLM
from suite.models.policy import in_precision
from suite.models.sampler import SHOWN
from suite.models.tiny import TinyConfig

TEXT = 80  # tokens of a prompt beside its nonzeros
REPEATS = 3


@dataclass(frozen=True)
class Throughput:
    """What was measured.

    Attributes:
        device: ``NVIDIA H200``, ``cpu``.
        dtype: Of the weights.
        rows: Of the batch.
        tokens: New ones for each row.
        prompt: Tokens of a prompt; all rows have different ones unless ``shared``.
        shared: Rows that have the same prompt.
        graphs: Whether steps were captured.
        tokens_per_s: Median over the repeats, prompts included.
        step_ms: Median time of a decode step.
        prompt_ms: Median time of reading the prompts of a batch, and of drawing for it.
        first_s: Time of the batch that captured the graphs.
    """

    device: str
    dtype: str
    rows: int
    tokens: int
    prompt: int
    shared: int
    graphs: bool
    tokens_per_s: float
    step_ms: float
    prompt_ms: float
    first_s: float


def measure(
    model: CausalLM, rows: int, tokens: int, shared: int, graphs: bool | None = None
) -> Throughput:
    """Times ``REPEATS`` batches.

    Args:
        model: With the coordinate embedding.
        rows: Of the batch.
        tokens: New ones for each row.
        shared: Samples of each prompt.
        graphs: As for ``Generator``.
    """
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    requests = _requests(rows, shared, vocabulary)
    # The end token is one that is never chosen: no row ends early.
    generator = Generator(model, -1, 0, vocabulary, rows, tokens, Choice(), graphs)
    first = _timed(generator, requests)
    runs = [_timed(generator, requests) for _ in range(REPEATS)]
    whole_s, prompts_s, steps_s = (statistics.median(part) for part in zip(*runs, strict=True))
    cuda = model.device.type == "cuda"
    return Throughput(
        device=torch.cuda.get_device_name(model.device) if cuda else "cpu",
        dtype=str(model.dtype).removeprefix("torch."),
        rows=rows,
        tokens=tokens,
        prompt=len(requests[0].prompt),
        shared=shared,
        graphs=cuda if graphs is None else graphs,
        tokens_per_s=round(rows * tokens / whole_s, 1),
        step_ms=round(steps_s / tokens * 1e3, 4),
        prompt_ms=round(prompts_s * 1e3, 2),
        first_s=round(first[0], 2),
    )


def _requests(rows: int, shared: int, vocabulary: int) -> list[Request]:
    random = np.random.default_rng(0)
    prompts = []
    for _ in range(-(-rows // shared)):
        i, j = np.sort(random.integers(0, 1 << 20, SHOWN)), random.integers(0, 1 << 20, SHOWN)
        text = random.integers(1, vocabulary, TEXT).tolist()
        prompts.append((*text, *coordinate_ids(i, j, vocabulary).tolist()))
    return [Request(prompts[row // shared], row) for row in range(rows)]


def _timed(generator: Generator, requests: list[Request]) -> tuple[float, float, float]:
    """Seconds of a batch: all of it, its prompts, its steps."""
    before = dict(generator.seconds)
    started = time.perf_counter()
    generator.generate(requests)  # waits for the device, since it returns what was written
    whole = time.perf_counter() - started
    spent = {part: generator.seconds[part] - before[part] for part in before}
    return whole, spent["prompts"], spent["steps"]


def _model(weights: str | None, adapter: Path | None, device: str) -> CausalLM:
    if weights is not None:
        from suite.models.policy import load

        return load(weights, adapter, device=device).model
    model: Any = TinyConfig().build(end=1, pad=0)
    attach(model)
    in_precision(model.to(device=device), torch.bfloat16 if device == "cuda" else torch.float32)
    return cast("CausalLM", model.eval().requires_grad_(False))


def main(arguments: list[str] | None = None) -> int:
    """Prints one line of JSON for each number of rows."""
    parser = argparse.ArgumentParser(
        prog="python -m suite.models.throughput", description=__doc__.split("\n\n")[1]
    )
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=("cpu", "cuda"), default=default)
    parser.add_argument("--rows", default="192,1024" if default == "cuda" else "1,8")
    parser.add_argument("--tokens", type=int, default=256 if default == "cuda" else 32)
    parser.add_argument("--shared", type=int, default=16, help="rows with the same prompt")
    parser.add_argument("--eager", action="store_true", help="no graphs, for comparison")
    parser.add_argument("--weights", help="a base as policy.load takes it (default: random tiny)")
    parser.add_argument("--adapter", type=Path, help="folder of an adapter")
    options = parser.parse_args(arguments)
    try:
        rows = [int(word) for word in options.rows.split(",")]
        if min(*rows, options.tokens, options.shared) < 1:
            raise ModelError("--rows, --tokens and --shared must be at least 1")
        model = _model(options.weights, options.adapter, options.device)
        for count in rows:
            graphs = False if options.eager else None
            found = measure(model, count, options.tokens, min(options.shared, count), graphs)
            print(json.dumps(asdict(found)), flush=True)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
