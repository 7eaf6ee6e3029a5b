"""A step can be captured: recorded once and replayed it writes what it writes when called.

There is no GPU here, so a step is recorded as the operations that it consists of. Like a capture
that fixes every address and every decision of the host, and fails where the host asks for a value.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from suite.models import cache, decode
from suite.models.decode import VIEW, Choice, Loop, choose
from suite.models.generate import Completion, Generator, Request
from tests.models import lab

CHOICES = [Choice(0.0), Choice(1.2), Choice(1.2, 0.8)]


class Recorded(TorchDispatchMode):
    """Stands for a ``CUDAGraph``: a step as a list of operations on fixed tensors."""

    def __init__(self, loop: Loop, view: int) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        with torch.no_grad(), decode.grouped_attention(loop.model), self:
            loop.step(view)

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        assert operation is not torch.ops.aten._local_scalar_dense.default, "asks for a value"
        result = operation(*args, **(kwargs or {}))
        self.operations.append((operation, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def replay(self) -> None:
        made: dict[int, Any] = {}  # by the tensor of the recording: what it is this time

        def now(value: Any) -> Any:
            return made.get(id(value), value)

        for operation, args, kwargs, before in self.operations:
            after = operation(*tree_map(now, args), **tree_map(now, kwargs))
            made |= zip(map(id, tree_leaves(before)), tree_leaves(after), strict=True)


def record(loop: Loop, view: int) -> Recorded:
    kept = [buffer.clone() for buffer in loop._state()]
    recorded = Recorded(loop, view)
    for buffer, value in zip(loop._state(), kept, strict=True):
        buffer.copy_(value)
    return recorded


def written(model: Any, choice: Choice, graphs: bool, limit: int = VIEW + 22) -> list[Completion]:
    requests = [Request(prompt, seed) for prompt in lab.prompts() for seed in range(2)]
    generator = Generator(model, lab.END, lab.PAD, lab.TOKENS, 4, limit, choice, graphs)
    return generator.generate(requests)


@pytest.mark.parametrize(
    ("name", "choice"),
    [*(("llama", choice) for choice in CHOICES), ("gemma3", CHOICES[2])],
    ids=["greedy", "sampled", "top-p", "sliding windows"],
)
def test_a_replayed_step_writes_what_a_called_one_does(
    name: str, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loop, "_capture", record)
    monkeypatch.setattr(decode, "VIEW", 24)
    model = lab.reader(name)
    called, replayed = (written(model, choice, graphs, 36) for graphs in (False, True))
    assert [c.tokens for c in called] == [c.tokens for c in replayed]
    assert max(len(c.tokens) for c in called) > decode.VIEW  # more than one view, and so one graph
    for one, other in zip(called, replayed, strict=True):
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5)


def test_a_step_changes_weights_only_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training in place is seen by graphs that were captured before."""
    monkeypatch.setattr(Loop, "_capture", record)
    model = lab.reader()
    requests = [Request(prompt, 0) for prompt in lab.prompts()]
    generator = Generator(model, lab.END, lab.PAD, lab.TOKENS, 4, 20, Choice(0.0), graphs=True)
    before = generator.generate(requests)
    other = lab.reader(seed=1)
    with torch.no_grad():
        for mine, new in zip(model.parameters(), other.parameters(), strict=True):
            mine.copy_(new)
    after = generator.generate(requests)
    fresh = Generator(other, lab.END, lab.PAD, lab.TOKENS, 4, 20, Choice(0.0), graphs=False)
    assert [c.tokens for c in after] == [c.tokens for c in fresh.generate(requests)]
    assert [c.tokens for c in after] != [c.tokens for c in before]


def logits(shares: list[float]) -> torch.Tensor:
    return torch.tensor([shares]).log()


@pytest.mark.parametrize(("u", "token"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.79, 1), (0.81, 3)])
def test_a_number_chooses_by_the_summed_shares(u: float, token: int) -> None:
    tokens, logprobs = choose(logits([0.5, 0.3, 0.0, 0.2]), Choice(1.0), torch.tensor([u]))
    assert tokens.tolist() == [token]
    assert float(logprobs.exp()) == pytest.approx([0.5, 0.3, 0.0, 0.2][token], abs=1e-6)


