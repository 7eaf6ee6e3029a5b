from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.harness.parse import parse
from tests.training.archives import kernel
from training import language
from training.errors import ConfigError, TrainingError

transformers = pytest.importorskip("transformers", reason="needs the train extra")
module = pytest.importorskip("training.tokenizer")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [*(kernel(f"k{i}") for i in range(20)), *language.samples(200)]


@pytest.fixture(scope="module")
def fitted(texts: list[str]) -> Any:
    return module.fit(texts, 600)


def pieces(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer.decode([i]) for i in tokenizer.encode(text)]


@settings(max_examples=200, deadline=None)
@given(text=st.text() | st.text("ab \n\t\r0_;<|end>"))
def test_any_text_comes_back(fitted: Any, text: str) -> None:
    assert fitted.decode(fitted.encode(text)) == text


@pytest.mark.parametrize(
    "text", ["\x00\x7f", "é µ 😀 \ud7ff", " \n  \n\n\t", "<|end|> x", "a\r\nb"]
)
def test_odd_texts_come_back(fitted: Any, text: str) -> None:
    assert fitted.decode(fitted.encode(text)) == text


def test_every_number_is_spelled_digit_by_digit(fitted: Any) -> None:
    assert pieces(fitted, "=1024") == ["=", "1", "0", "2", "4"]
    assert pieces(fitted, " 256 256") == [" 2", "5", "6", " 2", "5", "6"]
    vocabulary = [fitted.decode([i]) for i in range(len(fitted))]
    assert not [t for t in vocabulary if sum(c.isdigit() for c in t) > 1]


def test_names_of_the_language_are_short(fitted: Any) -> None:
    for word in (" row_ptr", " col_idx", " __restrict__", " __global__", "//!", " launch"):
        assert len(fitted.encode(word)) == 1, word


def test_words_do_not_run_into_signs_or_lines(fitted: Any) -> None:
    for token in (fitted.decode([i]) for i in range(2, len(fitted))):
        kinds = {("a" if c.isalpha() or c == "_" else c.isspace()) for c in token.strip(" \n")}
        assert len(kinds) <= 1, token


def test_a_saved_one_is_the_same_without_a_network(
    fitted: Any, texts: list[str], tmp_path: Path
) -> None:
    card = module.Card(len(fitted), "digest", 1, 1, 2.0, 2.0)
    module.save(fitted, tmp_path, card)
    for loaded in (
        module.load(tmp_path),
        transformers.AutoTokenizer.from_pretrained(str(tmp_path)),
    ):
        assert loaded.encode(texts[-1]) == fitted.encode(texts[-1])
        assert (loaded.eos_token, loaded.pad_token) == (module.END, module.PAD)
        assert loaded.decode(loaded.encode("a ,b . c 's")) == "a ,b . c 's"
    assert list(module.encoded(fitted, texts[:3], 2)) == [fitted.encode(t) for t in texts[:3]]


def test_equal_texts_give_equal_tokenizers(fitted: Any, texts: list[str]) -> None:
    again = module.fit(texts, 600)
    assert again.backend_tokenizer.to_str() == fitted.backend_tokenizer.to_str()


@pytest.mark.parametrize("size", [0, module.SMALLEST - 1, module.LARGEST + 1])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match=f"vocabulary {size}: from 300 to 65536"):
        module.fit(["a text"], size)


def test_a_folder_without_a_usable_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"has no tokenizer\.json"):
        module.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(TrainingError, match=str(tmp_path)):
        module.load(tmp_path)


def test_the_language_does_not_depend_on_the_number_of_processes() -> None:
    assert list(language.samples(70, workers=2)) == list(language.samples(70))


def test_the_language_is_prompts_with_programs_of_many_strategies() -> None:
    texts = list(language.samples(60))
    assert texts == list(language.samples(60)) != list(language.samples(60, seed=1))
    prompts, programs = zip(*(text.split("// program\n") for text in texts), strict=True)
    assert all(text.startswith("// write spm") for text in prompts)
    assert all(parse(text).launches for text in programs)
    assert len({text.partition("\n//! launch")[0] for text in programs}) > 20
