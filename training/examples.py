"""Pairs as token ids: prompt, program and end token of each, in one flat array.

What the program runs on does not change its text, but the prompt names an architecture; so one is
drawn for each pair, most often the one that the project measures on.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerFast

from suite.models.prompt import PromptStyle, header, parts
from suite.problem import DType, Op
from training.errors import TrainingError
from training.seen import Seen
from training.tokenizer import encoded

ARCHITECTURES = (*("sm_90",) * 6, "sm_80", "sm_86", "sm_89", "sm_100")  # by lot
AT_ONCE = 1024  # texts that are encoded together, on all cores


@dataclass(frozen=True, eq=False)
class Examples:
    """Token ids of many examples.

    Attributes:
        ids: All of them, one after the other, int64.
        ends: Where each example ends.
        prompts: How many ids of each are its prompt.
        dropped: Pairs whose program was too long.
    """

    ids: np.ndarray
    ends: np.ndarray
    prompts: np.ndarray
    dropped: int

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> np.ndarray:
        """Ids of each example, its end token included."""
        return np.diff(self.ends, prepend=0)

    def at(self, index: int) -> np.ndarray:
        """The ids of one example."""
        return self.ids[(self.ends[index - 1] if index else 0) : self.ends[index]]

    @property
    def digest(self) -> str:
        """Tells other examples apart."""
        h = hashlib.blake2b(digest_size=8)
        for part in (self.ids, self.ends, self.prompts):
            h.update(np.ascontiguousarray(part).data)
        return h.hexdigest()


def make(
    pairs: pa.Table,
    seen: Mapping[str, Seen],
    tokenizer: PreTrainedTokenizerFast,
    style: PromptStyle,
    begin: Sequence[int] = (),
    longest: int = 1024,
    seed: int = 0,
) -> Examples:
    """Encodes pairs.

    Args:
        pairs: As ``training.pairs`` stores them.
        seen: What their matrices show, by digest.
        tokenizer: With an end token.
        style: What the model is to read.
        begin: Ids that every text begins with.
        longest: Tokens of a program, at most, its end token included; longer ones are dropped.
        seed: Of the architectures.

    Raises:
        TrainingError: No pair is left.
    """
    end = int(tokenizer.eos_token_id)
    ids: list[np.ndarray] = []
    prompts: list[int] = []
    dropped = 0
    rows = pairs.to_pylist()
    told = _prompts(rows, seen, tokenizer, style, seed)
    programs = encoded(tokenizer, [row["text"] for row in rows], AT_ONCE)
    for prompt, program in zip(told, programs, strict=True):
        if len(program) + 1 > longest:
            dropped += 1
            continue
        ids.append(np.array([*begin, *prompt, *program, end], np.int64))
        prompts.append(len(begin) + len(prompt))
    if not ids:
        raise TrainingError(f"no program has at most {longest} tokens; allow longer ones")
    ends = np.cumsum([len(one) for one in ids])
    return Examples(np.concatenate(ids), ends, np.array(prompts), dropped)


def _prompts(
    rows: Sequence[Mapping[str, Any]],
    seen: Mapping[str, Seen],
    tokenizer: PreTrainedTokenizerFast,
    style: PromptStyle,
    seed: int,
) -> Iterator[list[int]]:
    for start in range(0, len(rows), AT_ONCE):
        told = []
        for turn, row in enumerate(rows[start : start + AT_ONCE], start):
            arch = random.Random(f"arch {seed} {turn}").choice(ARCHITECTURES)
            matrix = seen[row["matrix_digest"]]
            head = header(Op(row["op"]), row["n"], DType(row["dtype"]).short, arch, matrix.size)
            told.append(parts(head, matrix.shown, style))
        texts = iter(
            list(
                encoded(tokenizer, [p for one in told for p in one if isinstance(p, str)], AT_ONCE)
            )
        )
        for one in told:
            pieces = [next(texts) if isinstance(part, str) else part for part in one]
            yield [id for piece in pieces for id in piece]
