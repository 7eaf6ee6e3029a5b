"""Runs stage one from wherever its folder stands to the end, or to where the session must stop."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from suite.models.manifest import digest as sha256
from suite.provenance import commit
from training import checkpoint, packing
from training.batches import Batches
from training.curve import Curve
from training.errors import ConfigError, TrainingError
from training.model import with_lora
from training.pace import Pace, TimeBox, clock_text
from training.pretrain import PretrainConfig, decisive, mistakes
from training.schedule import cosine
from training.session import alone
from training.steps import Stepper, adamw
from training.tracking import STATE, RunLog

CHECKPOINT = "checkpoint.pt"
MODEL = "model"


@dataclass(frozen=True)
class Outcome:
    """Where a session left the run.

    Attributes:
        step: Steps done, of all sessions.
        steps: Steps in all.
        model: The finished model's folder; None before the end.
        validation: The latest validation loss, in nats a token; None before the first.
        log: Which MLflow run has the curve, or why none has.
    """

    step: int
    steps: int
    model: Path | None
    validation: float | None
    log: str


def pretrain(
    config: PretrainConfig, say: Callable[[str], None], box: TimeBox | None = None
) -> Outcome:
    """Trains, resuming where the folder's checkpoint is.

    Args:
        config: What to do.
        say: Gets a line of progress now and then.
        box: When to stop; by default the configuration's minutes.

    Raises:
        ConfigError: Lists every mistake of the configuration.
        TrainingError: Data, base or checkpoint cannot be used.
    """
    box = box or TimeBox(config.minutes)
    meta = packing.read_meta(config.data)
    wrong = mistakes(config, meta)
    if config.device == "cuda" and not torch.cuda.is_available():
        wrong.append("device cuda: there is no GPU here, or torch cannot use it")
    if not (config.data / "tokenizer").is_dir():
        wrong.append(f"data {config.data}: has no tokenizer folder; pack the corpus again")
    if wrong:
        raise ConfigError(wrong)
    with alone(config.out):
        for half in config.out.glob(f".{CHECKPOINT}.*"):  # of a session that was killed
            half.unlink()
        return _Run(config, meta, say, box).go()


class _Run:
    """One session."""

    def __init__(
        self, config: PretrainConfig, meta: packing.Meta, say: Callable[[str], None], box: TimeBox
    ) -> None:
        self._config, self._meta, self._say, self._box = config, meta, say, box
        self._device = _device(config.device)
        self._decisive = decisive(config, meta)
        self._path = config.out / CHECKPOINT
        known = checkpoint.load(self._path, self._decisive)
        self._step = self._saved = known.step if known else 0
        self._pending: list[torch.Tensor] = []  # losses since the last line of the curve
        self._train, self._held_out = (self._batches(split) for split in packing.SPLITS)
        self._model = self._build().to(self._device)
        self._optimizer = adamw(self._model, config.weight_decay, self._device)
        if known:
            self._restore(known)
        else:
            torch.manual_seed(config.seed)
            for name in (STATE, "curve.jsonl"):  # of a run whose checkpoint was deleted
                (config.out / name).unlink(missing_ok=True)
        self._curve = Curve(config.out, self._step)
        self._log = RunLog(
            config.out,
            f"pretrain {config.base}",
            vars(config),
            _tags(self._device, meta),
            config.tracking == "on",
        )

    def go(self) -> Outcome:
        """Trains to the end or to the end of the session."""
        config, status = self._config, "KILLED"
        try:
            self._steps()
            if self._step == config.steps:
                self._export()
                status = "FINISHED"
        except BaseException:
            status = "FAILED"
            raise
        finally:
            self._log.log(self._covered(), status)
        losses = [
            p.figures["validation_loss"] for p in self._curve if "validation_loss" in p.figures
        ]
        return Outcome(
            step=self._step,
            steps=config.steps,
            model=config.out / MODEL if status == "FINISHED" else None,
            validation=losses[-1] if losses else None,
            log=self._log.failure or self._log.where,
        )

    def _steps(self) -> None:
        config = self._config
        if self._step == config.steps:
            return
        compiled = config.compile == "on" or (config.compile == "auto" and self._device != "cpu")
        self._model.train()
        stepper = Stepper(
            forward=torch.compile(self._model, dynamic=False) if compiled else self._model,
            trained=[p for p in self._model.parameters() if p.requires_grad],
            optimizer=self._optimizer,
            device=self._device,
            parts=config.accumulate,
            clip=config.clip,
        )
        if self._step == 0:
            self._evaluate(stepper)
        pace = Pace(config.batch * config.length)
        pace.start(self._step)
        while self._step < config.steps and not self._box.over:
            lr = cosine(self._step, config.steps, config.warmup, config.lr, config.lr_end)
            loss, norm = stepper.step(self._train.at(self._step), lr)
            self._step += 1
            self._pending.append(loss)
            done = self._step == config.steps
            if done or self._step % config.log_every == 0:
                self._report(float(torch.stack(self._pending).mean()), float(norm), lr, pace)
                self._pending = []
            if done or self._step % config.evaluate_every == 0:
                self._evaluate(stepper)
                pace.start(self._step)
            if done or self._step % config.save_every == 0:
                self._save()
                pace.start(self._step)
        if self._saved != self._step:
            self._save()

    def _report(self, loss: float, norm: float, lr: float, pace: Pace) -> None:
        if not math.isfinite(loss):
            raise TrainingError(
                f"step {self._step}: the loss is {loss}; start over with a lower --lr or --clip"
            )
        config = self._config
        speed, left = pace.lap(self._step, config.steps)
        tokens = self._step * config.batch * config.length
        figures = {"loss": loss, "lr": lr, "gradient_norm": norm}
        self._curve.add(self._step, {**figures, "tokens_per_s": speed, "tokens": float(tokens)})
        self._say(
            f"step {self._step:,}/{config.steps:,}  loss {loss:.4f}  lr {lr:.2e}"
            f"  {speed / 1000:,.1f}k tokens/s  ETA {clock_text(left)}"
        )

    def _evaluate(self, stepper: Stepper) -> None:
        count = self._config.evaluate_batches
        loss = sum(stepper.evaluate(self._held_out.fixed(i)) for i in range(count)) / count
        tokens, size = self._meta.tokens["validation"], self._meta.text_bytes["validation"]
        bits = loss / math.log(2) * tokens / size
        self._curve.add(self._step, {"validation_loss": loss, "validation_bits_per_byte": bits})
        self._say(f"step {self._step:,}  validation loss {loss:.4f}, {bits:.4f} bits a byte")

    def _save(self) -> None:
        began = time.monotonic()
        weights = {n: p.detach() for n, p in self._model.named_parameters() if p.requires_grad}
        state = checkpoint.Checkpoint(
            step=self._step,
            decisive=self._decisive,
            weights=weights,
            optimizer=self._optimizer.state_dict(),
            rng=checkpoint.rng_state(),
            pending=[float(loss) for loss in self._pending],
        )
        checkpoint.save(self._path, state)
        self._saved = self._step
        self._box.saved(time.monotonic() - began)
        self._log.log(self._covered())

    def _covered(self) -> list[Any]:
        """Points of the curve up to the last checkpoint."""
        return [p for p in self._curve if p.step <= self._saved]

    def _restore(self, known: checkpoint.Checkpoint) -> None:
        mine = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, value in known.weights.items():
                mine[name].copy_(value)
        self._optimizer.load_state_dict(known.optimizer)
        checkpoint.restore_rng(known.rng)
        self._pending = list(torch.tensor(known.pending, device=self._device))
        self._say(f"goes on at step {self._step:,} of {self._config.steps:,}")

    def _build(self) -> Any:
        config, meta = self._config, self._meta
        if config.tiny:
            return config.shape(meta.vocabulary).build(meta.end, _pad(meta), config.seed)
        return with_lora(
            config.base, config.lora_rank, config.lora_alpha, meta.vocabulary, config.seed
        )

    def _batches(self, split: str) -> Batches:
        config = self._config
        tokens = packing.read(config.data, split, self._meta)
        return Batches(tokens, self._meta.end, config.batch, config.length, config.seed)

    def _export(self) -> None:
        """The finished model with its tokenizer: 16-bit weights, or adapters alone."""
        folder = self._config.out / MODEL
        draft = folder.with_name(f".{MODEL}")
        shutil.rmtree(draft, ignore_errors=True)
        model: Any = self._model
        quiet: Any = disable_progress_bar  # has no types
        quiet()
        if self._config.tiny:
            state = {name: value.to(torch.bfloat16) for name, value in model.state_dict().items()}
            model.config.dtype = torch.bfloat16
            model.save_pretrained(draft, state_dict=state)
        else:
            model.save_pretrained(draft)
        shutil.copytree(self._config.data / "tokenizer", draft, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        for path in sorted(folder.glob("*.safetensors")):
            self._say(f"{path}: {path.stat().st_size / 1e6:.1f} MB, SHA-256 {sha256(path)[:16]}…")


def _device(asked: str) -> str:
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return asked


def _pad(meta: packing.Meta) -> int:
    """Padding is the special token beside the end token; see ``training.tokenizer``."""
    return 1 - meta.end if meta.end in (0, 1) else meta.end


def _tags(device: str, meta: packing.Meta) -> dict[str, Any]:
    source = commit()
    tags = {
        "stage": "pretrain",
        "commit": source.id,
        "dirty": source.dirty,
        "device": torch.cuda.get_device_name() if device != "cpu" else "cpu",
        "corpus": meta.corpus,
        "tokens": meta.sha256["train"],
    }
    for name in ("torch", "transformers", "tokenizers", "peft"):
        try:
            tags[f"version.{name}"] = version(name)
        except PackageNotFoundError:
            continue
    return tags
