"""``python -m training tokenizer``: fits a byte-level BPE on corpus and program language."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from training.errors import ConfigError, TrainingError

HELP = "fit a tokenizer on the corpus and the program language"
LANGUAGE_WEIGHT = 2  # so that programs count nearly as much as the corpus's kernels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--out", type=Path, required=True, help="folder of the tokenizer")
    parser.add_argument("--vocabulary", type=int, default=2048, help="tokens (default: 2048)")
    parser.add_argument(
        "--programs",
        type=int,
        default=6_000,
        help="the teacher's, 30 on a matrix, each counted twice (default: 6000)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the language's texts (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: There is no corpus, or a number is out of range.
    """
    if arguments.programs < 0:
        raise ConfigError([f"programs {arguments.programs}: 0 or more"])
    digest = read_corpus_digest(arguments.corpus)
    from training import language, tokenizer
    from training.corpus.documents import read_documents

    kernels = [d.text for d in read_documents(arguments.corpus / "train.parquet") if d.kernel]
    made = list(language.samples(arguments.programs, arguments.seed))
    fitted = tokenizer.fit([*kernels, *made * LANGUAGE_WEIGHT], arguments.vocabulary)
    card = tokenizer.Card(
        vocabulary=len(fitted),
        corpus=digest,
        texts=len(kernels),
        language_texts=len(made),
        bytes_per_token=round(tokenizer.bytes_per_token(fitted, kernels), 3),
        language_bytes_per_token=round(tokenizer.bytes_per_token(fitted, made), 3),
    )
    tokenizer.save(fitted, arguments.out, card)
    print(
        f"{arguments.out}: {card.vocabulary:,} tokens, {card.bytes_per_token} bytes a token on"
        f" {card.texts:,} files with kernels, {card.language_bytes_per_token} on the language"
    )
    return 0


def read_corpus_digest(folder: Path) -> str:
    """Digest of a corpus's training texts, from its data card.

    Raises:
        TrainingError: The folder holds no corpus.
    """
    path = folder / "card.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["splits"]["train"]["sha256"])
    except (OSError, ValueError, KeyError) as error:
        raise TrainingError(
            f"{path}: no data card ({type(error).__name__}); build the corpus with"
            " python -m training corpus"
        ) from error
