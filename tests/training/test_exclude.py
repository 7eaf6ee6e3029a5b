import re

import pytest

from tests.training.archives import kernel
from training.corpus.documents import Document
from training.corpus.exclude import Exclusion, baselines
from training.corpus.select import Selection

TEXTS = baselines()


def squeezed(text: str) -> str:
    """Without header, comments and layout, as another project would hold it."""
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


def document(text: str, path: str = "a.cu") -> Document:
    return Document("p 1", path, True, True, text)


def test_there_are_baselines_to_exclude() -> None:
    assert len(TEXTS) >= 20


@pytest.mark.parametrize("name", TEXTS)
def test_a_baseline_is_found_verbatim_squeezed_and_inside_a_larger_file(name: str) -> None:
    exclusion = Exclusion({name: TEXTS[name]})
    assert exclusion.holds(TEXTS[name]) == name
    assert exclusion.holds(squeezed(TEXTS[name])) == name
    around = "".join(kernel(f"other{i}") for i in range(100))
    assert exclusion.holds(around + squeezed(TEXTS[name]) + around) == name
    assert exclusion.holds(around) == ""


def test_half_a_baseline_is_found_too() -> None:
    text = TEXTS["spmv/nnzsplit.cu"]
    lines = text.splitlines()
    assert Exclusion(TEXTS).holds("\n".join(lines[len(lines) // 2 :])) == "spmv/nnzsplit.cu"


def test_another_ones_kernel_of_the_same_idea_passes() -> None:
    text = """
__global__ void spmv_csr(int n, const int* ptr, const int* ind, const float* a, const float* b,
                         float* c) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  float acc = 0.f;
  for (int j = ptr[i]; j < ptr[i + 1]; j++) acc += a[j] * b[ind[j]];
  c[i] = acc;
}"""
    assert Exclusion(TEXTS).holds(text) == ""


def test_the_selection_takes_no_baseline() -> None:
    mine = [document(text, name) for name, text in TEXTS.items()]
    kept, left_out = Selection(TEXTS).take((*mine, document(kernel("other"))))
    assert [d.text for d in kept] == [kernel("other")]
    assert left_out.keys() == {"holds a baseline"}


def test_the_language_that_the_tokenizer_sees_holds_no_baseline() -> None:
    from training import language

    exclusion = Exclusion(TEXTS)
    assert not any(exclusion.holds(text) for text in language.samples(120))
