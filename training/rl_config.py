"""What ``python -m training rl`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from training.curriculum import GPU, SMALL, Band, Curriculum, bands_of
from training.errors import ConfigError

Bands = tuple[Band, ...]
AUTO = "auto"


@dataclass(frozen=True)
class RlConfig:
    """Everything that decides what a run of reinforcement learning does."""

    out: Annotated[Path, "folder of the run: checkpoint, curve, adapter"]
    adapter: Annotated[Path, "folder of the adapter to go on from, of python -m training sft"]
    base: Annotated[str, "tiny, a folder, or a hub id: what the adapter was trained on"] = "tiny"
    algorithm: Annotated[
        Literal["grpo", "rloo", "best_of_n"], "how a group's rewards become updates"
    ] = "grpo"
    reward: Annotated[str, "named weights of the reward, see training/rewards.json"] = "sparserl"
    steps: Annotated[int, "rounds of programs in all"] = 80
    problems: Annotated[int, "problems a step"] = 16
    group: Annotated[int, "programs of each problem"] = 16
    window: Annotated[int, "matrices that are there at a time"] = 24
    fresh: Annotated[int, "matrices that join, and leave, at a step"] = 2
    matrices: Annotated[str, "bands of entries, SHARE:LEAST:MOST,…; auto: as suits the device"] = (
        AUTO
    )
    batch: Annotated[int, "programs that gradients are computed of at a time"] = 64
    updates: Annotated[int, "of the weights, from the programs of a step"] = 1
    lr: Annotated[float, "learning rate"] = 5e-4
    warmup: Annotated[int, "steps over which it rises"] = 4
    clip: Annotated[float, "largest norm of a step's gradients"] = 1.0
    temperature: Annotated[float, "of the samples"] = 1.0
    limit: Annotated[int, "tokens of a program, at most"] = 1024
    rows: Annotated[int, "programs that are generated at a time"] = 256
    noise: Annotated[float, "spread of rewards that is taken for noise"] = 0.05
    diversity: Annotated[float, "weight of rare strategies among the right programs"] = 0.1
    margin: Annotated[float, "how far in reward from its group's best a rare one may be"] = 0.2
    entropy: Annotated[float, "weight of the entropy of tokens"] = 0.0
    guide: Annotated[
        Literal["on", "off"], "the fastest known program of a problem joins its group"
    ] = "off"
    seed: Annotated[int, "of matrices and samples"] = 0
    device: Annotated[Literal["auto", "cuda", "emulator"], "what judges programs"] = "auto"
    known: Annotated[
        Path | None, "file of what is known of programs, may be shared; in OUT if left out"
    ] = None
    recheck: Annotated[float, "share of what is known that is judged again all the same"] = 0.01
    run_s: Annotated[float, "seconds that a program may take to be verified and timed"] = 2.0
    budget_ms: Annotated[float, "device milliseconds for one time"] = 4.0
    builders: Annotated[int, "processes that build matrices; 0: this one"] = 4
    validate_every: Annotated[int, "steps between looks at validation matrices; 0: none"] = 0
    validate_problems: Annotated[int, "validation problems"] = 24
    validate_samples: Annotated[int, "programs of each"] = 8
    minutes: Annotated[
        float | None, "stop at a checkpoint after this long; no limit if left out"
    ] = None
    save_every: Annotated[int, "steps between checkpoints"] = 5
    tracking: Annotated[Literal["on", "off"], "MLflow"] = "on"

    def curriculum(self, kind: str) -> Curriculum:
        """What is asked, on a device of a kind (``cuda`` or ``emulator``)."""
        return Curriculum(self._bands(kind), self.problems, self.window, self.fresh, self.seed)

    def _bands(self, kind: str) -> Bands:
        if self.matrices == AUTO:
            return GPU if kind == "cuda" else SMALL
        return bands_of(self.matrices)


COUNTS = (
    *("steps", "problems", "window", "batch", "updates", "limit", "rows", "save_every"),
    *("validate_problems", "validate_samples"),
)
# What may differ between the sessions of one run.
SESSION_ONLY = frozenset(
    {"out", "adapter", "base", "device", "known", "recheck", "builders", "minutes", "save_every"}
    | {"tracking", "rows", "validate_every", "validate_problems", "validate_samples"}
)


def mistakes(config: RlConfig) -> list[str]:
    """Everything that is wrong with a configuration, before anything is loaded."""
    from training.reward import names

    def option(name: str) -> str:
        return f"--{name.replace('_', '-')} {getattr(config, name)}"

    wrong = [f"{option(name)}: at least 1" for name in COUNTS if getattr(config, name) < 1]
    checks = {
        f"{option('group')}: at least 2, to compare": config.group >= 2,
        f"{option('fresh')}: from 0 to window ({config.window})": 0
        <= config.fresh
        <= config.window,
        f"{option('window')}: at least as many as problems ({config.problems})": config.window
        >= config.problems,
        f"{option('batch')} {option('updates')}: their product must divide problems times group"
        f" ({config.problems * config.group})": min(config.batch, config.updates) > 0
        and config.problems * config.group % (config.batch * config.updates) == 0,
        f"{option('lr')}: above 0, below 1": 0 < config.lr < 1,
        f"{option('warmup')}: 0 or more": config.warmup >= 0,
        f"{option('clip')}: above 0": config.clip > 0,
        f"{option('temperature')}: above 0, at most 3": 0 < config.temperature <= 3,
        f"{option('noise')}: from 0 to 1": 0 <= config.noise <= 1,
        f"{option('diversity')}: from 0 to 1": 0 <= config.diversity <= 1,
        f"{option('margin')}: from 0 to 5": 0 <= config.margin <= 5,
        f"{option('entropy')}: from 0 to 1": 0 <= config.entropy <= 1,
        f"{option('recheck')}: from 0 to 1": 0 <= config.recheck <= 1,
        f"{option('run_s')}: above 0": config.run_s > 0,
        f"{option('budget_ms')}: above 0": config.budget_ms > 0,
        f"{option('builders')}: 0 or more": config.builders >= 0,
        f"{option('validate_every')}: 0 or more": config.validate_every >= 0,
        f"{option('seed')}: 0 or more": config.seed >= 0,
        f"{option('minutes')}: above 0": config.minutes is None or config.minutes > 0,
        f"{option('reward')}: {', '.join(names())} are known": config.reward in names(),
    }
    wrong += [text for text, right in checks.items() if not right]
    try:
        config.curriculum("cuda")
    except ConfigError as error:
        wrong += error.mistakes
    return wrong


def decisive(config: RlConfig) -> dict[str, str]:
    """What must be the same in all sessions of a run, as plain text."""
    return {k: str(v) for k, v in vars(config).items() if k not in SESSION_ONLY}