def test_what_has_no_probability_is_never_chosen() -> None:
    row = logits([0.0, 0.4, 0.0, 0.6, 0.0])
    many = torch.cat([torch.linspace(0, 1, 999), torch.tensor([1 - 2**-24])])
    for choice in (Choice(1.0), Choice(1.0, 0.9)):
        tokens, _ = choose(row.expand(1000, -1), choice, many)
        assert set(tokens.tolist()) == {1, 3}


def test_shares_are_kept_over_many_draws() -> None:
    shares = [0.05, 0.6, 0.05, 0.3]
    drawn = torch.from_numpy(np.random.default_rng(0).random(20_000, dtype=np.float32))
    for choice, expected in (
        (Choice(1.0), shares),
        (Choice(0.5), [s * s / 0.455 for s in shares]),
        (Choice(1.0, 0.7), [0, 2 / 3, 0, 1 / 3]),
        (Choice(1.0, 0.5), [0, 1, 0, 0]),
    ):
        tokens, _ = choose(logits(shares).expand(20_000, -1), choice, drawn)
        found = np.bincount(tokens, minlength=4) / 20_000
        assert found == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("wrong", [(-1.0, 1.0), (1.0, 0.0), (1.0, 1.1)])
def test_a_choice_that_makes_no_sense_is_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be from 0 to 100"):
        Choice(*wrong)


def test_grouped_attention_is_attention_and_leaves_the_model_as_it_was() -> None:
    model = lab.reader()
    ids = torch.tensor(lab.prompts((9,)))
    before = model.config._attn_implementation
    expected = model(input_ids=ids).logits
    causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None]
    with cache.grouped_attention(model):
        mask = cache.masks(model, causal, torch.zeros(1))
        assert torch.allclose(model(input_ids=ids, attention_mask=mask).logits, expected, atol=1e-5)
        assert model.config._attn_implementation == cache.ATTENTION
    assert model.config._attn_implementation == before


@pytest.mark.gpu
@pytest.mark.parametrize("choice", CHOICES, ids=["greedy", "sampled", "top-p"])
@pytest.mark.parametrize("name", list(lab.CONFIGS))
def test_on_a_gpu_a_captured_step_writes_what_a_called_one_does(name: str, choice: Choice) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        model = lab.reader(name).to("cuda", dtype)
        called, captured, again = (written(model, choice, graphs) for graphs in (False, True, True))
        assert captured == again  # to the last bit of the probabilities
        assert [c.tokens for c in called] == [c.tokens for c in captured]


@pytest.mark.gpu
def test_on_a_gpu_a_graph_sees_weights_that_changed_in_place() -> None:
    model, other = (lab.reader(seed=seed).to("cuda") for seed in (0, 1))
    requests = [Request(prompt, 0) for prompt in lab.prompts()]
    made = Generator(model, lab.END, lab.PAD, lab.TOKENS, 4, 20, Choice(0.0), graphs=True)
    before = made.generate(requests)
    with torch.no_grad():
        for mine, new in zip(model.parameters(), other.parameters(), strict=True):
            mine.copy_(new)
    fresh = Generator(other, lab.END, lab.PAD, lab.TOKENS, 4, 20, Choice(0.0), graphs=True)
    after = made.generate(requests)
    assert after == fresh.generate(requests)
    assert after != before


@pytest.mark.gpu
def test_on_a_gpu_the_place_of_an_author_is_that_of_the_measurements() -> None:
    from suite.harness.evaluate import Evaluator
    from suite.models.author import here

    with Evaluator("cuda") as evaluator:
        facts = evaluator.facts
    place = here()
    assert (place.device, place.arch) == ("cuda", facts.arch)
    assert str(place.bus_id).lower() == facts.details["pci_bus_id"].lower()
