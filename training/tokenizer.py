"""Fits the byte-level BPE that ``tiny`` reads and writes with.

Any text comes back as it was, since the alphabet is all 256 bytes. Text is cut before merging:

- a digit stands alone (the first one with the blank before it), so that no number has to be learnt;
- an identifier with its underscores is one piece, with the blank before it;
- a line break takes the next line's indentation along;
- signs run together (``);``, ``//!``), with the blank before them.

The only special tokens are the end of a text and padding. A prompt marks its parts with comment
lines (``// program``), which are ordinary text; the fit sees those too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from training.errors import ConfigError, TrainingError

END, PAD = "<|end|>", "<|pad|>"
SMALLEST, LARGEST = 300, 65_536  # beyond, a packed token takes four bytes
PIECES = r" ?[A-Za-z_]+| ?[0-9]| ?[^\sA-Za-z_0-9]+|\n+[ \t]*|[ \t]+(?=[ \t]\S)|\s"
NAME = "tokenizer.json"


@dataclass(frozen=True)
class Card:
    """What a tokenizer was fitted on, and how well it does.

    Attributes:
        vocabulary: Tokens, special ones included.
        corpus: Digest of the corpus.
        texts: Texts of the corpus that it was fitted on.
        language_texts: Texts of the program language beside them.
        bytes_per_token: On the corpus texts.
        language_bytes_per_token: On the language's.
    """

    vocabulary: int
    corpus: str
    texts: int
    language_texts: int
    bytes_per_token: float
    language_bytes_per_token: float


def fit(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer of at most ``vocabulary`` tokens; fewer when the texts do not give as many.

    Raises:
        ConfigError: The size is out of range.
    """
    if not SMALLEST <= vocabulary <= LARGEST:
        raise ConfigError([f"vocabulary {vocabulary}: from {SMALLEST} to {LARGEST}"])
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    wrap: Any = PreTrainedTokenizerFast  # its constructor has no types
    fitted: PreTrainedTokenizerFast = wrap(
        tokenizer_object=inner, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False
    )
    return fitted


def save(tokenizer: PreTrainedTokenizerFast, folder: Path, card: Card) -> None:
    """Writes the tokenizer as ``transformers`` does, with its card beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(str(folder))
    (folder / "tokenizer_card.json").write_text(f"{json.dumps(asdict(card), indent=1)}\n")


def load(source: str | Path) -> PreTrainedTokenizerFast:
    """A tokenizer from its folder, or from the hub for a name that is no folder.

    Raises:
        TrainingError: There is none, it is not a fast one, or it has no end token.
    """
    local = Path(source).is_absolute() or Path(source).exists()
    if local and not (Path(source) / NAME).is_file():
        raise TrainingError(f"{source}: has no {NAME}; make one with python -m training tokenizer")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), local_files_only=local)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TrainingError(f"{source}: the tokenizer cannot be read: {first}") from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise TrainingError(f"{source}: a slow tokenizer; a {NAME} is needed")
    if tokenizer.eos_token_id is None:
        raise TrainingError(f"{source}: the tokenizer has no end token; set eos_token")
    return tokenizer


def digest(folder: Path) -> str:
    """Tells tokenizers apart: equal ones give equal ids."""
    return hashlib.sha256((folder / NAME).read_bytes()).hexdigest()


def encoded(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], at_once: int = 64
) -> Iterator[list[int]]:
    """Ids of each text, without special tokens; a few texts at a time, on all cores."""
    inner = tokenizer.backend_tokenizer
    for start in range(0, len(texts), at_once):
        batch = inner.encode_batch(list(texts[start : start + at_once]), add_special_tokens=False)
        yield from (one.ids for one in batch)


def bytes_per_token(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> float:
    """How much text a token stands for, on average."""
    tokens = sum(map(len, encoded(tokenizer, texts)))
    return sum(len(text.encode()) for text in texts) / tokens if tokens else 0.0
