"""What is generated is what the model says, and the same whatever else is in the batch."""

from typing import Any

import numpy as np
import pytest
import torch

from suite.models import decode, generate
from suite.models.decode import Choice
from suite.models.errors import ModelError, Stopped
from suite.models.generate import Completion, Generator, Outcome, Request, seed_of
from tests.models import lab

FAMILIES = list(lab.CONFIGS)


def generator(
    model: Any, rows: int = 4, limit: int = 24, choice: Choice | None = None
) -> Generator:
    return Generator(model, lab.END, lab.PAD, lab.TOKENS, rows, limit, choice or Choice(1.0))


def requests(samples: int = 1, lengths: tuple[int, ...] = (5, 9, 70)) -> list[Request]:
    return [
        Request(prompt, seed_of(prompt, sample))
        for prompt in lab.prompts(lengths)
        for sample in range(samples)
    ]


@pytest.mark.parametrize("name", FAMILIES)
def test_greedy_text_is_that_of_transformers(name: str) -> None:
    model = lab.reader(name)
    barred = [lab.PAD, *range(lab.TOKENS, lab.VOCABULARY)]
    for request, found in zip(
        requests(), generator(model, choice=Choice(0.0)).generate(requests()), strict=True
    ):
        out = model.generate(
            torch.tensor([request.prompt]),
            max_new_tokens=24,
            do_sample=False,
            suppress_tokens=barred,
        )
        assert list(found.tokens) == out[0, len(request.prompt) :].tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_probabilities_are_those_of_the_whole_text_read_at_once(name: str) -> None:
    model = lab.reader(name)
    for request, found in zip(requests(), generator(model).generate(requests()), strict=True):
        text = torch.tensor([[*request.prompt, *found.tokens]])
        logits = model(input_ids=text).logits[0, len(request.prompt) - 1 : -1]
        logits[:, [lab.PAD, *range(lab.TOKENS, lab.VOCABULARY)]] = -torch.inf
        known = logits.log_softmax(dim=-1).gather(1, torch.tensor(found.tokens)[:, None])[:, 0]
        assert np.allclose(found.logprobs, known.tolist(), atol=1e-4)
        assert len(set(found.tokens)) > 5  # it does not say the same all the time


def test_a_sample_is_the_same_whatever_else_is_in_its_batch() -> None:
    model = lab.reader()
    alone = [generator(model).generate([request])[0] for request in requests(3)]
    shuffled = np.random.default_rng(0).permutation(9)
    together = generator(model).generate([requests(3)[at] for at in shuffled])
    assert [alone[at] for at in shuffled] == together  # to the last bit of the probabilities
    again = generator(model)
    assert again.generate(requests(3)) == again.generate(requests(3)) == alone


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_rows_that_ended_are_left_out_and_change_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With probabilities to the last bit, for texts of many lengths and so every number of rows."""
    model = lab.reader(name)
    wanted = requests(7, (5, 9, 17))

    def made() -> Generator:
        return generator(model, rows=24, limit=300, choice=Choice(2.0))

    live: list[int] = []
    step = decode.Loop.step
    monkeypatch.setattr(
        decode.Loop, "step", lambda loop, view: (live.append(loop.live), step(loop, view))
    )
    left_out = made().generate(wanted)
    assert len({len(found.tokens) for found in left_out}) > 3
    assert live == sorted(live, reverse=True)
    assert len(set(live)) > 2
    assert made().generate(wanted[:3]) == left_out[:3]
    assert min(live) == decode.APART
    monkeypatch.setattr(generate, "rows_are_apart", lambda model, rows: False)
    live.clear()
    assert made().generate(wanted) == left_out
    assert set(live) == {24}


def test_it_gives_up_when_it_is_asked_to() -> None:
    asked: list[int] = []
    made = generator(biased(7), limit=1000)
    with pytest.raises(Stopped):
        made.generate(requests()[:1], lambda: bool(asked.append(1)) or len(asked) > 3)
    assert len(made.generate(requests()[:1])[0].tokens) == 1000  # and can go on


def test_samples_of_a_prompt_differ_and_seeds_decide() -> None:
    model = lab.reader()
    texts = [found.tokens for found in generator(model).generate(requests(4, (9,)))]
    assert len(set(texts)) == 4
    prompt = lab.prompts((9,))[0]
    assert seed_of(prompt, 0) == seed_of(list(prompt), 0)
    assert len({seed_of(prompt, s, seed) for s in range(50) for seed in range(50)}) == 2500
    assert seed_of(prompt, 0) != seed_of(prompt[:-1], 0)


def biased(token: int) -> Any:
    """A model that says one token only."""
    model = lab.build("qwen2")  # its output layer is not tied
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.model.norm.weight.zero_()
    lab.attach(model)
    bias = torch.full((lab.VOCABULARY,), -50.0)
    bias[token] = 50.0
    model.lm_head.bias = torch.nn.Parameter(bias)
    return model.requires_grad_(False)


def test_an_end_at_once_is_an_empty_text() -> None:
    (found,) = generator(biased(lab.END)).generate(requests()[:1])
    assert (found.tokens, found.outcome) == ((lab.END,), Outcome.ENDED)


def test_a_text_without_an_end_has_its_own_outcome() -> None:
    (found,) = generator(biased(7), limit=33).generate(requests()[:1])
    assert found == Completion((7,) * 33, found.logprobs, Outcome.LENGTH)


@pytest.mark.parametrize("token", [lab.PAD, lab.TOKENS, lab.VOCABULARY - 1])
def test_tokens_without_a_text_are_never_written(token: int) -> None:
    for choice in (Choice(0.0), Choice(1.0), Choice(1.0, 0.5)):
        (found,) = generator(biased(token), choice=choice).generate(requests()[:1])
        assert token not in found.tokens


def test_it_stops_soon_after_all_have_ended() -> None:
    made = generator(biased(lab.END), limit=1000)
    made.generate(requests(2))
    assert made.steps <= 2 * 3 * 16


def test_nothing_is_asked_of_it() -> None:
    assert generator(lab.reader()).generate([]) == []


def test_more_requests_than_rows_and_one_row_alone() -> None:
    model = lab.reader()
    greedy = Choice(0.0)
    many = generator(model, rows=2, choice=greedy).generate(requests(3))
    one = generator(model, rows=1, choice=greedy).generate(requests(3))
    assert [found.tokens for found in many] == [found.tokens for found in one]


@pytest.mark.parametrize(
    ("prompt", "says"),
    [((), "a prompt is empty"), (tuple(range(2, 200)) * 21, "more than the model's 4096")],
)
def test_prompts_that_cannot_be_read_are_refused(prompt: tuple[int, ...], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        generator(lab.reader()).generate([Request(prompt, 0)])


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"limit": 0}])
def test_no_rows_or_no_tokens_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ModelError, match="must be at least 1"):
        generator(lab.reader(), **wrong)


def test_in_half_precision_padding_does_not_spoil_a_row() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        model = lab.reader("gemma3").to(dtype)
        for found in generator(model).generate(requests()):
            assert np.isfinite(found.logprobs).all()
