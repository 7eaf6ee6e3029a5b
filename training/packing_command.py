"""``python -m training pack``: the corpus as token ids, ready to train on."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from training.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from training.corpus.documents import Document

TEACHER = "teacher"  # stands for the package that a program is from
HELP = "turn the corpus into one row of token ids"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus")
    parser.add_argument(
        "--tokenizer", required=True, help="folder of a tokenizer, or hub id of another base"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the tokens")
    parser.add_argument(
        "--tokens", type=float, default=24e6, help="at most this many to train on (default: 24e6)"
    )
    parser.add_argument(
        "--validation-tokens", type=float, default=5e5, help="likewise held out (default: 5e5)"
    )
    parser.add_argument(
        "--programs",
        type=int,
        default=48_000,
        help="prompts with programs of the teacher to train on beside it (default: 48000)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: Corpus or tokenizer is not there, or an option is wrong.
    """
    budgets = {"train": int(arguments.tokens), "validation": int(arguments.validation_tokens)}
    mistakes = [f"{name}: at least 1 token, not {n}" for name, n in budgets.items() if n < 1]
    if arguments.programs < 0:
        mistakes.append(f"programs {arguments.programs}: 0 or more")
    if mistakes:
        raise ConfigError(mistakes)
    from training import packing, tokenizer
    from training.corpus.documents import read_documents
    from training.tokenizer_command import read_corpus_digest

    corpus = read_corpus_digest(arguments.corpus)
    words = tokenizer.load(arguments.tokenizer)
    vocabulary, end = len(words), int(words.eos_token_id)
    words.save_pretrained(str(arguments.out / "tokenizer"))
    chosen = {
        split: _choose(
            read_documents(arguments.corpus / f"{split}.parquet"), words, most, arguments.seed
        )
        for split, most in budgets.items()
    }
    if empty := [split for split, (documents, _) in chosen.items() if not documents]:
        raise TrainingError(f"{arguments.corpus}: no document of {empty[0]} fits the budget")
    chosen["train"] = _with_programs(*chosen["train"], words, arguments.programs, arguments.seed)
    meta = packing.write(
        arguments.out,
        {s: packing.row(ids, end, vocabulary) for s, (_, ids) in chosen.items()},
        packing.Meta(
            vocabulary=vocabulary,
            end=end,
            tokenizer=tokenizer.digest(arguments.out / "tokenizer"),
            corpus=corpus,
            seed=arguments.seed,
            programs=arguments.programs,
            documents={s: len(documents) for s, (documents, _) in chosen.items()},
            tokens={s: sum(len(i) + 1 for i in ids) for s, (_, ids) in chosen.items()},
            text_bytes={s: sum(len(d.text.encode()) for d in ds) for s, (ds, _) in chosen.items()},
            sha256={},
        ),
    )
    for split in packing.SPLITS:
        size = (arguments.out / f"{split}.npy").stat().st_size / 1e6
        print(
            f"{split}: {meta.documents[split]:,} documents, {meta.tokens[split]:,} tokens,"
            f" {size:.1f} MB"
        )
    return 0


def _choose(
    documents: Sequence[Document], words: PreTrainedTokenizerFast, budget: int, seed: int
) -> tuple[list[Document], list[list[int]]]:
    """Documents within the budget, best first into it, in their final order, with their ids."""
    from training import packing, tokenizer

    best = packing.ranked(documents, seed)
    chosen: dict[Document, list[int]] = {}
    total = 0
    for document, ids in zip(best, tokenizer.encoded(words, [d.text for d in best]), strict=True):
        if total >= budget:
            break
        if total + len(ids) + 1 <= budget:
            chosen[document] = ids
            total += len(ids) + 1
    order = packing.shuffled(list(chosen), seed)
    return order, [chosen[d] for d in order]


def _with_programs(
    documents: Sequence[Document],
    encoded: Sequence[list[int]],
    words: PreTrainedTokenizerFast,
    count: int,
    seed: int,
) -> tuple[list[Document], list[list[int]]]:
    """Documents and their ids with prompts and programs of the teacher among them."""
    from training import language, packing, tokenizer
    from training.corpus.documents import Document

    texts = language.samples(count, seed, workers=len(os.sched_getaffinity(0))) if count else ()
    made = [Document(TEACHER, str(at), True, True, text) for at, text in enumerate(texts)]
    ids = tokenizer.encoded(words, [document.text for document in made])
    every = dict(zip((*documents, *made), (*encoded, *ids), strict=True))
    order = packing.shuffled(list(every), seed)
    return order, [every[document] for document in order]
