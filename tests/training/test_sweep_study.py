"""A study on SQLite: it goes on, ends what is hopeless, and survives whatever a trial does."""

import math
import sqlite3
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.sweep_lab import Known, Verdict, usual
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.reward import RewardWeights, plain
from training.sweep.config import SweepConfig
from training.sweep.objective import Look, winner
from training.sweep.space import Setting

optuna = pytest.importorskip("optuna", reason="needs the train extra")

from training.sweep.confirm import confirm, pairs_of  # noqa: E402
from training.sweep.plots import draw, importances  # noqa: E402
from training.sweep.study import Session, started, tried  # noqa: E402

pytestmark = pytest.mark.slow

DONE, PRUNED, FAILED = (
    optuna.trial.TrialState.COMPLETE,
    optuna.trial.TrialState.PRUNED,
    optuna.trial.TrialState.FAIL,
)


@pytest.fixture
def config(folder: Path) -> SweepConfig:
    return SweepConfig(
        folder / "sweep", dry="on", trials=6, search="speed,right", heartbeat=1, tracking="off"
    )


def session(
    config: SweepConfig, runner: Known | None = None, box: TimeBox | None = None
) -> Session:
    return Session(config, runner or Known(), box or TimeBox(None), lambda line: None, "one")


def states(found: Session) -> list[Any]:
    return [trial.state for trial in found.study.trials]


def test_the_first_trial_is_the_start_and_runs_to_its_end(config: SweepConfig) -> None:
    found = session(config)
    assert found.go()
    first = started(found.study)
    assert first is not None
    assert first.number == 0
    assert first.params == {"reward.speed": 1.0, "reward.right": 1.4}
    assert first.look == usual(Setting(RewardWeights(), {}), 4)


@pytest.mark.parametrize("pruner", ["halving", "hyperband"])
def test_hopeless_trials_end_early(config: SweepConfig, pruner: Any) -> None:
    found = session(replace(config, trials=12, pruner=pruner))
    assert found.go()
    pruned = [trial for trial in found.study.trials if trial.state is PRUNED]
    done = [trial for trial in found.study.trials if trial.state is DONE]
    assert len(pruned) + len(done) == 12
    assert len(pruned) >= 2
    mean = [
        sum(trial.params["reward.speed"] for trial in part) / len(part) for part in (pruned, done)
    ]
    assert mean[0] < mean[1]
    assert all(max(trial.intermediate_values) < 4 for trial in pruned)
    assert all(set(trial.intermediate_values) == {1, 2, 4} for trial in done)


def test_the_correct_rate_is_a_constraint(config: SweepConfig) -> None:
    found = session(replace(config, pruner="off", least_correct=0.9))
    found.go()
    for trial in found.study.trials:
        assert trial.constraints["correct_rate"] == pytest.approx(
            trial.params["reward.speed"] / 10 - 0.1
        )
    best = winner(tried(found.study.trials), config.goal)
    assert best is not None
    assert best.params["reward.speed"] <= 1.0
    assert best.number == found.study.best_trial.number


def test_the_correct_rate_is_a_second_objective(config: SweepConfig) -> None:
    config = replace(config, mode="pareto")
    found = session(config)
    found.go()
    assert states(found) == [DONE] * 6
    assert len(found.study.best_trials) == 6  # the faster the less often right
    assert draw(found.study, config.goal, config.out / "plots") == []


def test_a_study_goes_on_and_ends_with_its_trials(config: SweepConfig) -> None:
    assert session(replace(config, trials=2)).go()
    runner = Known()
    again = session(config, runner)
    assert again.go()
    assert len(runner.ran) == 4
    assert len(again.study.trials) == 6
    assert len({trial.params["reward.speed"] for trial in again.study.trials}) == 6
    assert session(config).go()
    assert len(session(config).study.trials) == 6


def test_another_question_is_refused_and_what_differs_is_told(config: SweepConfig) -> None:
    session(config)
    with pytest.raises(ConfigError) as caught:
        session(replace(config, penalty=5.0, mode="constraint", search="speed"))
    told = " ".join(caught.value.mistakes)
    assert "has penalty 10.0, not 5.0" in told
    assert "has search speed,right, not speed" in told
    session(replace(config, trials=99, heartbeat=2))


