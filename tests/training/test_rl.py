"""Reinforcement learning on a tiny random model: it learns, goes on after a stop, survives."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from suite.evaluation import Evaluation, Status, Timing
from suite.harness.device import DeviceFacts
from suite.harness.settings import Settings
from suite.matrices.base import Matrix
from suite.problem import DType, Problem
from suite.program import Answer, KernelProgram, LibraryCall
from training.curve import Curve, Point
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.rl_config import RlConfig, mistakes

torch = pytest.importorskip("torch", reason="needs the train extra")
pytest.importorskip("trl", reason="needs the train extra")
pytest.importorskip("peft", reason="needs the train extra")

from suite.models.policy import load as load_policy  # noqa: E402
from suite.models.policy import save_base  # noqa: E402
from suite.models.prompt import Encoding, PromptStyle  # noqa: E402
from tests.models import lab  # noqa: E402
from training import rl, rl_policy, rl_trainer  # noqa: E402
from training.rl import train  # noqa: E402

LIKED = set("abcdefghijklm")


def timed(microseconds: float) -> Evaluation:
    found = (microseconds,)
    return Evaluation(Status.OK, hot=Timing(*found * 3, found, 1, True), format="csr")


class Fake:
    """Finds texts the faster, the more letters of the alphabet's first half they have."""

    settings = Settings(precision=None)
    facts = DeviceFacts("emulator", "fake", "sm_90", 1, 1, 1, 1)

    def __init__(self) -> None:
        self.asked: list[Answer] = []
        self.loaded: list[str] = []
        self.released: list[str] = []

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        self.asked.append(answer)
        if isinstance(answer, LibraryCall):
            return timed(100.0)
        return timed(100.0 / (0.5 + sum(letter in LIKED for letter in answer.text)))

    def load(self, problem: Problem) -> None:
        self.loaded.append(problem.matrix.name)

    def release(self, matrix: Matrix) -> None:
        self.released.append(matrix.name)

    def compile_ahead(self, programs: Sequence[KernelProgram], dtype: DType) -> None: ...

    def convert_ahead(self, problem: Problem, programs: Sequence[KernelProgram]) -> None: ...

    def binary(self, program: KernelProgram, dtype: DType) -> bytes:
        raise AssertionError("no text of this model is a program")

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    base = lab.TINY.build(lab.END, lab.PAD)
    with torch.no_grad():
        base.get_input_embeddings().weight.mul_(20.0)  # so that it has preferences
    save_base(base, lab.tokenizer(), folder / "base", "random")
    lab.save_adapter(
        folder / "base", folder / "sft", PromptStyle(Encoding.COORDINATES, lab.VOCABULARY, 8)
    )
    return folder


def configured(weights: Path, out: Path) -> RlConfig:
    return RlConfig(
        out=out,
        adapter=weights / "sft",
        base=str(weights / "base"),
        steps=3,
        problems=2,
        group=8,
        window=3,
        fresh=1,
        matrices="1:300:600",
        batch=8,
        lr=0.02,
        warmup=0,
        limit=10,
        rows=16,
        diversity=0.0,
        builders=0,
        save_every=2,
        tracking="off",
    )


@pytest.fixture
def config(weights: Path, tmp_path: Path) -> RlConfig:
    return configured(weights, tmp_path / "run")


@dataclass(frozen=True)
class Whole:
    """A run that nothing has stopped."""

    config: RlConfig
    fake: Fake
    outcome: rl.Outcome


