"""A runner whose objective is known, and a worker process that uses it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from training.curve import Point
from training.pace import TimeBox
from training.reward import plain
from training.sweep.config import SweepConfig
from training.sweep.objective import Look
from training.sweep.runner import RUNGS, Watch
from training.sweep.space import Setting
from training.sweep.study import Session

Verdict = Callable[[Setting, int], Look]


def usual(setting: Setting, part: int) -> Look:
    """The larger the weight of speed the faster, and the less often right."""
    speed = plain(setting.weights)["speed"]
    return Look(1.0 + speed * part, 1.0 - speed / 10, 1.0, part, float(part))


class Known:
    """Runs trials whose outcome is known, and takes a while for each part."""

    device = "known"
    expected = 0.0

    def __init__(self, verdict: Verdict = usual, pause: float = 0.0) -> None:
        self.asked = {"device": "known"}
        self.verdict, self._pause = verdict, pause
        self.ran: list[tuple[Setting, int]] = []
        self.box = TimeBox(None)

    def run(self, setting: Setting, seed: int, folder: Path, watch: Watch) -> None:
        self.ran.append((setting, seed))
        points = []
        for part in RUNGS:
            time.sleep(self._pause)
            if self.box.asked:
                return
            points.append(Point(part, {"reward": float(part)}))
            if watch(part, self.verdict(setting, part), points):
                return

    def close(self) -> None: ...


def work(url: str, out: str, trials: str, study: str) -> None:
    """One worker of several."""
    config = SweepConfig(
        out=Path(out),
        study=study,
        storage=url,
        dry="on",
        trials=int(trials),
        heartbeat=1,
        tracking="off",
    )
    runner = Known(pause=0.4)
    assert Session(config, runner, TimeBox(None), lambda line: print(line, flush=True)).go()


if __name__ == "__main__":
    work(*sys.argv[1:])
