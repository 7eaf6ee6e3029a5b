"""What a study may choose: the weights of the reward by their annotations, and three options of rl.

Pure: domains are data, and a point of the space becomes weights and options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from training.errors import ConfigError
from training.reward import Range, RewardWeights, plain, ranges

if TYPE_CHECKING:
    from optuna.trial import Trial

ALL = "reward"  # every weight
PREFIX = "reward."


@dataclass(frozen=True)
class Floats:
    """Any number from ``low`` to ``high``; ``log``: evenly by its logarithm."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Choices:
    """One of some values."""

    values: tuple[int, ...]


Domain = Floats | Choices
Value = float | int
# Options of rl; the sizes of a group divide a step into batches of 64 at 8 problems or more.
OPTIONS: Mapping[str, Domain] = {
    "lr": Floats(1e-4, 2e-3, log=True),
    "group": Choices((8, 16, 32)),
    "temperature": Floats(0.7, 1.3),
}


@dataclass(frozen=True)
class Setting:
    """A point of the space.

    Attributes:
        weights: Of the reward.
        options: Of rl, by name; only those that are searched.
    """

    weights: RewardWeights
    options: Mapping[str, Value]


def space(search: str) -> dict[str, Domain]:
    """Domains by the name of their parameter.

    Args:
        search: ``reward`` for all weights, names of weights, ``lr``, ``group``, ``temperature``;
            with commas.

    Raises:
        ConfigError: Lists every part that is not known.
    """
    known: dict[str, Mapping[str, Domain]] = {
        ALL: {f"{PREFIX}{name}": _domain(one) for name, one in ranges().items()},
        **{name: {f"{PREFIX}{name}": _domain(one)} for name, one in ranges().items()},
        **{name: {name: one} for name, one in OPTIONS.items()},
    }
    parts = [part.strip() for part in search.split(",") if part.strip()]
    wrong = [
        f"--search {part}: {', '.join(known)} are known" for part in parts if part not in known
    ]
    if not parts:
        wrong = ["--search: names what is searched; reward for all weights"]
    if wrong:
        raise ConfigError(wrong)
    return {name: domain for part in parts for name, domain in known[part].items()}


def suggested(trial: Trial, domains: Mapping[str, Domain]) -> dict[str, Value]:
    """What a trial is to try."""
    return {name: _suggest(trial, name, domain) for name, domain in domains.items()}


def setting(values: Mapping[str, Value], start: RewardWeights) -> Setting:
    """Weights and options of a point.

    Args:
        values: By the names of ``space``.
        start: Has the weights that are not searched.
    """
    weights = {k.removeprefix(PREFIX): v for k, v in values.items() if k.startswith(PREFIX)}
    options = {k: v for k, v in values.items() if not k.startswith(PREFIX)}
    return Setting(RewardWeights(**{**plain(start), **weights}), options)


def point(
    weights: RewardWeights, options: Mapping[str, Value], names: Iterable[str]
) -> dict[str, Value]:
    """Values of the named parameters, as ``setting`` takes them."""
    whole = {f"{PREFIX}{name}": value for name, value in plain(weights).items()} | dict(options)
    return {name: whole[name] for name in names}


def outside(values: Mapping[str, Value], domains: Mapping[str, Domain]) -> list[str]:
    """What of a point the space does not have, in words."""
    return [
        f"{name} {values[name]}: the search has {_words(domain)}"
        for name, domain in domains.items()
        if not _has(domain, values[name])
    ]


def _domain(one: Range) -> Domain:
    return Floats(one.low, one.high)


def _suggest(trial: Trial, name: str, domain: Domain) -> Value:
    if isinstance(domain, Choices):
        return int(trial.suggest_categorical(name, domain.values))
    return float(trial.suggest_float(name, domain.low, domain.high, log=domain.log))


def _has(domain: Domain, value: Value) -> bool:
    if isinstance(domain, Choices):
        return value in domain.values
    return domain.low <= value <= domain.high


def _words(domain: Domain) -> str:
    if isinstance(domain, Choices):
        return ", ".join(map(str, domain.values))
    return f"from {domain.low:g} to {domain.high:g}"
