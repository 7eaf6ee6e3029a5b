"""Trials themselves: short runs of reinforcement learning, and dry ones on recorded times."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from suite.baselines.files import baselines
from suite.evaluation import Status
from suite.matrices.named import paper, smoke
from suite.problem import Problem
from suite.program import KernelProgram
from training.__main__ import main
from training.curve import Point
from training.errors import TrainingError
from training.judging import Judged
from training.outcome import Outcome
from training.pace import TimeBox
from training.reward import RewardWeights
from training.sweep.config import RECORDED, SweepConfig
from training.sweep.dry import DryRunner
from training.sweep.objective import Look
from training.sweep.recorded import REFERENCE, Recorded, asked, load, split
from training.sweep.runner import LOOKS, RUNGS
from training.sweep.space import Setting

START = Setting(RewardWeights(), {})


class Notes:
    """Remembers looks, and may end a trial after some."""

    def __init__(self, most: int = LOOKS) -> None:
        self.looks: list[tuple[int, Look]] = []
        self.points: Sequence[Point] = []
        self._most = most

    def __call__(self, part: int, look: Look, points: Sequence[Point]) -> bool:
        self.looks.append((part, look))
        self.points = list(points)
        return part >= self._most

    @property
    def last(self) -> Look:
        return self.looks[-1][1]


def judged(pairs: Sequence[tuple[Problem, KernelProgram]]) -> list[Judged]:
    """Finds what is not spoilt right, as the emulator does."""
    wrong = Outcome(Status.WRONG_RESULT, "spoilt")
    ours = {text for author in baselines() for text in author.texts.values()}
    return [Judged(Outcome(Status.OK) if one.text in ours else wrong) for _, one in pairs]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return load(RECORDED, judged)


@pytest.fixture
def config(tmp_path: Path) -> SweepConfig:
    return SweepConfig(tmp_path / "sweep", dry="on", tracking="off")


def run(config: SweepConfig, recorded: Recorded, setting: Setting, seed: int = 0) -> Notes:
    notes = Notes()
    folder = config.out / "trial"
    folder.mkdir(parents=True, exist_ok=True)
    DryRunner(config, TimeBox(None), recorded).run(setting, seed, folder, notes)
    return notes


def test_a_dry_trial_learns_and_is_the_same_again(config: SweepConfig, recorded: Recorded) -> None:
    notes = run(config, recorded, START)
    assert tuple(part for part, _ in notes.looks) == RUNGS
    assert notes.last.speedup > 1.5 * notes.looks[0][1].speedup
    assert notes.last.correct > notes.looks[0][1].correct
    assert notes.last.seconds == pytest.approx(config.budget, rel=0.1)
    assert run(config, recorded, START).looks == notes.looks
    assert run(config, recorded, START, seed=1).looks != notes.looks


def test_a_reward_without_speed_makes_right_programs_and_no_fast_ones(
    config: SweepConfig, recorded: Recorded
) -> None:
    fast = run(config, recorded, START).last
    right = run(config, recorded, Setting(replace(RewardWeights(), speed=0.0), {})).last
    assert right.correct > 0.8
    assert fast.speedup > 1.2 * right.speedup


def test_options_that_are_searched_reach_a_dry_trial(
    config: SweepConfig, recorded: Recorded
) -> None:
    small = run(config, recorded, Setting(RewardWeights(), {"group": 8})).last
    large = run(config, recorded, Setting(RewardWeights(), {"group": 32})).last
    assert small.steps == pytest.approx(4 * large.steps, abs=4)
    slow = run(config, recorded, Setting(RewardWeights(), {"lr": 1e-4})).last
    assert slow.speedup < run(config, recorded, START).last.speedup


def test_recorded_times_are_of_no_test_matrix() -> None:
    names = set(pq.read_table(RECORDED, columns=["matrix"])["matrix"].to_pylist())
    assert names
    assert not names & {spec.name for spec in (*paper(), *smoke())}


def test_matrices_that_are_looked_at_are_not_learnt_from() -> None:
    rows = pq.read_table(RECORDED).to_pylist()
    train, held = split(asked([row for row in rows if row["label"] == "spmv"]))
    assert not {one.matrix for one in train} & {one.matrix for one in held}
    assert {one.family for one in held} <= {one.family for one in train}
    assert len(held) >= 10


def test_the_emulator_says_what_is_right_and_the_table_how_fast(recorded: Recorded) -> None:
    problem = recorded.train[0]
    for arm in recorded.arms:
        outcome = arm.outcome(problem)
        if arm.spoilt:
            assert outcome == arm.verdict
        else:
            assert outcome == problem.outcomes[arm.author]
    broken = replace(recorded.arms[0], verdict=Outcome(Status.WRONG_RESULT, "on the emulator"))
    assert not broken.right(problem)
    assert problem.reference == problem.outcomes[REFERENCE]


def test_a_table_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="columns are matrix"):
        load(tmp_path / "none.parquet", judged)


def test_the_command_runs_dry_from_end_to_end(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="needs the train extra")
    plots = pytest.importorskip("training.sweep.plots")
    every = plots._plots  # drawn in the tests of studies; one will do here

    def one(*about: Any) -> dict[str, Any]:
        return {"history": every(*about)["history"]}

    monkeypatch.setattr(plots, "_plots", one)
    table = pq.read_table(RECORDED, filters=[("family", "in", ["arrow", "fem"])])
    pq.write_table(table, folder / "few.parquet")  # few programs for the emulator
    line = f"sweep --out {folder} --dry on --trials 4 --budget 4 --tracking off"
    line += f" --least-correct 0 --recorded {folder / 'few.parquet'}"
    assert main([*line.split(), "--confirm", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("dry: no GPU, no model")
    assert "start: trial 0" in told
    assert "optuna-dashboard sqlite" in told
    assert "confirmed: winner" in told or "it stays" in told
    assert (folder / "plots" / "history.png").stat().st_size > 1000
    importance = json.loads((folder / "plots" / "importance.json").read_text(encoding="utf-8"))
    assert importance.keys() <= {f"reward.{one}" for one in RewardWeights.__dataclass_fields__}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--dry on --apply --confirm 3", "figures of a dry study are no results"),
        ("--adapter none --apply", "needs --confirm"),
        ("", "--adapter: needed, or --dry on"),
        ("--dry on --recorded none.parquet", "none.parquet"),
    ],
)
def test_what_makes_no_sense_is_told(
    tmp_path: Path, options: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "--out", str(tmp_path / "sweep"), *options.split()]) in (1, 2)
    assert told in capsys.readouterr().err
