"""Runs stage two from wherever its folder stands to a finished adapter, or to the session's end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from transformers import PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from suite.models import policy
from suite.models.adapters import save_adapter
from suite.models.embedding import attach
from suite.models.errors import ModelError
from suite.models.prompt import Encoding, PromptStyle
from suite.provenance import commit
from training import examples as encoding
from training import seen
from training.curve import Curve
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.pairs import read_pairs
from training.plan import plan
from training.policies import device_of
from training.session import alone
from training.settled import RUN, settle
from training.sft import SftConfig, candidate_steps, decisive
from training.sft_trainer import Listener, complete, step_of, train
from training.shipping import ship
from training.tracking import STATE, RunLog

CHOICE, ADAPTER = "choice.json", "adapter"


@dataclass(frozen=True)
class Outcome:
    """Where a session left the run.

    Attributes:
        step: Steps done, of all sessions.
        steps: Steps in all.
        adapter: The finished adapter's folder; None before the end.
        log: Which MLflow run has the curve, or why none has.
    """

    step: int
    steps: int
    adapter: Path | None
    log: str


def sft(config: SftConfig, say: Callable[[str], None], box: TimeBox | None = None) -> Outcome:
    """Trains, resuming where the folder's checkpoint is, and chooses among the candidates.

    Args:
        config: What to do.
        say: Gets a line of progress now and then.
        box: When to stop; by default the configuration's minutes.

    Raises:
        ConfigError: Lists every mistake of the configuration.
        TrainingError: Pairs, base or checkpoint cannot be used.
    """
    box = box or TimeBox(config.minutes)
    config.check()
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(["device cuda: there is no GPU here, or torch cannot use it"])
    with alone(config.out):
        return _Run(config, say, box).go()


class _Run:
    """One session."""

    def __init__(self, config: SftConfig, say: Callable[[str], None], box: TimeBox) -> None:
        self._config, self._say, self._box = config, say, box
        quiet: Any = disable_progress_bar  # has no types
        quiet()
        self._device = device_of(config.device)
        held = {folder: read_pairs(folder) for folder in config.pairs}
        matrices: dict[str, seen.Seen] = {}
        for folder, mine in held.items():
            matrices |= seen.read(seen.of_pairs(folder, mine, say))
        pairs = pa.concat_tables(held.values())
        try:
            self._model, tokenizer, self._base = policy.load_base(config.base)
        except ModelError as error:
            raise TrainingError(f"base {config.base}: {error}") from error
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise TrainingError(f"base {config.base}: a slow tokenizer; a fast one is needed")
        self._tokenizer = tokenizer
        attach(self._model)
        vocabulary = int(self._model.get_input_embeddings().num_embeddings)
        self._style = PromptStyle(Encoding(config.competitor.encoding), vocabulary)
        begin = policy.Policy(self._model, tokenizer, self._style, self._base).begin
        self._examples = encoding.make(
            pairs, matrices, tokenizer, self._style, begin, config.longest, config.seed
        )
        self._check_positions()
        self._plan = plan(self._examples.lengths, config.tokens, config.epochs, config.seed)
        self._steps = len(self._plan)
        total, many = len(self._examples.ids), len(self._examples)
        say(
            f"{many:,} examples of {total / many:,.0f} tokens, {self._examples.dropped:,} longer"
            f" ones dropped; {self._steps:,} steps"
        )
        self._hold_to_earlier()
        last = complete(config.out / "checkpoints")
        self._done = step_of(last) if last else 0
        self._curve = Curve(config.out, self._done)
        self._log = RunLog(
            config.out,
            f"sft {config.variant}",
            vars(config),
            _tags(self._device, self._base, self._examples.digest),
            config.tracking == "on",
        )

    def go(self) -> Outcome:
        """Trains and chooses, as far as the session goes."""
        config, status = self._config, "KILLED"
        try:
            if not self._candidate(self._steps).is_dir():
                self._done = self._train()
            else:
                self._done = self._steps
            if self._done == self._steps and self._choose():
                status = "FINISHED"
        except BaseException:
            status = "FAILED"
            raise
        finally:
            self._log.log([p for p in self._curve if p.step <= self._done], status)
        return Outcome(
            step=self._done,
            steps=self._steps,
            adapter=config.out / ADAPTER if status == "FINISHED" else None,
            log=self._log.failure or self._log.where,
        )

    def _train(self) -> int:
        def saved(step: int) -> None:
            self._done = step
            self._log.log([p for p in self._curve if p.step <= step])

        return train(
            self._config,
            self._model,
            self._tokenizer,
            self._examples,
            self._plan,
            self._device,
            self._kept_at(),
            Listener(self._curve.add, saved, self._keep, self._say),
            self._box,
        )

    def _kept_at(self) -> list[int]:
        return candidate_steps(self._steps, self._config.candidates if self._config.select else 1)

    def _candidate(self, step: int) -> Path:
        return self._config.out / "candidates" / f"step-{step}"

    def _keep(self, model: Any, step: int) -> None:
        """Saves a candidate, whole or not at all."""
        folder, draft = self._candidate(step), self._candidate(step).with_name(f".step-{step}")
        for old in (folder, draft):
            shutil.rmtree(old, ignore_errors=True)
        source = f"sft, step {step} of {self._steps}, seed {self._config.seed}"
        save_adapter(model, draft, self._style, (self._base, self._style.vocabulary), source)
        draft.rename(folder)

    def _choose(self) -> bool:
        """Puts the best candidate where the finished adapter is to be, if there is time."""
        best: int | None = self._steps
        if self._config.select:
            from training.selection import choose

            folders = {step: self._candidate(step) for step in self._kept_at()}
            found = {step: folder for step, folder in folders.items() if folder.is_dir()}
            path, over = self._config.out / CHOICE, lambda: self._box.over
            best = choose(self._config, found, self._device, path, self._say, over)
        if best is None:
            return False
        target, draft = self._config.out / ADAPTER, self._config.out / f".{ADAPTER}"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(self._candidate(best), draft)
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        size = sum(path.stat().st_size for path in target.glob("*.safetensors"))
        self._say(f"{target}: step {best:,}, {size / 1e6:.2f} MB")
        if self._config.ship:
            shipped = ship(self._config.base, target, self._config.competitor, self._config.ship)
            self._say(f"{shipped}: the suite finds it with SPARSERL_WEIGHTS={self._config.ship}")
        return True

    def _check_positions(self) -> None:
        config: Any = self._model.config
        most = int(getattr(config.get_text_config(), "max_position_embeddings", 0) or 1 << 31)
        longest = int(self._examples.lengths.max())
        if longest > most:
            raise TrainingError(
                f"base {self._config.base}: has {most:,} positions and an example has {longest:,}"
                " tokens; lower --longest or take another base"
            )

    def _hold_to_earlier(self) -> None:
        """Refuses to go on with another run; starts one where there is none."""
        mine = decisive(self._config, self._base, self._examples.digest, self._steps)
        if not (self._config.out / RUN).exists():
            for name in (STATE, "curve.jsonl", CHOICE):
                (self._config.out / name).unlink(missing_ok=True)
        settle(self._config.out, mine)


def _tags(device: str, base: str, examples: str) -> dict[str, Any]:
    source = commit()
    tags = {
        "stage": "sft",
        "commit": source.id,
        "dirty": source.dirty,
        "device": torch.cuda.get_device_name() if device != "cpu" else "cpu",
        "base": base,
        "examples": examples,
    }
    for name in ("torch", "transformers", "trl", "peft"):
        try:
            tags[f"version.{name}"] = version(name)
        except PackageNotFoundError:
            continue
    return tags
