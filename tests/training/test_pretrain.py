import dataclasses
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from suite.models.tiny import TinyConfig
from tests.training.archives import kernel
from training import packing
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.pretrain import PretrainConfig

torch = pytest.importorskip("torch", reason="needs the train extra")
transformers = pytest.importorskip("transformers", reason="needs the train extra")
tokenizer = pytest.importorskip("training.tokenizer")
trainer = pytest.importorskip("training.trainer")
steps = pytest.importorskip("training.steps")
torch.set_num_threads(1)  # these models are too small for more, and tests run side by side


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few kernels as packed tokens with their tokenizer."""
    folder = tmp_path_factory.mktemp("data")
    texts = [kernel(f"k{i}") for i in range(40)]
    words = tokenizer.fit(texts, 320)
    ids = list(tokenizer.encoded(words, texts))
    end = int(words.eos_token_id)
    tokenizer.save(words, folder / "tokenizer", tokenizer.Card(len(words), "", 40, 0, 1.0, 1.0))
    rows = {
        "train": packing.row(ids[:36], end, len(words)),
        "validation": packing.row(ids[36:], end, len(words)),
    }
    meta = packing.Meta(
        vocabulary=len(words),
        end=end,
        tokenizer=tokenizer.digest(folder / "tokenizer"),
        corpus="c",
        seed=0,
        documents={"train": 36, "validation": 4},
        tokens={s: len(r) for s, r in rows.items()},
        text_bytes={s: 3 * len(r) for s, r in rows.items()},
        sha256={},
    )
    packing.write(folder, rows, meta)
    return folder


@pytest.fixture
def config(data: Path, tmp_path: Path) -> PretrainConfig:
    return PretrainConfig(
        data=data,
        out=tmp_path / "run",
        steps=20,
        batch=4,
        length=32,
        lr=3e-3,
        warmup=4,
        width=16,
        layers=2,
        heads=2,
        kv_heads=1,
        mlp=32,
        positions=64,
        device="cpu",
        save_every=8,
        evaluate_every=10,
        evaluate_batches=2,
        log_every=1,
        tracking="off",
    )


class StopAfter(TimeBox):
    """Ends a session after so many steps."""

    def __init__(self, count: int) -> None:
        super().__init__(None)
        self._left = count + 1

    @property
    def over(self) -> bool:
        self._left -= 1
        return self._left <= 0


def run(config: PretrainConfig, box: TimeBox | None = None) -> Any:
    return trainer.pretrain(config, lambda line: None, box)


def curve(config: PretrainConfig, name: str = "loss") -> list[float]:
    lines = (config.out / "curve.jsonl").read_text().splitlines()
    return [p[name] for p in map(json.loads, lines) if name in p]


def weights(config: PretrainConfig) -> dict[str, Any]:
    return dict(torch.load(config.out / "checkpoint.pt", weights_only=True)["weights"])


@pytest.mark.parametrize("every", [1, 4])
def test_twenty_steps_are_the_same_at_once_and_in_pieces(
    every: int, config: PretrainConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(config, log_every=every)
    whole = dataclasses.replace(config, out=tmp_path / "whole")
    assert run(whole).model is not None
    for count in (3, 8):
        outcome = run(config, StopAfter(count))
        assert outcome.model is None
    assert outcome.step == 11
    assert run(config).step == 20
    losses = curve(config)
    assert len(losses) == 20 // every
    assert losses == curve(whole)
    assert curve(config, "validation_loss") == curve(whole, "validation_loss")
    mine, theirs = weights(config), weights(whole)
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert losses[-1] < losses[0] - 0.5


def test_a_run_killed_between_checkpoints_does_those_steps_again(
    config: PretrainConfig, tmp_path: Path
) -> None:
    whole = dataclasses.replace(config, out=tmp_path / "whole")
    run(whole)

    def killed(line: str) -> None:
        if line.startswith("step 13/"):
            raise MemoryError

    with pytest.raises(MemoryError):
        trainer.pretrain(config, killed)
    assert len(curve(config)) == 13
    (config.out / ".checkpoint.pt.1").write_bytes(b"half")
    assert run(config).step == 20
    assert curve(config) == curve(whole)
    assert not list(config.out.glob(".checkpoint*"))


def test_two_sessions_do_not_share_a_folder(config: PretrainConfig) -> None:
    config.out.mkdir()
    with (
        FileLock(config.out / ".lock"),
        pytest.raises(TrainingError, match="another session trains here"),
    ):
        run(config)


def test_the_finished_model_loads_with_its_tokenizer_and_predicts(config: PretrainConfig) -> None:
    outcome = run(config)
    assert outcome.model == config.out / "model"
    model = transformers.AutoModelForCausalLM.from_pretrained(outcome.model, dtype=torch.float32)
    words = transformers.AutoTokenizer.from_pretrained(outcome.model)
    trained = weights(config)
    for name, value in model.named_parameters():
        assert torch.allclose(value, trained[name].to(torch.bfloat16).float(), atol=1e-6)
    assert model.config.eos_token_id == words.eos_token_id
    assert model.config.pad_token_id == words.pad_token_id != words.eos_token_id
    ids = torch.tensor([words.encode(kernel("k3"))[:60]])
    with torch.no_grad():
        loss = float(model(input_ids=ids, labels=ids).loss)
    assert loss < np.log(len(words))


def test_a_finished_run_stays_as_it_is(config: PretrainConfig) -> None:
    run(config)
    before = weights(config)
    outcome = run(config)
    assert outcome.step == 20
    assert outcome.model is not None
    assert all(torch.equal(before[n], w) for n, w in weights(config).items())


def test_parts_of_a_batch_add_up(config: PretrainConfig, tmp_path: Path) -> None:
    run(config)
    parted = dataclasses.replace(config, out=tmp_path / "parted", accumulate=4)
    run(parted)
    assert curve(parted) == pytest.approx(curve(config), rel=1e-3)


def test_attention_stays_inside_a_document() -> None:
    model = TinyConfig(50, 16, 2, 2, 1, 32, 64).build(1, 0, seed=0).eval()
    documents = torch.tensor([[0, 0, 0, 1, 1, 1]])
    positions = torch.tensor([[0, 1, 2, 0, 1, 2]])

    def logits(ids: list[int]) -> Any:
        with torch.no_grad():
            return model(
                input_ids=torch.tensor([ids]),
                attention_mask=steps.attention_mask(documents),
                position_ids=positions,
            ).logits

    first, second = logits([5, 6, 1, 7, 8, 9]), logits([15, 16, 1, 7, 8, 9])
    assert torch.equal(first[:, 3:], second[:, 3:])
    assert not torch.equal(first[:, 2], second[:, 2])
    with torch.no_grad():
        alone = model(input_ids=torch.tensor([[7, 8, 9]])).logits
    assert torch.allclose(first[:, 3:], alone, atol=1e-5)
    later = logits([5, 6, 1, 7, 8, 19])
    assert torch.equal(first[:, :5], later[:, :5])


def test_all_mistakes_are_found_before_anything_is_loaded(config: PretrainConfig) -> None:
    wrong = dataclasses.replace(
        config, steps=0, batch=5, accumulate=2, lr=2.0, width=15, length=128, minutes=-1.0, clip=0
    )
    with pytest.raises(ConfigError) as caught:
        run(wrong)
    found = "\n".join(caught.value.mistakes)
    for words in (
        "steps 0: at least 1",
        "lr 2.0: above 0, below 1",
        "warmup 4: from 0 to steps (0)",
        "clip 0: above 0",
        "minutes -1.0: above 0",
        "batch 5: must be 2 equal parts",
        "width 15 must be 2 heads of an even size",
        "length 128: tiny is made for 64 positions",
    ):
        assert words in found
    assert not config.out.exists()


def test_too_few_tokens_are_a_mistake(config: PretrainConfig) -> None:
    with pytest.raises(ConfigError, match=r"validation has .* tokens, too few for rows of 4000"):
        run(dataclasses.replace(config, length=4000, positions=4000))


def test_another_configuration_in_the_same_folder_is_refused(config: PretrainConfig) -> None:
    run(config, StopAfter(2))
    other = dataclasses.replace(config, lr=1e-3, seed=4)
    with pytest.raises(ConfigError) as caught:
        run(other)
    assert [m.partition("was made with ")[2] for m in caught.value.mistakes] == [
        "lr 0.003, not 0.001; give that, or another folder",
        "seed 0, not 4; give that, or another folder",
    ]
    assert run(dataclasses.replace(config, log_every=2, minutes=5.0)).step == 20


@pytest.mark.parametrize("damage", [lambda d: d[: len(d) // 2], lambda d: b"", lambda d: b"x" * 99])
def test_a_damaged_checkpoint_is_named(
    damage: Callable[[bytes], bytes], config: PretrainConfig
) -> None:
    run(config, StopAfter(1))
    path = config.out / "checkpoint.pt"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TrainingError, match=r"checkpoint\.pt: cannot be read .* delete it"):
        run(config)
    path.unlink()
    assert run(config).step == 20
    assert len(curve(config)) == 20


def test_a_signal_ends_a_session_at_a_checkpoint(config: PretrainConfig) -> None:
    box = TimeBox(None)

    def asked(line: str) -> None:
        if line.startswith("step 5/"):
            signal.raise_signal(signal.SIGTERM)

    with box.signals():
        outcome = trainer.pretrain(config, asked, box)
    assert outcome.step == 5
    assert torch.load(config.out / "checkpoint.pt", weights_only=True)["step"] == 5


def test_a_loss_that_is_no_number_stops_the_run(
    config: PretrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    nan = (torch.tensor(float("nan")), torch.tensor(1.0))
    monkeypatch.setattr("training.trainer.Stepper.step", lambda *_: nan)
    with pytest.raises(TrainingError, match="step 1: the loss is nan"):
        run(config)


def test_another_base_learns_through_lora_alone(config: PretrainConfig, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs the train extra")
    base = tmp_path / "base"
    random_llama(320).save_pretrained(base)
    lora = dataclasses.replace(config, base=str(base), lr=2e-2)
    run(lora, StopAfter(7))
    outcome = run(lora)
    assert curve(lora)[-1] < curve(lora)[0] - 0.1
    assert all("lora_" in name for name in weights(lora))
    assert (outcome.model or tmp_path).joinpath("adapter_model.safetensors").exists()


def test_a_base_that_cannot_be_used_is_named(config: PretrainConfig, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs the train extra")
    base = tmp_path / "base"
    random_llama(300).save_pretrained(base)
    with pytest.raises(TrainingError, match=r"knows 300 tokens and the data has"):
        run(dataclasses.replace(config, base=str(base)))
    with pytest.raises(TrainingError, match=r"base .*none: cannot be loaded"):
        run(dataclasses.replace(config, base=str(tmp_path / "none")))


def random_llama(vocabulary: int) -> Any:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64}
    config = transformers.LlamaConfig(vocab_size=vocabulary, **sizes, **heads)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)  # in twenty steps some weights gain half as much as others
        return transformers.LlamaForCausalLM(config)
