"""Loading and saving: a base model, perhaps an adapter, and the tokenizer that goes with them.

A base is ``tiny``, a folder of this project (with a manifest), any folder or hub id that
``transformers`` loads, or ``gemma-3-270m``. An adapter is a folder of this project. Folders never
need a network.
Left out on purpose: anything that trains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers import PreTrainedTokenizerBase as Tokenizer

from suite.models import adapters, gemma, manifest
from suite.models.embedding import PROJECTION, attach
from suite.models.errors import ModelError
from suite.models.lm import CausalLM
from suite.models.manifest import Manifest
from suite.models.prompt import Encoding, Parts, PromptStyle, assembled, told
from suite.models.sampler import SHOWN
from suite.models.variants import BASE, TINY, weights
from suite.problem import Problem

LOCAL: dict[str, Any] = {"local_files_only": True}
PROBED = 64  # values of each parameter that a fingerprint looks at
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")


@dataclass(frozen=True, eq=False)
class Policy:
    """A model that reads matrices, ready to generate.

    Attributes:
        model: With the coordinate embedding attached.
        tokenizer: Text to ids below V and back.
        style: What it reads.
        base: Fingerprint of the base model.
    """

    model: CausalLM
    tokenizer: Tokenizer
    style: PromptStyle
    base: str

    @property
    def end(self) -> int:
        """Id of the token that ends a program."""
        return int(self.tokenizer.eos_token_id)

    @property
    def pad(self) -> int:
        """Id of the token that fills batches."""
        known = self.tokenizer.pad_token_id
        return self.end if known is None else int(known)

    def prompt(self, problem: Problem, arch: str) -> list[int]:
        """The prompt for a problem as token ids, with a token for the beginning where it is usual.

        Args:
            problem: What is asked.
            arch: The architecture to write for, ``sm_90``.
        """
        return self.assemble(told(problem, arch, self.style))

    def assemble(self, parts: Parts) -> list[int]:
        """The same from its pieces."""
        return [*self.begin, *assembled(parts, self.encode)]

    @property
    def begin(self) -> list[int]:
        """The token that every text begins with, where that is usual."""
        usual = self.tokenizer.encode("//")[:1]
        return usual if usual == [self.tokenizer.bos_token_id] else []

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, with no special tokens around them."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids; special tokens leave none."""
        text = self.tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return str(text)


def load(
    base: str | Path,
    adapter: Path | None = None,
    *,
    device: str = "cpu",
    encoding: Encoding = Encoding.COORDINATES,
    shown: int = SHOWN,
    dtype: torch.dtype | None = None,
) -> Policy:
    """A policy for generation; an adapter is merged into the base.

    Args:
        base: ``tiny``, a folder, a hub id or ``gemma-3-270m``.
        adapter: A folder that ``save_adapter`` wrote; says encoding and number shown itself.
        device: ``cpu`` or ``cuda``.
        encoding: Without an adapter: how nonzeros are told.
        shown: Without an adapter: how many.
        dtype: Of the weights; bfloat16 on a GPU and float32 on the CPU where left out.

    Raises:
        ModelError: Something is missing, damaged or does not belong together.
    """
    known = manifest.read(adapter, "adapter") if adapter else None
    model, tokenizer, print_of_base = load_base(base)
    if known is not None and adapter is not None:
        if known.base != print_of_base:
            raise ModelError(
                f"{adapter}: was trained on another base ({known.base}) than {base}"
                f" ({print_of_base}); give the base that it was trained on"
            )
        tokenizer = _tokenizer(adapter, LOCAL) if _has_tokenizer(adapter) else tokenizer
        model = adapters.merge(model, adapter, known.vocabulary)
        encoding, shown = Encoding(known.encoding), known.shown
    attach(model)
    default = torch.bfloat16 if device.startswith("cuda") else torch.float32
    model = in_precision(model.to(device=device), dtype or default).eval().requires_grad_(False)
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    _check_tokenizer(tokenizer, vocabulary, adapter or base)
    return Policy(model, tokenizer, PromptStyle(encoding, vocabulary, shown), print_of_base)


