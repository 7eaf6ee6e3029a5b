"""``python -m training probe``: does a model's state tell the families of unseen matrices apart?"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from suite.models.variants import TINY
from training.errors import ConfigError
from training.options import add_options, from_options

if TYPE_CHECKING:
    from suite.models.policy import Policy
    from training.seen import Seen

HELP = "fit a linear probe for the family on what a model makes of a prompt"
ENTRIES = (3e3, 1e5)  # of a matrix


@dataclass(frozen=True)
class ProbeConfig:
    """Which model is probed, and on what."""

    out: Annotated[Path, "folder of the figures"]
    base: Annotated[str, "tiny, or a folder or hub id of a causal model"] = TINY
    adapter: Annotated[Path | None, "folder of an adapter; the base alone if left out"] = None
    weights: Annotated[
        Literal["trained", "random"], "random: an untrained model of the base's shape"
    ] = "trained"
    encoding: Annotated[
        Literal["coordinates", "text"], "without an adapter: how nonzeros are told"
    ] = "coordinates"
    train: Annotated[int, "matrices to fit on"] = 1500
    test: Annotated[int, "unseen matrices"] = 400
    seed: Annotated[int, "of the matrices, and of random weights"] = 0
    device: Annotated[Literal["auto", "cpu", "cuda"], "where the model runs"] = "auto"
    workers: Annotated[int, "processes that look at matrices; 0: one a core"] = 0
    tracking: Annotated[Literal["on", "off"], "MLflow"] = "on"

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        checks = {
            f"train {self.train}: at least 20": self.train >= 20,
            f"test {self.test}: at least 1": self.test >= 1,
            f"seed {self.seed}: 0 or more": self.seed >= 0,
            f"workers {self.workers}: 0 or more": self.workers >= 0,
            "weights random: an adapter makes no sense with them": self.weights == "trained"
            or self.adapter is None,
        }
        if wrong := [text for text, right in checks.items() if not right]:
            raise ConfigError(wrong)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_options(parser, ProbeConfig)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        TrainingError: What must be put right first.
    """
    config = from_options(arguments, ProbeConfig)
    config.check()
    from training.curve import Point
    from training.tracking import RunLog

    found = probed(config)
    config.out.mkdir(parents=True, exist_ok=True)
    (config.out / "probe.json").write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")
    for name, one in found.items():
        print(
            f"{name:10} accuracy {one['accuracy']:.3f} [{one['low']:.3f},{one['high']:.3f}] on"
            f" {one['count']} unseen matrices; the commonest family {one['commonest']:.3f}"
        )
    figures = {f"{name}.{k}": one[k] for name, one in found.items() for k in ("accuracy", "low")}
    tags = {"stage": "probe", "adapter": str(config.adapter), "base": config.base}
    log = RunLog(config.out, "probe", vars(config), tags, config.tracking == "on")
    log.log([Point(0, figures)], "FINISHED")
    if log.where or log.failure:
        print(f"MLflow: {log.failure or log.where}")
    return 0


def probed(config: ProbeConfig) -> dict[str, dict[str, Any]]:
    """Figures with the whole prompt, and as a control with a prompt that shows no nonzeros.

    The control tells how far sizes and row lengths alone take a probe.

    Raises:
        TrainingError: The model cannot be loaded.
    """
    from suite.matrices.splits import Split, sampled
    from training import seen
    from training.policies import device_of, load
    from training.probe import probe
    from training.states import last_states

    device = device_of(config.device)
    who = load(config.base, config.adapter, device, config.encoding, config.weights, config.seed)
    counts = {Split.TRAIN: config.train, Split.TEST: config.test}
    looked = {
        split: list(
            seen.look_at(
                list(itertools.islice(sampled(split, ENTRIES, config.seed), count)), config.workers
            )
        )
        for split, count in counts.items()
    }
    families = {split: [one.family for one in some] for split, some in looked.items()}
    found = {}
    for name, entries in (("whole", True), ("header", False)):
        states = {
            split: last_states(who, list(_prompts(who, some, entries)))
            for split, some in looked.items()
        }
        train, test = ((states[split], families[split]) for split in counts)
        found[name] = asdict(probe(*train, *test))
    return found


def _prompts(who: Policy, looked: list[Seen], entries: bool) -> Iterator[list[int]]:
    from dataclasses import replace

    from suite.models.sampler import Shown
    from suite.problem import Op
    from training.answers import Question

    for one in looked:
        none = Shown(one.shown.rows[:0], one.shown.cols[:0])
        told = one if entries else replace(one, shown=none)
        yield list(Question(told, Op.SPMV).prompt(who, "sm_90"))
