"""``python -m training probe``: does a model's state tell the families of unseen matrices apart?"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from training.errors import ConfigError
from training.options import add_options, from_options
from training.subject import Subject

if TYPE_CHECKING:
    from suite.models.policy import Policy
    from training.seen import Seen

HELP = "fit a linear probe for the family on what a model makes of a prompt"
ENTRIES = (3e3, 1e5)  # of a matrix


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(Subject):
    """Which model is probed, and on what."""

    train: Annotated[int, "matrices to fit on"] = 1500
    test: Annotated[int, "unseen matrices"] = 400
    workers: Annotated[int, "processes that look at matrices; 0: one a core"] = 0

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        checks = {
            f"train {self.train}: at least 20": self.train >= 20,
            f"test {self.test}: at least 1": self.test >= 1,
            f"workers {self.workers}: 0 or more": self.workers >= 0,
        }
        if wrong := [*self.mistakes(), *(text for text, right in checks.items() if not right)]:
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
    log = RunLog(config.out, "probe", vars(config), config.tags("probe"), config.tracking == "on")
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
    from training.probe import probe
    from training.states import last_states

    who = config.load()
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