def load_base(base: str | Path) -> tuple[CausalLM, Tokenizer, str]:
    """Model, tokenizer and fingerprint of a base, float32, on the CPU.

    A folder of this project is held to its manifest. Where its weights have a projection for
    coordinates, the coordinate embedding is attached with it.

    Raises:
        ModelError: It cannot be loaded.
    """
    if str(base) == TINY:
        base = weights() / BASE
    folder = Path(base)
    options: dict[str, Any] = {}
    source = str(base)
    if source == gemma.NAME:
        path = gemma.gguf_file()
        source, options = str(path.parent), {"gguf_file": path.name, **LOCAL}
    elif folder.exists() or folder.is_absolute() or source.startswith((".", "~")):
        folder = folder.expanduser()
        source, options = str(folder), LOCAL
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder}: has no config.json; give the folder of a model")
        if not _has_tokenizer(folder):
            raise ModelError(f"{folder}: has no tokenizer; save the model's tokenizer beside it")
    known = manifest.read(folder, "base") if (folder / manifest.NAME).is_file() else None
    model = _model(source, options)
    found = fingerprint(model)
    if known is not None and known.base != found:
        raise ModelError(
            f"{folder}: its weights are not those of its manifest; get the folder again"
        )
    if options and "gguf_file" not in options:
        _load_projection(model, folder)
    return model, _tokenizer(source, options), found


def save_base(
    model: CausalLM,
    tokenizer: Tokenizer,
    folder: Path,
    source: str,
    dtype: torch.dtype = torch.bfloat16,
) -> Manifest:
    """Writes a base as this project ships it; the model is left as it is.

    Args:
        model: Without adapters.
        tokenizer: Saved beside it.
        folder: Made, or written over.
        source: Where the weights come from, in words.
        dtype: Of the weights on disk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: value.to(dtype) for name, value in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=state)
    tokenizer.save_pretrained(folder)
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    return manifest.write(folder, Manifest("base", fingerprint(model), vocabulary, source=source))


def fingerprint(model: CausalLM) -> str:
    """Tells weights apart, wherever and in whatever precision of 16 bits or more they are loaded.

    Looks at names, shapes and ``PROBED`` values of every parameter, rounded to bfloat16. The
    projection of coordinates does not count: a base is the same with and without it.
    """
    h = hashlib.blake2b(str(model.config.model_type).encode(), digest_size=8)
    for name, value in sorted(model.named_parameters()):
        if PROJECTION in name:
            continue
        h.update(f"{name}{tuple(value.shape)}".encode())
        flat = value.detach().reshape(-1)
        count = min(PROBED, flat.numel())
        at = torch.arange(count) * (flat.numel() - 1) // max(count - 1, 1)
        probed = flat[at.to(flat.device)].to(torch.bfloat16).cpu()
        h.update(probed.view(torch.int16).numpy().tobytes())
    return h.hexdigest()


def in_precision(model: CausalLM, dtype: torch.dtype) -> Any:
    """Converts weights and nothing else, in place.

    ``Module.to`` would round the frequencies of rotary positions as well: in 16 bits they are off
    by up to 0.2 %, which is most of a radian a thousand tokens on.
    """
    for _, value in model.named_parameters():
        value.data = value.data.to(dtype)
    return model


def _model(source: str, options: dict[str, Any]) -> CausalLM:
    options = {"dtype": torch.float32, "output_loading_info": True} | options
    loaded: Any = AutoModelForCausalLM.from_pretrained
    try:
        model, info = loaded(source, **options)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"{source}: {_first_line(error)}; it cannot be loaded as a model"
        ) from error
    lacking = sorted({*info["missing_keys"], *(str(key[0]) for key in info["mismatched_keys"])})
    if lacking:
        few = ", ".join(lacking[:3])
        raise ModelError(
            f"{source}: {len(lacking)} weights are missing or of another shape ({few});"
            " get the model again"
        )
    return cast("CausalLM", model)


def _tokenizer(source: str | Path, options: dict[str, Any]) -> Tokenizer:
    # One of this project says all there is to it; what suits the model's kind may add tokens.
    ours = (Path(source) / manifest.NAME).is_file() and (Path(source) / "tokenizer.json").is_file()
    load: Any = (PreTrainedTokenizerFast if ours else AutoTokenizer).from_pretrained
    try:
        return cast("Tokenizer", load(str(source), **options))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{source}: its tokenizer cannot be loaded: {_first_line(error)}"
        ) from error


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def _check_tokenizer(tokenizer: Tokenizer, vocabulary: int, where: str | Path) -> None:
    if tokenizer.eos_token_id is None:
        raise ModelError(f"{where}: its tokenizer has no end token; set eos_token")
    if len(tokenizer) > vocabulary:
        raise ModelError(
            f"{where}: its tokenizer has {len(tokenizer)} tokens and its model {vocabulary};"
            " they do not belong together"
        )


def _load_projection(model: CausalLM, folder: Path) -> None:
    """Takes the projection from a base that was saved with it; ``transformers`` passes over it."""
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if f".{PROJECTION}." in name]  # noqa: SIM118
            found |= {name.rpartition(".")[2]: file.get_tensor(name) for name in names}
    if found:
        attach(model).coordinate_projection.load_state_dict(found)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
