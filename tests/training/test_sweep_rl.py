"""Trials of a study as runs of reinforcement learning, on a tiny model and a made-up device."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")
pytest.importorskip("optuna", reason="needs the train extra")

from tests.training.test_rl import Fake, weights  # noqa: F401
from tests.training.test_sweep_trials import Notes
from training.__main__ import main
from training.curve import Curve
from training.errors import TrainingError
from training.pace import TimeBox
from training.reward import RewardWeights
from training.sweep.config import SweepConfig
from training.sweep.gpu import GpuRunner
from training.sweep.objective import winner
from training.sweep.runner import RUNGS
from training.sweep.space import Setting
from training.sweep.study import Session, tried

pytestmark = pytest.mark.slow

START = Setting(RewardWeights(), {})


@pytest.fixture
def config(weights: Path, tmp_path: Path) -> SweepConfig:  # noqa: F811
    return SweepConfig(
        out=tmp_path / "sweep",
        adapter=weights / "sft",
        base=str(weights / "base"),
        search="speed,lr,group",
        problems=2,
        group=8,
        batch=16,
        matrices="1:300:600",
        lr=2e-3,
        limit=10,
        budget=0.5,
        trials=2,
        validate_problems=2,
        validate_samples=4,
        builders=0,
        tracking="off",
    )


def runner(config: SweepConfig, fake: Fake | None = None, box: TimeBox | None = None) -> GpuRunner:
    made = fake or Fake()
    assert config.adapter is not None
    return GpuRunner(
        config, config.adapter, box or TimeBox(None), lambda line: None, lambda _: made
    )


def test_a_trial_is_looked_at_as_its_budget_goes(config: SweepConfig) -> None:
    notes, mine = Notes(), runner(config)
    mine.run(START, 0, config.out / "trial", notes)
    parts = [part for part, _ in notes.looks]
    assert parts == sorted(set(parts))
    assert parts[-1] == RUNGS[-1]
    last = notes.last
    curve = Curve(config.out / "trial" / "rl", 10**6).points
    charged = sum(p.figures["seconds.generate"] + p.figures["seconds.update"] for p in curve)
    assert last.seconds == pytest.approx(charged)
    assert last.seconds >= config.budget
    assert last.steps == curve[-1].step == len(curve)
    assert last.speedup == pytest.approx(curve[-1].figures["validation.speedup"])
    assert last.correct == 1.0


def test_a_trial_ends_where_the_watch_says_so(config: SweepConfig) -> None:
    notes = Notes(most=1)
    mine = runner(replace(config, budget=2.0))
    mine.run(START, 0, config.out / "trial", notes)
    assert len(notes.looks) == 1


def test_what_a_setting_says_is_what_is_trained(config: SweepConfig) -> None:
    mine, notes = runner(config), Notes()
    setting = Setting(replace(RewardWeights(), speed=0.0), {"group": 16, "lr": 1e-3})
    mine.run(setting, 3, config.out / "trial", notes)
    assert {p.figures["lr"] for p in notes.points if p.step > 5} <= {1e-3}
    assert all(p.figures["reward"] == pytest.approx(1.0) for p in notes.points)


def test_matrices_are_built_once_for_all_trials(
    config: SweepConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suite.matrices.base import MatrixSpec

    built: list[str] = []
    build = MatrixSpec.build
    monkeypatch.setattr(
        MatrixSpec, "build", lambda spec: (built.append(spec.source), build(spec))[1]
    )
    mine = runner(config)
    for trial in range(2):
        mine.run(START, 0, config.out / str(trial), Notes(most=1))
    assert built
    assert len(built) == len(set(built))


def test_a_trial_that_somebody_stops_has_no_last_look(config: SweepConfig) -> None:
    box, notes = TimeBox(None), Notes()
    box.asked = True
    runner(config, box=box).run(START, 0, config.out / "trial", notes)
    assert notes.looks == []


def test_a_study_of_real_trials(config: SweepConfig) -> None:
    mine = runner(config)
    session = Session(config, mine, TimeBox(None), lambda line: None, "one")
    assert session.go()
    best = winner(tried(session.study.trials), config.goal)
    assert best is not None
    assert math.isfinite(best.look.speedup)
    with pytest.raises(TrainingError, match="adapter"):
        Session(
            replace(config, penalty=3.0),
            runner(replace(config, adapter=config.out)),
            TimeBox(None),
            lambda line: None,
        )


def test_without_a_gpu_the_command_says_what_can_be_done(
    config: SweepConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from training.sweep import gpu

    monkeypatch.setattr(gpu, "open_device", lambda _: Fake())
    monkeypatch.setattr(GpuRunner.__init__, "__defaults__", (lambda _: Fake(),))
    line = f"sweep --out {config.out} --adapter {config.adapter} --base {config.base}"
    assert main([*line.split(), "--problems", "16"]) == 1
    assert "try it with --dry on" in capsys.readouterr().err
