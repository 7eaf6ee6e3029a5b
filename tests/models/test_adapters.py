"""What an adapter learned is there again on a fresh base, or the base is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import get_peft_model
from safetensors.torch import load_file, save_file

from suite.models import adapters, manifest, policy
from suite.models.decode import Choice
from suite.models.errors import ModelError
from suite.models.generate import Generator, Request
from suite.models.prompt import Encoding, PromptStyle
from tests.models import lab


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return lab.save_base(tmp_path / "base")


def logits(model: Any, vocabulary: int = lab.VOCABULARY) -> torch.Tensor:
    ids = torch.tensor(lab.prompts((9,)))
    ids = torch.where(ids >= lab.VOCABULARY, ids + vocabulary - lab.VOCABULARY, ids)
    ids[0, 3] = vocabulary - 1
    return model.eval()(input_ids=ids).logits.detach()


def test_a_saved_adapter_gives_the_same_logits_on_a_fresh_base(base: Path, tmp_path: Path) -> None:
    adapted = lab.save_adapter(base, tmp_path / "adapter")
    found = policy.load(base, tmp_path / "adapter")
    assert (logits(found.model) - logits(adapted)).abs().max() < 1e-6
    assert (logits(found.model) - logits(policy.load(base).model)).abs().max() > 1e-2
    assert found.style == lab.COORDINATES
    assert not any("lora" in name for name, _ in found.model.named_parameters())


def test_programs_are_written_with_a_live_adapter_as_with_a_merged_one(
    base: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)  # merging rounds, which moves a draw that falls between two tokens
    live = lab.save_adapter(base, tmp_path / "adapter").get_base_model().train()
    merged = policy.load(base, tmp_path / "adapter").model
    requests = [Request(prompt, 3) for prompt in lab.prompts()]
    found = []
    for model in (live, merged):
        generator = Generator(model, lab.END, lab.PAD, lab.TOKENS, 4, 12, Choice(1.0))
        found.append([completion.tokens for completion in generator.generate(requests)])
    assert found[0] == found[1]
    assert live.training


def test_training_goes_on_from_a_saved_adapter(base: Path, tmp_path: Path) -> None:
    adapted = lab.save_adapter(base, tmp_path / "adapter")
    again = adapters.apply(policy.load_base(base)[0], tmp_path / "adapter", lab.VOCABULARY)
    assert (logits(again) - logits(adapted)).abs().max() < 1e-6
    names = {name for name, value in again.named_parameters() if value.requires_grad}
    assert names == {name for name, value in adapted.named_parameters() if value.requires_grad}


def test_tokens_that_were_added_come_back_with_the_adapter(base: Path, tmp_path: Path) -> None:
    model, tokenizer, known = policy.load_base(base)
    spare = [f"__spare{n}" for n in range(lab.VOCABULARY - len(tokenizer))]
    tokenizer.add_tokens([*spare, "__syncwarp", "__ldcs"])
    longer = len(tokenizer)
    model.resize_token_embeddings(longer, mean_resizing=False)
    adapted = get_peft_model(model, adapters.lora(model, 4, added_tokens=True))
    lab.stir(adapted)
    style = PromptStyle(Encoding.COORDINATES, longer)
    about = style, (known, lab.VOCABULARY), "random"
    adapters.save_adapter(adapted, tmp_path / "a", *about, tokenizer, torch.float32)
    found = policy.load(base, tmp_path / "a")
    assert (logits(found.model, longer) - logits(adapted, longer)).abs().max() < 1e-6
    assert found.encode("__ldcs") == [longer - 1]
    assert found.style.vocabulary == longer


def test_tokens_that_would_be_lost_are_refused_when_saving(base: Path, tmp_path: Path) -> None:
    model, _, known = policy.load_base(base)
    model.resize_token_embeddings(lab.VOCABULARY + 2, mean_resizing=False)
    adapted = get_peft_model(model, adapters.lora(model, 4))
    style = PromptStyle(Encoding.COORDINATES, lab.VOCABULARY + 2)
    with pytest.raises(ModelError, match=r"lora\(added_tokens=True\), or the new ones are lost"):
        adapters.save_adapter(adapted, tmp_path / "a", style, (known, lab.VOCABULARY), "random")
    assert not (tmp_path / "a").exists()


def test_an_adapter_tells_how_it_reads(base: Path, tmp_path: Path) -> None:
    style = PromptStyle(Encoding.TEXT, lab.VOCABULARY, shown=77)
    lab.save_adapter(base, tmp_path / "a", style)
    assert policy.load(base, tmp_path / "a").style == style


def test_no_path_of_a_machine_is_saved(base: Path, tmp_path: Path) -> None:
    adapted = lab.save_adapter(base, tmp_path / "a")
    assert all(str(tmp_path) not in path.read_text() for path in (tmp_path / "a").glob("*.json"))
    assert adapted.peft_config["default"].base_model_name_or_path == str(base)


def test_it_is_saved_in_16_bits_unless_asked_otherwise(base: Path, tmp_path: Path) -> None:
    model, _, known = policy.load_base(base)
    adapted = get_peft_model(model, adapters.lora(model, 4))
    adapters.save_adapter(
        adapted, tmp_path / "a", lab.COORDINATES, (known, lab.VOCABULARY), "random"
    )
    saved = load_file(tmp_path / "a" / adapters.WEIGHTS)
    assert {value.dtype for value in saved.values()} == {torch.bfloat16}
    assert any("coordinate_projection" in name for name in saved)


def test_an_adapter_for_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    lab.save_adapter(base, tmp_path / "a")
    other = lab.save_base(tmp_path / "other", seed=1)
    with pytest.raises(ModelError, match="was trained on another base"):
        policy.load(other, tmp_path / "a")


def test_a_base_is_no_adapter(base: Path) -> None:
    with pytest.raises(ModelError, match="holds a base, and an adapter is needed"):
        policy.load(base, base)


def reseal(folder: Path) -> None:
    """Makes a manifest true to what was changed, as a careless hand would."""
    data = manifest.json.loads((folder / manifest.NAME).read_text())
    data["files"] = {name: manifest.digest(folder / name) for name in data["files"]}
    (folder / manifest.NAME).write_text(manifest.json.dumps(data))


def truncated(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return dict(list(state.items())[1:])


def reshaped(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value[:1].clone() for name, value in state.items()}


def renamed(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.replace("layers.1", "layers.7"): value for name, value in state.items()}


@pytest.mark.parametrize("change", [truncated, reshaped, renamed])
def test_weights_without_a_place_are_refused(base: Path, tmp_path: Path, change: Any) -> None:
    folder = tmp_path / "a"
    lab.save_adapter(base, folder)
    path = folder / adapters.WEIGHTS
    save_file(change(load_file(path)), path)
    with pytest.raises(ModelError, match="is not what it was when it was saved"):
        policy.load(base, folder)
    reseal(folder)
    with pytest.raises(ModelError, match="weights have no place in this base"):
        policy.load(base, folder)


def test_a_file_that_is_no_safetensors_is_refused(base: Path, tmp_path: Path) -> None:
    lab.save_adapter(base, tmp_path / "a")
    (tmp_path / "a" / adapters.WEIGHTS).write_bytes(b"not weights")
    reseal(tmp_path / "a")
    with pytest.raises(ModelError, match="cannot be read"):
        policy.load(base, tmp_path / "a")
