"""What ``python -m training sweep`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from training.errors import ConfigError
from training.reward import named, names
from training.rl_config import AUTO, RlConfig
from training.rl_config import mistakes as mistakes_of_rl
from training.sweep.objective import Goal, Mode
from training.sweep.space import ALL, OPTIONS, Choices, Domain, outside, point, space

RECORDED = Path(__file__).parents[2] / "reports/published/h200/heuristic-fit.parquet"
PACE = 512  # programs that a dry second stands for


@dataclass(frozen=True)
class SweepConfig:
    """Everything that decides what a study does."""

    out: Annotated[Path, "folder of the study: database, plots, what is known, its trials"]
    study: Annotated[str, "name of the study"] = "reward"
    storage: Annotated[
        str | None,
        "address of a database that several workers share; study.sqlite in OUT if left out",
    ] = None
    dry: Annotated[
        Literal["on", "off"], "recorded times and the emulator stand in for a GPU and a model"
    ] = "off"
    adapter: Annotated[Path | None, "folder of the adapter that every trial goes on from"] = None
    base: Annotated[str, "tiny, a folder, or a hub id: what the adapter was trained on"] = "tiny"
    start: Annotated[
        str, "named weights of the reward: the first trial, and what is not searched"
    ] = "sparserl"
    search: Annotated[
        str, "what is searched, with commas: reward (all weights), a weight, lr, group, temperature"
    ] = ALL
    mode: Annotated[
        Mode, "the correct rate is a constraint, or a second objective (then no trial ends early)"
    ] = "constraint"
    least_correct: Annotated[float, "share of right programs that a winner needs"] = 0.9
    penalty: Annotated[float, "a wrong program counts as cusparse's speed divided by this"] = 10.0
    pruner: Annotated[
        Literal["halving", "hyperband", "off"], "what ends hopeless trials at 1/4 and 1/2"
    ] = "halving"
    trials: Annotated[
        int, "trials in all, of all sessions and workers; failed ones do not count"
    ] = 24
    budget: Annotated[float, "seconds of generation and update that a trial may take"] = 30.0
    confirm: Annotated[
        int, "in the end, retrain the winner and the start with so many seeds each; 0: do not"
    ] = 0
    algorithm: Annotated[
        Literal["grpo", "rloo", "best_of_n"], "how a group's rewards become updates"
    ] = "grpo"
    problems: Annotated[int, "problems a step"] = 16
    group: Annotated[int, "programs of each problem, where it is not searched"] = 16
    batch: Annotated[int, "programs that gradients are computed of at a time"] = 64
    lr: Annotated[float, "learning rate, where it is not searched"] = 5e-4
    temperature: Annotated[float, "of the samples, where it is not searched"] = 1.0
    limit: Annotated[int, "tokens of a program, at most"] = 1024
    matrices: Annotated[str, "bands of entries, as of rl; auto: as suits the device"] = AUTO
    validate_problems: Annotated[int, "validation problems"] = 24
    validate_samples: Annotated[int, "programs of each"] = 8
    seed: Annotated[int, "of matrices and samples, the same in all trials"] = 0
    known: Annotated[
        Path | None, "file of what is known of programs, shared by all trials; in OUT if left out"
    ] = None
    builders: Annotated[int, "processes that build matrices; 0: this one"] = 4
    recorded: Annotated[Path, "measured times for --dry on"] = RECORDED
    heartbeat: Annotated[
        int, "seconds between signs of life; after six without one a trial is run again"
    ] = 10
    retries: Annotated[int, "how often a trial whose worker died is run again"] = 2
    minutes: Annotated[
        float | None, "begin no trial that would not end within so many; no limit if left out"
    ] = None
    tracking: Annotated[Literal["on", "off"], "MLflow"] = "on"

    @property
    def goal(self) -> Goal:
        """What is looked for."""
        return Goal(self.mode, self.least_correct, self.penalty)

    @property
    def domains(self) -> dict[str, Domain]:
        """What is searched."""
        return space(self.search)

    @property
    def url(self) -> str:
        """The database's address."""
        return self.storage or f"sqlite:///{(self.out / 'study.sqlite').absolute()}"

    @property
    def known_file(self) -> Path:
        """What is known of programs."""
        return self.known or self.out / "known.sqlite"

    def first(self) -> dict[str, float | int]:
        """The point that the study starts from."""
        options = {name: getattr(self, name) for name in OPTIONS}
        return point(named(self.start), options, self.domains)

    def rl(self, out: Path, adapter: Path) -> RlConfig:
        """A trial's run, before a setting changes it; time ends it, not a number of steps."""
        return RlConfig(
            out=out,
            adapter=adapter,
            base=self.base,
            algorithm=self.algorithm,
            reward=self.start,
            steps=10_000,
            problems=self.problems,
            group=self.group,
            batch=self.batch,
            window=max(24, self.problems),
            matrices=self.matrices,
            lr=self.lr,
            temperature=self.temperature,
            limit=self.limit,
            seed=self.seed,
            known=self.known_file,
            builders=self.builders,
            validate_problems=self.validate_problems,
            validate_samples=self.validate_samples,
            save_every=10_000,
            tracking="off",
        )


# What may differ between the sessions and workers of one study.
SESSION_ONLY = frozenset(
    {"out", "study", "storage", "adapter", "base", "trials", "confirm", "known", "builders"}
    | {"recorded", "heartbeat", "retries", "minutes", "tracking"}
)


def mistakes(config: SweepConfig) -> list[str]:
    """Everything that is wrong with a configuration, before anything is opened."""

    def option(name: str) -> str:
        return f"--{name.replace('_', '-')} {getattr(config, name)}"

    checks = {
        f"{option('trials')}: at least 1": config.trials >= 1,
        f"{option('budget')}: above 0 seconds": config.budget > 0,
        f"{option('penalty')}: at least 1": config.penalty >= 1,
        f"{option('least_correct')}: from 0 to 1": 0 <= config.least_correct <= 1,
        f"{option('confirm')}: 0, or at least 2 for an interval": config.confirm == 0
        or config.confirm >= 2,
        f"{option('heartbeat')}: at least 1 second": config.heartbeat >= 1,
        f"{option('retries')}: 0 or more": config.retries >= 0,
        f"{option('minutes')}: above 0": config.minutes is None or config.minutes > 0,
        "--study: a name": bool(config.study),
        "--adapter: needed, or --dry on": config.dry == "on" or config.adapter is not None,
    }
    wrong = [text for text, right in checks.items() if not right]
    if config.start not in names():
        wrong.append(f"{option('start')}: {', '.join(names())} are known")
    try:
        domains = config.domains
    except ConfigError as error:
        return [*wrong, *error.mistakes]
    if config.start in names():
        wrong += [f"--start {config.start}: {text}" for text in outside(config.first(), domains)]
        wrong += mistakes_of_rl(config.rl(config.out, config.adapter or config.out))
    sizes = domains.get("group")
    for size in sizes.values if isinstance(sizes, Choices) else ():
        if config.batch > 0 and config.problems * size % config.batch:
            wrong.append(
                f"{option('batch')}: must divide problems times a group of {size}"
                f" ({config.problems * size}), which the search may choose"
            )
    return wrong


def decisive(config: SweepConfig) -> dict[str, str]:
    """What must be the same in all sessions and workers of a study, as plain text."""
    return {k: str(v) for k, v in vars(config).items() if k not in SESSION_ONLY}