def raising(error: BaseException) -> Verdict:
    def verdict(setting: Setting, part: int) -> Look:
        raise error

    return verdict


ODD: dict[str, Verdict] = {
    "not a number": lambda setting, part: Look(math.nan, 1.0, 1.0),
    "infinite": lambda setting, part: Look(math.inf, 1.0, 1.0),
    "the machine": raising(TrainingError("the machine failed on all of 256 programs")),
    "anything": raising(RuntimeError("CUDA out of memory")),
}


@pytest.mark.parametrize("what", ODD)
def test_a_trial_that_fails_is_recorded_and_the_study_goes_on(
    config: SweepConfig, what: str
) -> None:
    runner = Known()
    count = iter(range(100))

    def sometimes(setting: Setting, part: int) -> Look:
        odd = len(runner.ran) % 2 == 0
        next(count)
        return ODD[what](setting, part) if odd else usual(setting, part)

    runner.verdict = sometimes
    found = session(config, runner)
    assert found.go()
    failed = [trial for trial in found.study.trials if trial.state is FAILED]
    assert len(failed) >= 4
    assert all(trial.user_attrs["error"] for trial in failed)
    assert len(found.study.trials) - len(failed) == 6


def test_a_broken_machine_does_not_burn_through_the_study(config: SweepConfig) -> None:
    found = session(config, Known(ODD["anything"]))
    with pytest.raises(TrainingError, match=r"3 trials failed .* CUDA out of memory"):
        found.go()
    again = session(config)
    assert again.go()
    first = started(again.study)  # the start is tried again
    assert first is not None
    assert first.number == 3


def test_a_trial_that_is_cut_is_run_again_with_the_same_parameters(config: SweepConfig) -> None:
    runner, box = Known(), TimeBox(None)
    runner.box = box

    def stop(setting: Setting, part: int) -> Look:
        box.asked = len(runner.ran) == 2
        return usual(setting, part)

    runner.verdict = stop
    found = session(replace(config, pruner="off"), runner, box)
    assert not found.go()
    assert states(found)[:2] == [DONE, FAILED]
    again = session(replace(config, pruner="off"))
    assert again.go()
    assert again.study.trials[2].params == found.study.trials[1].params
    assert states(again)[2] is DONE


def test_a_second_interrupt_loses_nothing(config: SweepConfig) -> None:
    with pytest.raises(KeyboardInterrupt):
        session(config, Known(raising(KeyboardInterrupt()))).go()
    again = session(config)
    assert again.go()
    assert states(again)[:2] == [FAILED, DONE]
    assert again.study.trials[1].user_attrs["start"]


@pytest.mark.parametrize("first_sign", [True, False], ids=["mid-trial", "before its first sign"])
def test_a_trial_whose_worker_died_is_run_again(config: SweepConfig, first_sign: bool) -> None:
    found = session(config)
    trial = ask(found)
    assert isinstance(found.study._storage, optuna.storages._CachedStorage)
    if first_sign:
        trial.suggest_float("reward.speed", 0.0, 2.0)
        found.study._storage.record_heartbeat(trial._trial_id)
    _age(config.out / "study.sqlite")
    again = session(config)
    assert again.go()
    assert states(again)[0] is FAILED
    retried = again.study.trials[1]
    assert retried.state is DONE
    assert retried.params == {"reward.speed": 1.0, "reward.right": 1.4}
    assert retried.user_attrs["start"]


def test_a_trial_whose_workers_always_die_is_given_up(config: SweepConfig) -> None:
    config = replace(config, retries=1)
    for number in range(2):
        found = session(config)
        trial = ask(found)
        assert trial.number == number
        found.study._storage.record_heartbeat(trial._trial_id)
        _age(config.out / "study.sqlite")
    again = session(config)
    assert again.go()
    assert states(again)[:2] == [FAILED, FAILED]


def ask(found: Session) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that nobody gives signs of life
        return found.study.ask()


