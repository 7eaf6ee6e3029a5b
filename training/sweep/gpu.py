"""Trials on a GPU: short runs of reinforcement learning from the fine-tuned adapter.

What trials share is opened once: the evaluator, the matrices, the file of what is known. A trial is
charged for generation and updates alone. Were it charged for measuring too, later trials would
learn for longer than early ones, since what others measured costs them nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from suite.matrices.base import Matrix
from training.curve import Point
from training.errors import TrainingError
from training.pace import TimeBox
from training.rl import Device, open_device, train
from training.rl_config import RlConfig
from training.sweep.config import SweepConfig
from training.sweep.objective import look_of_curve
from training.sweep.runner import LOOKS, Watch, part_of
from training.sweep.space import Setting

CHARGED = ("seconds.generate", "seconds.update")


class GpuRunner:
    """Runs trials one after the other, on one GPU that nobody else uses meanwhile.

    Args:
        config: Of the study.
        adapter: What every trial goes on from.
        box: When the session ends.
        say: Gets a line for each step.
        opened: Opens what judges programs.

    Raises:
        TrainingError: There is no GPU, or the weights cannot be read.
    """

    def __init__(
        self,
        config: SweepConfig,
        adapter: Path,
        box: TimeBox,
        say: Callable[[str], None],
        opened: Callable[[RlConfig], Device] = open_device,
    ) -> None:
        self._config, self._box, self._say = config, box, say
        self._rl = config.rl(config.out, adapter)
        self.asked = _weights(config.base, adapter)
        self._device = opened(self._rl)
        self._kept: dict[str, Matrix] = {}
        self.expected = 2.0 * config.budget
        facts = self._device.facts
        self.device = facts.name
        self.timed = facts.kind == "cuda"
        self.asked["device"] = f"{facts.kind} {facts.name}"

    def run(self, setting: Setting, seed: int, folder: Path, watch: Watch) -> None:
        """See ``Runner``."""
        options: dict[str, Any] = dict(setting.options)
        config = replace(self._rl, out=folder / "rl", seed=seed, **options)
        train(
            config,
            lambda line: self._say(f"  {line}"),
            _Open(self._box),
            setting.weights,
            lambda _: _Lent(self._device),
            _Budget(self._config, watch),
            self._kept,
        )

    def close(self) -> None:
        """Ends its processes."""
        self._device.close()


class _Budget:
    """Asks for a look whenever another part of the budget is used up, and ends with the last."""

    def __init__(self, config: SweepConfig, watch: Watch) -> None:
        self._config, self._watch = config, watch
        self._spent, self._part, self._steps = 0.0, 0, 0

    def due(self, figures: Mapping[str, float]) -> bool:
        self._steps += 1
        self._spent += sum(figures[name] for name in CHARGED)
        before, self._part = self._part, part_of(self._spent, self._config.budget)
        return self._part > before

    def looked(self, points: Sequence[Point]) -> bool:
        figures = points[-1].figures
        look = look_of_curve(figures, self._config.penalty, self._steps, self._spent)
        return self._watch(self._part, look, points) or self._part == LOOKS


class _Open(TimeBox):
    """Ends a trial when somebody asks for it; no trial is cut by the session's minutes."""

    def __init__(self, session: TimeBox) -> None:
        super().__init__(None)
        self._session = session

    @property
    def over(self) -> bool:
        return self._session.asked


class _Lent:
    """An evaluator that a run may use and not close."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.facts, self.settings = device.facts, device.settings
        self.evaluate, self.compile_ahead = device.evaluate, device.compile_ahead
        self.convert_ahead, self.binary = device.convert_ahead, device.binary
        self.load, self.release = device.load, device.release

    def close(self) -> None:
        """Its owner does."""


def _weights(base: str, adapter: Path) -> dict[str, str]:
    """Digests of what every trial goes on from.

    Raises:
        TrainingError: It cannot be read.
    """
    from suite.models import adapters, manifest
    from suite.models.errors import ModelError

    try:
        known = manifest.read(adapter, "adapter")
    except ModelError as error:
        raise TrainingError(f"--adapter {adapter}: {error}") from error
    return {"base": known.base, "adapter": known.files[adapters.WEIGHTS]}
