"""Coordinates are told apart wherever they lie, and the model around them works as it did."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from peft import get_peft_model
from torch import nn

from suite.models import adapters
from suite.models.coordinates import LIMIT, coordinate_ids, coordinates
from suite.models.embedding import WAVELENGTHS, CoordinateEmbedding, attach, code
from suite.models.errors import ModelError
from tests.models import lab

FAMILIES = ["llama", "qwen2", "qwen3", "gemma3"]
LARGEST = LIMIT - 1


def embedded(model: Any, pairs: list[tuple[int, int]]) -> torch.Tensor:
    ids = coordinate_ids(*np.array(pairs).T, lab.VOCABULARY)
    return model.get_input_embeddings()(torch.from_numpy(ids))


def test_ids_carry_their_pair_and_stay_int64() -> None:
    rows, cols = np.array([0, 3, LARGEST]), np.array([0, LARGEST, LARGEST])
    ids = coordinate_ids(rows, cols, 5000)
    assert ids.dtype == np.int64
    assert ids.min() >= 5000
    mixed = np.concatenate([[7], ids, [4999]])
    assert [part.tolist() for part in coordinates(mixed, 5000)] == [rows.tolist(), cols.tolist()]


@pytest.mark.parametrize("pair", [(-1, 0), (0, -1), (LIMIT, 0), (0, LIMIT)])
def test_a_coordinate_beyond_31_bits_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ModelError, match="too large"):
        coordinate_ids(np.array(pair[:1]), np.array(pair[1:]), 10)


@pytest.mark.parametrize("at", [0, 1000, 10**6, 2**31 - 70])
def test_neighbours_and_millions_are_told_apart(at: int) -> None:
    wavelengths = torch.tensor(WAVELENGTHS)
    near = code(torch.arange(at, at + 64), wavelengths)
    apart = torch.cdist(near, near) + torch.eye(64) * 100
    assert apart.min() > 1  # of a length of about 8
    far = code(torch.tensor([at, (at + 10**6) % LIMIT, (at + 2**30) % LIMIT]), wavelengths)
    assert torch.pdist(far).min() > 1


def test_a_code_is_as_exact_for_large_coordinates_as_for_small_ones() -> None:
    value = LARGEST - 12345
    found = code(torch.tensor(value), torch.tensor(WAVELENGTHS)).double().numpy()
    turns = np.array([(value % wave) / wave for wave in WAVELENGTHS])
    exact = np.concatenate([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])
    assert np.abs(found - exact).max() < 1e-6


def test_rows_columns_and_offsets_all_count() -> None:
    model = lab.reader()
    same_row, same_col, same_offset, base = embedded(model, [(5, 9), (6, 8), (6, 9), (5, 8)])
    for other in (same_row, same_col, same_offset):
        assert (other - base).norm() > 0.15 * base.norm()


@pytest.mark.parametrize("name", FAMILIES)
def test_text_alone_is_read_as_before(name: str) -> None:
    model = lab.build(name)
    ids = torch.tensor([[5, 9, 300, 7]])
    before = model(input_ids=ids).logits
    table = attach(model)
    assert torch.equal(model(input_ids=ids).logits, before)
    assert attach(model) is table is model.get_input_embeddings()


@pytest.mark.parametrize("name", FAMILIES)
def test_coordinates_are_as_large_as_tokens(name: str) -> None:
    model = lab.reader(name)
    pairs = np.random.default_rng(0).integers(0, 10**6, (200, 2)).tolist()
    ordinary = model.get_input_embeddings()(torch.arange(2, lab.VOCABULARY))
    ratio = embedded(model, pairs).square().mean() / ordinary.square().mean()
    assert 0.7 < float(ratio.sqrt()) < 1.4


def test_the_projection_is_the_same_wherever_it_is_made() -> None:
    torch.manual_seed(1)
    first = lab.reader().get_input_embeddings().coordinate_projection.weight
    torch.manual_seed(2)
    assert torch.equal(lab.reader().get_input_embeddings().coordinate_projection.weight, first)


def test_names_of_weights_and_ties_are_kept() -> None:
    model = lab.build()
    before = set(model.state_dict())
    table = attach(model)
    name = "model.embed_tokens.coordinate_projection"
    assert set(model.state_dict()) - before == {f"{name}.weight", f"{name}.bias"}
    assert model.get_output_embeddings().weight is table.weight


def test_a_state_dict_goes_around() -> None:
    first, second = lab.reader(seed=1), lab.reader(seed=2)
    lab.stir(first.requires_grad_(True))
    second.load_state_dict(first.state_dict())
    pairs = [(1, 2), (10**6, 4)]
    assert torch.equal(embedded(first, pairs), embedded(second, pairs))
    assert torch.equal(embedded(copy.deepcopy(first), pairs), embedded(first, pairs))


def test_in_bfloat16_it_is_the_same_but_for_rounding() -> None:
    model = lab.reader()
    pairs = [(1, 2), (10**9, 4), (10**9, 5)]
    exact = embedded(model, pairs)
    rough = embedded(model.to(torch.bfloat16), pairs)
    assert rough.dtype == torch.bfloat16
    assert (rough.float() - exact).norm() < 0.02 * exact.norm()


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_reach_projection_and_table_also_with_checkpointing(name: str) -> None:
    model = lab.build(name).train()
    table = attach(model)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    (prompt,) = lab.prompts((9,))
    model(input_ids=torch.tensor([prompt])).logits.square().mean().backward()
    assert table.coordinate_projection.weight.grad.abs().sum() > 0
    seen = table.weight.grad.abs().sum(dim=1)[list(prompt[:9])]
    assert (seen > 0).all()


def test_an_adapter_trains_the_projection_and_not_the_table() -> None:
    model = lab.build()
    adapted: Any = get_peft_model(model, adapters.lora(model, rank=4))
    adapted(input_ids=torch.tensor(lab.prompts((9,)))).logits.square().mean().backward()
    trained = {name for name, value in adapted.named_parameters() if value.grad is not None}
    assert any("coordinate_projection" in name for name in trained)
    assert not any("embed_tokens.weight" in name for name in trained)
    assert all("lora_" in name or "coordinate_projection" in name for name in trained)


@pytest.mark.parametrize("name", FAMILIES)
def test_generate_of_transformers_takes_coordinates(name: str) -> None:
    model = lab.reader(name)
    (prompt,) = lab.prompts((9,))
    ids = torch.tensor([prompt])
    out = model.generate(ids, max_new_tokens=4, do_sample=False, min_new_tokens=4)
    assert out.shape == (1, len(prompt) + 4)
    assert int(out[0, len(prompt) :].max()) < lab.VOCABULARY


def test_another_kind_of_table_is_refused() -> None:
    class Odd(nn.Module):
        def get_input_embeddings(self) -> nn.Module:
            return nn.Linear(2, 2)

    with pytest.raises(ModelError, match=r"Linear as input embedding"):
        attach(Odd())


def test_it_is_still_an_embedding_of_its_own_kind() -> None:
    table = lab.reader("gemma3").get_input_embeddings()
    assert isinstance(table, CoordinateEmbedding)
    assert type(table).__name__ == "CoordinateGemma3TextScaledWordEmbedding"
