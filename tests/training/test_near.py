import random
import subprocess
import sys

import numpy as np
import pytest

from tests.training.archives import kernel
from training.corpus.near import NearDuplicates, SeenLines, shingles, sketch


def jaccard(a: str, b: str) -> float:
    one, two = shingles(a), shingles(b)
    return len(np.intersect1d(one, two)) / len(np.union1d(one, two))


def words(draw: random.Random, count: int) -> list[str]:
    return [f"w{draw.randrange(100_000)}" for _ in range(count)]


@pytest.mark.parametrize("changed", [0, 20, 100, 300])
def test_sketches_agree_as_often_as_the_texts_overlap(changed: int) -> None:
    draw = random.Random(changed)
    first = words(draw, 2000)
    second = first.copy()
    for place in draw.sample(range(2000), changed):
        second[place] = "other"
    a, b = " ".join(first), " ".join(second)
    agree = float(np.mean(sketch(shingles(a)) == sketch(shingles(b))))
    assert abs(agree - jaccard(a, b)) < 0.13  # three standard deviations of 128 draws


def test_layout_makes_no_difference_and_a_changed_word_little() -> None:
    near = NearDuplicates()
    text = kernel("one", lines=60)
    assert near.add(text) is None
    assert near.add(text.replace("\n", " \n\n  ").replace(" = ", "=")) == 0
    assert near.add(text.replace("one_30", "another")) == 0


def test_different_and_tiny_texts_are_kept() -> None:
    near = NearDuplicates()
    texts = [" ".join(words(random.Random(i), 300)) for i in range(50)]
    assert [near.add(t) for t in texts] == [None] * 50
    assert [near.add(t) for t in ("", "a", "b", "a b c")] == [None] * 4
    assert near.add("a") is not None


def test_sketches_do_not_depend_on_the_process() -> None:
    code = "from training.corpus.near import *; print(sketch(shingles('a b c d e f g')).sum())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
        ).stdout
        for env in (
            {"PYTHONHASHSEED": "1", "PYTHONPATH": "."},
            {"PYTHONHASHSEED": "2", "PYTHONPATH": "."},
        )
    }
    assert len(outputs) == 1


def test_novelty_is_the_share_of_characters_in_new_lines() -> None:
    seen = SeenLines()
    seen.add("float first = 1;\n}\n")
    assert seen.novelty("  float  first = 1;\n}\n") == 0
    assert seen.novelty("float first = 1;\nfloat other = 1;\n") == pytest.approx(0.5)
    assert seen.novelty("") == seen.novelty("}\n}\n") == 0
