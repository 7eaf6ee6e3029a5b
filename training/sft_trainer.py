"""TRL's SFTTrainer on batches of this project's own plan, resumable at any kill.

Left to TRL: loss, LoRA, optimiser, schedule, checkpoints. Ours: which examples make up a step, and
when a session stops. A checkpoint counts once it is marked complete, and the one before stays until
then.

On a GPU the base is in 16 bits, what is trained in 32, and autocast brings them together.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.sft_config import SFTConfig as Arguments
from trl.trainer.sft_trainer import SFTTrainer

from suite.models.adapters import lora
from suite.models.lm import CausalLM
from suite.models.policy import in_precision
from training import batch_rows
from training.errors import TrainingError
from training.examples import Examples
from training.pace import TimeBox, clock_text
from training.sft import SftConfig

HALF = {"cuda": True, "cpu": False}  # whether to compute in 16 bits
COMPLETE = "complete"  # a file in a checkpoint that was written to its end
SHOWN = {  # names of the curve for those of TRL
    "loss": "loss",
    "learning_rate": "lr",
    "grad_norm": "gradient_norm",
    "mean_token_accuracy": "token_accuracy",
    "entropy": "entropy",
}


@dataclass(frozen=True)
class Listener:
    """Who hears of a run.

    Attributes:
        log: Gets step and figures of a line of the curve.
        saved: Called after a checkpoint, with its step.
        keep: Gets model and step of a candidate.
        say: Gets a line for a person.
    """

    log: Callable[[int, Mapping[str, float]], None]
    saved: Callable[[int], None]
    keep: Callable[[Any, int], None]
    say: Callable[[str], None]


def complete(folder: Path) -> Path | None:
    """The latest checkpoint that was written to its end."""
    found = [mark.parent for mark in folder.glob(f"checkpoint-*/{COMPLETE}")]
    return max(found, key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """After how many steps a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def train(
    config: SftConfig,
    model: CausalLM,
    tokenizer: Any,
    examples: Examples,
    plan: Sequence[np.ndarray],
    device: str,
    keep_at: Collection[int],
    listener: Listener,
    box: TimeBox,
) -> int:
    """Trains from the last checkpoint to the end, or to where the session must stop.

    Args:
        config: What is asked for.
        model: The base; gets its adapters here.
        tokenizer: The base's.
        examples: To learn from.
        plan: Which of them in each step.
        device: ``cpu`` or ``cuda``.
        keep_at: Steps of the candidates.
        listener: Who hears of it.
        box: When to stop.

    Returns:
        Steps done, of all sessions.

    Raises:
        TrainingError: The loss is not finite.
    """
    folder = config.out / "checkpoints"
    last = _latest(folder)
    trained: Any = model
    if HALF[device]:
        trained = in_precision(trained, torch.bfloat16)
    pad = tokenizer.pad_token_id
    pad = tokenizer.eos_token_id if pad is None else pad
    make: Any = _Trainer
    trainer: Any = make(
        model=trained,
        args=_arguments(config, folder, len(plan), device),
        train_dataset=batch_rows.rows(examples, plan, int(pad)),
        data_collator=batch_rows.only,
        processing_class=tokenizer,
        peft_config=lora(trained, config.rank),
        callbacks=[_Follow(config, examples, plan, keep_at, listener, box)],
    )
    trainer.remove_callback(PrinterCallback)
    for value in trainer.model.parameters():
        if value.requires_grad:  # steps of the optimiser are smaller than 16 bits can tell
            value.data = value.data.float()
    for module in trainer.model.modules():
        if hasattr(module, "cast_input_dtype_enabled"):  # autocast does it, where it must be done
            module.cast_input_dtype_enabled = not HALF[device]
    if last:
        listener.say(f"goes on at step {step_of(last):,} of {len(plan):,}")
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    return int(trainer.state.global_step)


def _latest(folder: Path) -> Path | None:
    """The checkpoint to go on from; what a kill left half-written is removed.

    TRL keeps the last two folders, whatever is in them.
    """
    for half in folder.glob("checkpoint-*"):
        if not (half / COMPLETE).is_file():
            shutil.rmtree(half)
    return complete(folder)


def _arguments(config: SftConfig, folder: Path, steps: int, device: str) -> Arguments:
    make: Any = Arguments
    made: Arguments = make(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=1,  # a row is a batch
        dataset_kwargs={"skip_prepare_dataset": True},
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_num_workers=config.workers if device == "cuda" else 0,
        learning_rate=config.lr,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": config.lr_end},
        warmup_steps=min(config.warmup, steps),
        weight_decay=config.weight_decay,
        max_grad_norm=config.clip,
        adam_beta2=0.99,
        optim="adamw_torch_fused" if device == "cuda" else "adamw_torch",
        seed=config.seed,
        data_seed=config.seed,
        bf16=HALF[device],
        use_cpu=device == "cpu",
        gradient_checkpointing=False,
        max_length=None,
        logging_steps=config.log_every,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
    )
    return made


class _Trainer(SFTTrainer):
    """TRL's, without a model card in every checkpoint."""

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """The folder of weights has a manifest."""


class _Follow(TrainerCallback):
    """Tells the listener what happens, and ends a session in time."""

    def __init__(
        self,
        config: SftConfig,
        examples: Examples,
        plan: Sequence[np.ndarray],
        keep_at: Collection[int],
        listener: Listener,
        box: TimeBox,
    ) -> None:
        lengths = examples.lengths
        self._tokens = np.cumsum([0, *(int(lengths[chosen].sum()) for chosen in plan)])
        self._config, self._keep_at = config, frozenset(keep_at)
        self._listener, self._box = listener, box
        self._at, self._step, self._saving = time.monotonic(), 0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._start(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step in self._keep_at:
            self._listener.keep(given["model"], state.global_step)
        if state.global_step == state.max_steps or self._box.over:
            control.should_save = True
            control.should_training_stop = True
        self._saving = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        logs: Mapping[str, float] = given["logs"]
        if "loss" not in logs:  # the summary at the end
            return
        step, steps = state.global_step, state.max_steps
        if not math.isfinite(logs["loss"]):
            raise TrainingError(
                f"step {step}: the loss is {logs['loss']}; start over with a lower --lr"
            )
        seconds = max(time.monotonic() - self._at, 1e-9)
        speed = float(self._tokens[step] - self._tokens[self._step]) / seconds
        left = float(self._tokens[-1] - self._tokens[step]) / max(speed, 1e-9)
        self._start(step)
        figures = {SHOWN[name]: float(v) for name, v in logs.items() if name in SHOWN}
        self._listener.log(
            step, {**figures, "tokens_per_s": speed, "tokens": float(self._tokens[step])}
        )
        self._listener.say(
            f"step {step:,}/{steps:,}  loss {logs['loss']:.4f}"
            f"  lr {logs.get('learning_rate', 0.0):.2e}"
            f"  {speed / 1000:,.1f}k tokens/s  ETA {clock_text(left)}"
        )

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        (folder / COMPLETE).touch()
        self._box.saved(time.monotonic() - self._saving)
        self._listener.saved(state.global_step)
        self._start(state.global_step)

    def _start(self, step: int) -> None:
        """Speed is counted from here: what came before was no training."""
        self._at, self._step = time.monotonic(), step
