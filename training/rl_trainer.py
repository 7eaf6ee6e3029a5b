"""TRL's trainer as a run of reinforcement learning uses it.

TRL has the loop over parts of a batch, the loss and the update. A run gives it programs and their
worth, and is told of every step. Checkpoints and the schedule over sessions are the run's own.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from training.algorithms import ALGORITHMS, Rewards
from training.rl_config import RlConfig
from training.rl_policy import Learner


class Run(Protocol):
    """What a trainer needs of a run.

    Attributes:
        step: Steps done.
        advantages: Of the programs given last, P × G.
    """

    step: int
    advantages: Rewards

    def begin(self) -> None:
        """Told before the first step of a session."""
        ...

    def roll(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Programs for the problems of a step, and their worth."""
        ...

    def check_gradients(self) -> None:
        """Told when gradients are there, before the update."""
        ...

    def stepped(self, logs: dict[str, Any]) -> bool:
        """Told after a step; whether the session is to end."""
        ...


class Trainer(GRPOTrainer):
    """TRL's trainer with the advantages of this project's algorithms."""

    def __init__(self, run: Run, **arguments: Any) -> None:
        self._run = run
        super().__init__(**arguments)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        advantages = self._run.advantages.reshape(-1)
        known = output["advantages"]
        output["advantages"] = torch.as_tensor(advantages, dtype=known.dtype, device=known.device)
        return output


class Watch(TrainerCallback):
    """Tells a run of each step, and keeps updates out that are not numbers."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Before the first step."""
        self._run.begin()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Gradients are there."""
        self._run.check_gradients()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> Any:
        """After a step; ends the session where the run wants that."""
        if "loss" in (logs or {}):
            control.should_training_stop |= self._run.stepped(logs)
        return control


def trainer(
    run: Run, config: RlConfig, learner: Learner, optimizer: torch.optim.Optimizer, gpu: bool
) -> Trainer:
    """A trainer for the steps that are left.

    Args:
        run: Gives programs and is told of steps.
        config: What to do.
        learner: What is trained.
        optimizer: Over what is trained.
        gpu: Whether it is on a GPU.
    """
    left = config.steps - run.step
    first = run.step * config.updates
    prompts = [str(at) for at in range(left * config.problems)]  # the run knows what is asked
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rollout_func.*")  # that it may change
        made = Trainer(
            run,
            model=learner.model,
            reward_funcs=[_worth],
            args=_arguments(config, left, gpu),
            train_dataset=Dataset.from_dict({"prompt": prompts}),
            processing_class=learner.policy.tokenizer,
            callbacks=[Watch(run)],
            optimizers=(optimizer, _schedule(config, optimizer, first)),
            rollout_func=run.roll,
        )
    made.remove_callback(PrinterCallback)
    return made


def _worth(worth: list[float | None], **_: Any) -> list[float | None]:
    """TRL's reward function: what the rollout found."""
    return worth


def _arguments(config: RlConfig, left: int, gpu: bool) -> GRPOConfig:
    batches = config.problems * config.group // config.batch
    return GRPOConfig(
        output_dir=str(config.out / "trl"),
        max_steps=left * config.updates,
        per_device_train_batch_size=config.batch,
        gradient_accumulation_steps=batches // config.updates,
        steps_per_generation=batches,
        num_generations=config.group,
        max_completion_length=config.limit,
        temperature=config.temperature,
        learning_rate=config.lr,
        max_grad_norm=config.clip,
        loss_type=ALGORITHMS[config.algorithm].loss,
        beta=0.0,
        entropy_coef=config.entropy,
        shuffle_dataset=False,
        gradient_checkpointing=False,
        bf16=gpu,
        use_cpu=not gpu,
        seed=config.seed,
        logging_steps=config.updates,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def _schedule(
    config: RlConfig, optimizer: torch.optim.Optimizer, first: int
) -> torch.optim.lr_scheduler.LambdaLR:
    """The rate rises over the first steps of the run; ``first`` updates were made before."""
    for group in optimizer.param_groups:
        group["lr"] = config.lr
        group.pop("initial_lr", None)
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min((first + done + 1) / (config.warmup * config.updates + 1), 1.0)
    )