def _age(database: Path) -> None:
    """Lets ten minutes pass."""
    with sqlite3.connect(database) as file:
        file.execute("update trial_heartbeats set heartbeat = datetime(heartbeat, '-600 seconds')")
        file.execute("update trials set datetime_start = datetime(datetime_start, '-600 seconds')")


def test_no_trial_begins_that_would_not_end_in_time(config: SweepConfig) -> None:
    runner = Known()
    runner.expected = 90.0
    assert not session(config, runner, TimeBox(1.0)).go()
    assert runner.ran == []


def test_every_plot_and_the_importance_of_every_weight(config: SweepConfig) -> None:
    found = session(replace(config, trials=12, pruner="off"))
    found.go()
    assert draw(found.study, config.goal, config.out / "plots") == []
    names = {path.stem for path in (config.out / "plots").glob("*.png")}
    assert names == {
        *("history", "importance", "slice", "contour", "parallel", "pareto", "intermediate"),
    }
    weights = importances(found.study)
    assert set(weights) == {"reward.speed", "reward.right"}
    assert weights["reward.speed"] > weights["reward.right"]


def test_a_study_without_a_result_has_no_plots_and_says_so(config: SweepConfig) -> None:
    found = session(config)
    assert draw(found.study, config.goal, config.out / "plots") == ["anything: no trial is done"]


def test_a_winner_is_trained_again_beside_the_start_and_only_once(config: SweepConfig) -> None:
    config = replace(config, confirm=3, pruner="off", least_correct=0.8)
    found = session(config)
    found.go()
    best = winner(tried(found.study.trials), config.goal)
    assert best is not None
    runner, box = Known(), TimeBox(None)
    runner.box = box

    def stop(setting: Setting, part: int) -> Look:
        box.asked = len(runner.ran) == 3
        return usual(setting, part)

    runner.verdict = stop
    assert not confirm(config, runner, found.study, best, box, lambda line: None)
    assert len(pairs_of(found.study, best)) == 1
    rest = Known()
    assert confirm(config, rest, session(config).study, best, TimeBox(None), lambda line: None)
    assert [seed for _, seed in rest.ran] == [2, 2, 3, 3]
    assert {plain(one.weights)["speed"] for one, _ in rest.ran} == {
        1.0,
        best.params["reward.speed"],
    }


def test_runs_in_mlflow_are_children_of_the_study(
    config: SweepConfig, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    config = replace(config, tracking="on", trials=3, pruner="off")
    session(replace(config, trials=2)).go()
    found = session(config)
    found.go()
    plots = config.out / "plots"
    draw(found.study, config.goal, plots)
    found.log.finish({"best.speedup": 2.0}, {"best_trial": "1"}, plots, "FINISHED")
    assert found.log.failure == ""
    client = mlflow.MlflowClient(uri)
    (experiment,) = (e for e in client.search_experiments() if e.name == "sparserl-training")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    children = {run.data.tags["trial"]: run for run in runs if run is not parent}
    assert set(children) == {"0", "1", "2"}
    for trial in found.study.trials:
        child = children[str(trial.number)]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.info.status == "FINISHED"
        assert child.data.params == {k: str(v) for k, v in trial.params.items()}
        assert child.data.metrics["objective.speedup"] == trial.value
        curve = client.get_metric_history(child.info.run_id, "reward")
        assert [point.step for point in curve] == [1, 2, 4]
    assert parent.data.metrics["best.speedup"] == 2.0
    assert {file.path for file in client.list_artifacts(parent.info.run_id, "plots")} >= {
        "plots/contour.png",
        "plots/importance.json",
    }


def test_a_store_that_cannot_be_reached_does_not_stop_a_study(
    config: SweepConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    found = session(replace(config, tracking="on"))
    assert found.go()
    assert found.log.failure


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "nonsense"),
        ("postgresql://me:secret@127.0.0.1:9/none", r"me:\*\*\*@|psycopg"),
        ("sqlite:////proc/none/study.sqlite", "proc"),
    ],
)
def test_a_database_that_cannot_be_used_is_told_in_one_line(
    config: SweepConfig, url: str, said: str
) -> None:
    with pytest.raises(TrainingError, match=said) as caught:
        session(replace(config, storage=url))
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