@pytest.fixture(scope="module")
def whole(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    config, fake = configured(weights, tmp_path_factory.mktemp("whole") / "run"), Fake()
    return Whole(config, fake, run(config, fake))


def run(config: RlConfig, fake: Fake | None = None, box: TimeBox | None = None) -> rl.Outcome:
    made = fake or Fake()
    return train(config, lambda line: None, box, opened=lambda _: made)


def rewards(config: RlConfig) -> list[float]:
    return [point.figures["reward"] for point in points(config)]


def points(config: RlConfig) -> list[Point]:
    return Curve(config.out, 10**6).points


class StopAfter(TimeBox):
    """Ends a session after some steps."""

    def __init__(self, steps: int) -> None:
        super().__init__(None)
        self._left = steps + 1  # it is asked once before the first

    @property
    def over(self) -> bool:
        self._left -= 1
        return self._left <= 0


@pytest.mark.parametrize(
    "algorithm",
    ["grpo", *(pytest.param(one, marks=pytest.mark.slow) for one in ("rloo", "best_of_n"))],
)
def test_what_is_rewarded_becomes_more_frequent(config: RlConfig, algorithm: Any) -> None:
    config = replace(config, steps=4, algorithm=algorithm, group=16, batch=32, rows=32)
    run(config)
    assert rewards(config)[-1] > rewards(config)[0] + 1.0


def test_figures_say_what_happened(whole: Whole) -> None:
    outcome = whole.outcome
    (*_, last) = points(whole.config)
    assert outcome.step == last.step == 3
    assert outcome.figures == last.figures
    assert last.figures["status.ok"] == last.figures["correct_rate"] == 1.0
    speed = math.log(last.figures["speedup"])
    assert last.figures["reward"] == pytest.approx(1 + speed)
    shares = [value for name, value in last.figures.items() if name.startswith("share.")]
    assert sum(shares) == pytest.approx(1.0)
    assert {"entropy", "loss", "lr", "cache.hit_rate", "seconds.measure"} <= last.figures.keys()
    assert len([a for a in whole.fake.asked if not isinstance(a, LibraryCall)]) == 3 * 16
    assert whole.fake.released


def test_the_adapter_can_be_used_and_has_changed(whole: Whole, weights: Path) -> None:
    trained = load_policy(str(weights / "base"), whole.outcome.adapter).model.state_dict()
    before = load_policy(str(weights / "base"), weights / "sft").model.state_dict()
    assert any(not torch.equal(trained[name], before[name]) for name in before)
    assert all(torch.isfinite(value).all() for value in trained.values())


def test_programs_are_written_with_the_weights_that_were_learnt(weights: Path) -> None:
    learner = rl_policy.load(str(weights / "base"), weights / "sft", "cpu")
    where = learner.policy.style.vocabulary + (3 << 31) + 5  # a coordinate
    ids = torch.tensor([[7, 11, where, 2]])

    def logits(model: Any) -> Any:
        with torch.no_grad():
            return model(inputs_embeds=model.get_input_embeddings()(ids)).logits

    before = logits(learner.policy.model)
    torch.testing.assert_close(before, logits(learner.model), atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        for parameter in learner.trained.values():
            parameter += 0.05 * torch.randn_like(parameter)
    assert torch.equal(logits(learner.policy.model), before)
    learner.refresh()
    now = logits(learner.policy.model)
    assert not torch.allclose(now, before, atol=1e-2)
    torch.testing.assert_close(now, logits(learner.model), atol=1e-4, rtol=1e-4)


def test_a_run_that_stops_goes_on_as_if_it_had_not(config: RlConfig, whole: Whole) -> None:
    first = run(config, box=StopAfter(1))
    assert first.step == 1
    second = run(config)
    assert second.step == whole.outcome.step == 3
    one, other = (torch.load(c.out / "checkpoint.pt") for c in (whole.config, config))
    for name, value in one["weights"].items():
        assert torch.equal(value, other["weights"][name]), name
    assert rewards(whole.config) == rewards(config)
    fake = Fake()
    assert run(config, fake).step == 3  # and nothing happens once it is over
    assert not fake.asked


def test_programs_of_a_step_may_serve_several_updates(
    config: RlConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates = 0
    step = torch.optim.AdamW.step

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal updates
        updates += 1
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)
    once = replace(config, updates=2, warmup=2)
    fake = Fake()
    run(once, fake)
    assert (updates, len(rewards(once))) == (6, 3)
    assert len([a for a in fake.asked if not isinstance(a, LibraryCall)]) == 3 * 16
    twice = replace(once, out=config.out.with_name("twice"))
    run(twice, box=StopAfter(1))
    run(twice)
    assert rewards(once) == rewards(twice)
    assert [p.figures["lr"] for p in points(once)] == [p.figures["lr"] for p in points(twice)]
    one, other = (torch.load(c.out / "checkpoint.pt") for c in (once, twice))
    for name, value in one["weights"].items():
        assert torch.equal(value, other["weights"][name]), name


def test_steps_after_the_last_checkpoint_are_done_again(config: RlConfig, whole: Whole) -> None:
    fake = Fake()
    asked = fake.evaluate

    def die(problem: Problem, answer: Answer) -> Evaluation:
        if len(fake.asked) > 40:  # in the third step
            raise KeyboardInterrupt
        return asked(problem, answer)

    fake.evaluate = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run(config, fake)
    assert len(rewards(config)) == 2
    assert run(config).step == 3
    assert rewards(config) == rewards(whole.config)


def test_another_configuration_does_not_go_on_from_a_checkpoint(config: RlConfig) -> None:
    run(config, box=StopAfter(1))
    with pytest.raises(ConfigError, match="lr"):
        run(replace(config, lr=0.01))
    with pytest.raises(ConfigError, match=r"reward.speed 1.0, not 0.0"):
        run(replace(config, reward="correctness_only"))


Verdict = Callable[[int], Evaluation]
BROKEN = Evaluation(Status.INFRASTRUCTURE_ERROR, "the worker died")
VERDICTS: dict[str, Verdict] = {
    "all alike": lambda at: Evaluation(Status.PARSE_ERROR, "no program"),
    "some of a dead worker": lambda at: BROKEN if at % 3 else timed(1.0 + at % 5),
    "timeouts": lambda at: Evaluation(Status.TIMEOUT, "too long"),
    "right, but not timed": lambda at: Evaluation(Status.OK, emulated_us=1.0),
}


@pytest.mark.parametrize("what", VERDICTS)
def test_no_verdict_poisons_a_step(config: RlConfig, what: str) -> None:
    fake = Fake()

    def evaluate(problem: Problem, answer: Answer) -> Evaluation:
        fake.asked.append(answer)
        return VERDICTS[what](len(fake.asked))

    fake.evaluate = evaluate  # type: ignore[method-assign]
    config = replace(config, steps=2, problems=1)
    run(config, fake)
    state = torch.load(config.out / "checkpoint.pt")
    assert all(torch.isfinite(value).all() for value in state["weights"].values())
    for point in points(config):
        assert all(math.isfinite(value) for value in point.figures.values())


def test_equal_rewards_change_nothing(config: RlConfig, weights: Path) -> None:
    fake = Fake()
    fake.evaluate = lambda problem, answer: timed(5.0)  # type: ignore[method-assign]
    run(replace(config, steps=1), fake)
    state = torch.load(config.out / "checkpoint.pt")["weights"]
    before = rl.load(str(weights / "base"), weights / "sft", "cpu").trained
    assert all(torch.equal(state[name], value.detach()) for name, value in before.items())


def test_gradients_that_are_no_numbers_are_left_out(
    config: RlConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = rl_trainer.GRPOTrainer._compute_loss

    def poisoned(self: Any, model: Any, inputs: Any) -> Any:
        found = loss(self, model, inputs)
        return found * math.nan if self.state.global_step == 1 else found

    monkeypatch.setattr(rl_trainer.GRPOTrainer, "_compute_loss", poisoned)
    run(config)
    state = torch.load(config.out / "checkpoint.pt")
    assert all(torch.isfinite(value).all() for value in state["weights"].values())
    assert [p.figures["updates_left_out"] for p in points(config)] == [0, 1, 1]


def test_a_machine_that_fails_on_everything_ends_the_session(config: RlConfig) -> None:
    fake = Fake()
    fake.evaluate = lambda problem, answer: BROKEN  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="the worker died; the same command goes on"):
        run(config, fake)


def test_validation_samples_stay_the_same(config: RlConfig) -> None:
    config = replace(
        config, steps=2, lr=1e-9, validate_every=1, validate_problems=2, validate_samples=4
    )
    run(config)
    found = [point.figures["validation.reward"] for point in points(config)]
    assert len(found) == 3  # before the first step, and after each
    assert found[0] == pytest.approx(found[2])


def test_known_programs_of_others_are_shown_and_learnt(config: RlConfig, weights: Path) -> None:
    from training.measured import Entry, Measurements, device_key
    from training.outcome import Outcome

    config = replace(config, steps=6, guide="on", algorithm="best_of_n", fresh=0, window=2)
    config.out.mkdir()
    known = Measurements(config.out / "known.sqlite", device_key(Fake.facts, Fake.settings))
    curriculum = config.curriculum("emulator")
    for number in curriculum.at(0):
        problem = curriculum.problem(number, curriculum.spec(number).build())
        fast = Outcome(Status.OK, hot_us=1.0, cold_us=1.0)
        known.put([Entry("fast", problem, "abcabc", fast)])
    fake = Fake()
    run(config, fake)
    shown = [answer for answer in fake.asked if answer.text == "abcabc"]
    assert len(shown) >= 2 * 3
    assert rewards(config)[-1] > rewards(config)[0]


def test_on_the_emulator_a_whole_step_runs(config: RlConfig) -> None:
    config = replace(config, steps=1, device="emulator", builders=1)
    outcome = train(config, lambda line: None)
    assert outcome.figures["status.parse_error"] == 1.0
    assert outcome.figures["reward"] == pytest.approx(-1.0)


def test_all_mistakes_are_told_before_anything_is_loaded(config: RlConfig) -> None:
    wrong = replace(
        config, steps=0, group=1, batch=7, reward="no such", matrices="x", window=1, minutes=0.0
    )
    told = mistakes(wrong)
    assert len(told) == 7
    with pytest.raises(ConfigError):
        run(wrong)


def test_an_adapter_of_another_base_is_refused(config: RlConfig, tmp_path: Path) -> None:
    lab.save_base(tmp_path / "other", seed=1)
    with pytest.raises(TrainingError, match="was trained on another base"):
        run(replace(config, base=str(tmp_path / "other")))
