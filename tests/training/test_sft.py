"""Stage two on the CPU: what counts, going on after a stop, what is refused, what comes out."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suite.problem import DType, Op, Problem
from tests.training.pairs_lab import make_base, make_pairs
from training import seen
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.sft import SftConfig, candidate_steps

torch = pytest.importorskip("torch", reason="needs the train extra")
pytest.importorskip("trl", reason="needs the train extra")
safetensors = pytest.importorskip("safetensors.torch", reason="needs the train extra")
from suite.models import adapters, policy  # noqa: E402
from suite.models.author import authors  # noqa: E402
from suite.models.prompt import Encoding, PromptStyle  # noqa: E402
from suite.models.tiny import TinyConfig  # noqa: E402
from suite.models.variants import BASE, VARIANTS  # noqa: E402
from training import batch_rows, examples, selection, sft_run, sft_trainer  # noqa: E402
from training.answers import Question  # noqa: E402
from training.shipping import ship  # noqa: E402

torch.set_num_threads(1)  # these models are too small for more, and tests run side by side


@dataclasses.dataclass(frozen=True)
class Lab:
    pairs: Path
    base: Path
    table: Any
    words: Any
    seen: dict[str, seen.Seen]

    def examples(self, encoding: Encoding, longest: int = 1024) -> examples.Examples:
        style = PromptStyle(encoding, len(self.words))
        return examples.make(self.table, self.seen, self.words, style, longest=longest)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("lab")
    table = make_pairs(folder / "pairs")
    words = make_base(folder / "base", table["text"].to_pylist())
    looked = seen.read(seen.of_pairs(folder / "pairs", table, lambda _: None, 1))
    return Lab(folder / "pairs", folder / "base", table, words, looked)


@pytest.fixture
def config(lab: Lab, tmp_path: Path) -> SftConfig:
    return SftConfig(
        pairs=(lab.pairs,),
        out=tmp_path / "run",
        base=str(lab.base),
        epochs=1,
        tokens=1024,
        rank=4,
        warmup=2,
        device="cpu",
        workers=1,
        save_every=3,
        log_every=1,
        tracking="off",
    )


class StopAfter(TimeBox):
    """Ends a session after so many steps."""

    def __init__(self, count: int) -> None:
        super().__init__(None)
        self._left = count

    @property
    def over(self) -> bool:
        self._left -= 1
        return self._left <= 0


def run(config: SftConfig, box: TimeBox | None = None) -> sft_run.Outcome:
    return sft_run.sft(config, lambda _: None, box)


def weights(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = safetensors.load_file(folder / adapters.WEIGHTS)
    return found


def losses(config: SftConfig) -> list[tuple[int, float]]:
    lines = (config.out / "curve.jsonl").read_text().splitlines()
    return [(point["step"], point["loss"]) for point in map(json.loads, lines)]


# What is learnt


@pytest.mark.parametrize("encoding", Encoding)
def test_an_example_is_the_prompt_that_is_asked_later_and_the_program(
    lab: Lab, encoding: Encoding
) -> None:
    made = lab.examples(encoding)
    who = policy.load(lab.base, encoding=encoding)
    rows = [r for r in lab.table.to_pylist() if len(who.encode(r["text"])) < 1024]
    assert len(made) == len(rows) > 4
    for index, row in enumerate(rows):
        ids, prompt = made.at(index).tolist(), int(made.prompts[index])
        assert who.decode(ids[prompt:-1]) == row["text"]
        assert ids[-1] == who.end
        spec = seen.spec_of(row["matrix"], row["family"], row["recipe"])
        problem = Problem(Op(row["op"]), spec.build(), row["n"], DType(row["dtype"]))
        arch = who.decode(ids[:20]).split("\n")[0].split()[-1]
        assert ids[:prompt] == who.prompt(problem, arch)
        question = Question(
            lab.seen[row["matrix_digest"]], problem.op, problem.columns, problem.dtype
        )
        assert ids[:prompt] == list(question.prompt(who, arch))


def test_long_programs_are_dropped_and_counted(lab: Lab) -> None:
    lengths = [len(lab.words.encode(text)) + 1 for text in lab.table["text"].to_pylist()]
    limit = int(np.median(lengths))
    made = lab.examples(Encoding.COORDINATES, limit)
    assert made.dropped == sum(n > limit for n in lengths) > 0
    assert len(made) == len(lengths) - made.dropped
    with pytest.raises(TrainingError, match="at most 3 tokens"):
        lab.examples(Encoding.COORDINATES, 3)


def test_only_program_and_end_count_and_rows_do_not_see_each_other(lab: Lab) -> None:
    made = lab.examples(Encoding.COORDINATES)
    chosen = np.array([0, 2, 3])
    batch = batch_rows.batch(made, chosen, int(lab.words.pad_token_id))
    who = policy.load(lab.base)
    together = who.model(input_ids=batch["input_ids"], position_ids=batch["position_ids"]).logits
    for row, index in enumerate(chosen):
        one, prompt = made.at(index), int(made.prompts[index])
        counted = batch["labels"][row] != batch_rows.IGNORED
        assert counted.nonzero().flatten().tolist() == list(range(prompt, len(one)))
        alone = who.model(input_ids=torch.from_numpy(one)[None]).logits[0]
        assert torch.allclose(together[row, : len(one)], alone, atol=1e-5)


def test_the_first_loss_is_that_of_the_programs_alone(lab: Lab, config: SftConfig) -> None:
    made = lab.examples(Encoding.COORDINATES)
    run(config, StopAfter(1))
    chosen = sft_run.plan(made.lengths, config.tokens, config.epochs, config.seed)[0]
    who = policy.load(lab.base)
    nats, count = 0.0, 0
    for index in chosen:
        one, prompt = torch.from_numpy(made.at(index)), int(made.prompts[index])
        known = who.model(input_ids=one[None]).logits[0].log_softmax(-1)
        nats -= float(known[torch.arange(prompt - 1, len(one) - 1), one[prompt:]].sum())
        count += len(one) - prompt
    assert losses(config)[0] == (1, pytest.approx(nats / count, rel=1e-4))


def test_pairs_of_several_folders_are_learnt_together(lab: Lab, config: SftConfig) -> None:
    other = config.out.with_name("other")
    more = make_pairs(other, matrices=3, each=2)
    said: list[str] = []
    both = dataclasses.replace(config, pairs=(lab.pairs, other))
    sft_run.sft(both, said.append, StopAfter(1))
    (line,) = [one for one in said if "examples of" in one]
    made, dropped = (int(part.split()[0]) for part in line.split(", ")[:2])
    assert made + dropped == len(lab.table) + len(more)


# Running


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(config: SftConfig) -> None:
    whole = run(config)
    assert whole.adapter is not None
    assert whole.step == whole.steps > 5
    parts = dataclasses.replace(config, out=config.out.with_name("parts"))
    assert run(parts, StopAfter(4)) == sft_run.Outcome(4, whole.steps, None, "")
    half = parts.out / "checkpoints" / "checkpoint-5"  # of a kill while it was written
    half.mkdir()
    (half / "trainer_state.json").write_text("{")
    done = run(parts)
    assert done.adapter is not None
    mine, theirs = weights(whole.adapter), weights(done.adapter)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert losses(parts) == losses(config)
    assert run(parts).adapter == done.adapter  # nothing is left to do
    assert losses(parts) == losses(config)


def test_sixteen_bits_train_what_is_kept_in_thirty_two(
    config: SftConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sft_trainer.HALF, "cpu", True)
    several = dataclasses.replace(config, epochs=2, lr=0.03)
    assert run(several).adapter is not None
    found = [loss for _, loss in losses(several)]
    assert sum(found[-3:]) / 3 < found[0] - 0.01  # batches differ by a few thousandths


def test_another_run_in_the_folder_is_refused(config: SftConfig) -> None:
    run(config, StopAfter(1))
    changes: dict[str, Any]
    for changes, message in (
        ({"rank": 8}, "made with rank 4, not 8"),
        ({"seed": 1}, "made with seed 0, not 1"),
        ({"variant": "no_embedding"}, "made with variant sft_only, not no_embedding"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(dataclasses.replace(config, **changes))


def test_another_base_is_refused(lab: Lab, config: SftConfig, tmp_path: Path) -> None:
    run(config, StopAfter(1))
    make_base(tmp_path / "other", lab.table["text"].to_pylist(), seed=1)
    with pytest.raises(ConfigError, match="made with base"):
        run(dataclasses.replace(config, base=str(tmp_path / "other")))
    with pytest.raises(TrainingError, match="nowhere"):
        run(dataclasses.replace(config, base=str(tmp_path / "nowhere")))


def test_mistakes_come_together(config: SftConfig) -> None:
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(config, rank=0, lr=2.0, minutes=-1.0, select=-1).check()
    assert len(caught.value.mistakes) == 4


# What comes out


@pytest.mark.parametrize("variant", ["sft_only", "no_embedding"])
def test_the_adapter_is_one_that_the_suite_loads(
    lab: Lab, config: SftConfig, variant: str, tmp_path: Path
) -> None:
    weights_folder = tmp_path / "weights"
    outcome = run(dataclasses.replace(config, variant=variant, ship=weights_folder))
    assert outcome.adapter is not None
    (author,) = authors(weights_folder)
    assert author.name == variant
    loaded = policy.load(weights_folder / BASE, weights_folder / variant)
    expected = {"sft_only": Encoding.COORDINATES, "no_embedding": Encoding.TEXT}
    assert loaded.style.encoding is expected[variant]
    moved = [v.abs().max() > 0 for n, v in weights(outcome.adapter).items() if "lora_B" in n]
    assert all(moved)
    assert len(moved) == 7
    mine = next(v for v in VARIANTS if v.name == variant)
    assert ship(str(lab.base), outcome.adapter, mine, weights_folder).name == variant
    other = next(v for v in VARIANTS if v.encoding != expected[variant])
    with pytest.raises(TrainingError, match=f"{other.name} reads"):
        ship(str(lab.base), outcome.adapter, other, weights_folder)
    make_base(tmp_path / "other", lab.table["text"].to_pylist(), seed=1)
    with pytest.raises(TrainingError, match="was trained on base"):
        ship(str(tmp_path / "other"), outcome.adapter, mine, weights_folder)
    policy.save_base(*policy.load_base(tmp_path / "other")[:2], tmp_path / "mixed" / BASE, "other")
    with pytest.raises(TrainingError, match="was trained on base"):
        ship(str(lab.base), outcome.adapter, mine, tmp_path / "mixed")


def test_the_default_rank_is_the_largest_multiple_of_eight_in_four_megabytes(
    tmp_path: Path,
) -> None:
    def size(rank: int) -> int:
        model: Any = TinyConfig().build(1, 0, 0)
        config = adapters.lora(model, rank)
        adapted = adapters.get_peft_model(model, config)
        style = PromptStyle(Encoding.COORDINATES, 2048)
        adapters.save_adapter(adapted, tmp_path / str(rank), style, ("base", 2048), "random")
        return (tmp_path / str(rank) / adapters.WEIGHTS).stat().st_size

    assert size(SftConfig.rank) <= 4_000_000 < size(SftConfig.rank + 8)


def test_the_candidate_with_the_most_right_programs_is_kept(
    lab: Lab, config: SftConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = lab.examples(Encoding.COORDINATES).lengths
    steps = len(sft_run.plan(lengths, config.tokens, config.epochs, config.seed))
    middle = candidate_steps(steps, 3)[1]
    rates: Callable[..., dict[str, float]] = lambda _config, folder, *_rest: {  # noqa: E731
        "programs": 8.0,
        "compile_rate": 0.5,
        "correct_rate": 0.4 if folder.name == f"step-{middle}" else 0.3,
    }
    monkeypatch.setattr(selection, "_rates", rates)
    monkeypatch.setattr(selection, "problems", lambda _: [])
    choosing = dataclasses.replace(config, select=8, candidates=3, judge="emulator")
    early = StopAfter(steps + 1)  # when all is trained and one candidate is judged
    assert run(choosing, early) == sft_run.Outcome(steps, steps, None, "")
    said: list[str] = []
    outcome = sft_run.sft(choosing, said.append)
    assert outcome.adapter is not None
    kept, best, last = (
        weights(folder)
        for folder in (
            outcome.adapter,
            *(config.out / "candidates" / f"step-{step}" for step in (middle, steps)),
        )
    )
    assert all(torch.equal(value, best[name]) for name, value in kept.items())
    assert not all(torch.equal(value, last[name]) for name, value in kept.items())
    assert sum(" right, of 8" in line for line in said) == 2
