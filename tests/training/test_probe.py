"""The probe finds what is there and nothing else; states are those of a prompt read alone."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.training.pairs_lab import make_base
from training.probe import probe

FAMILIES = ("band", "block", "uniform")


def states(count: int, seed: int, apart: float) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    of = rng.integers(0, len(FAMILIES), count)
    centres = np.random.default_rng(9).normal(size=(len(FAMILIES), 24)) * apart
    return centres[of] + rng.normal(size=(count, 24)), [FAMILIES[at] for at in of]


def test_families_that_lie_apart_are_told_apart() -> None:
    found = probe(*states(300, 0, 3.0), *states(200, 1, 3.0))
    assert found.accuracy > 0.97
    assert found.low < found.accuracy <= found.high
    assert found.commonest < 0.5
    assert set(found.families) == set(FAMILIES)


def test_noise_is_told_apart_by_chance_only() -> None:
    found = probe(*states(300, 0, 0.0), *states(400, 1, 0.0))
    assert found.low < 1 / 3 < found.high


def test_a_scale_or_a_constant_feature_changes_nothing() -> None:
    train, test = states(300, 0, 1.0), states(200, 1, 1.0)
    scale = np.append(np.geomspace(1e-3, 1e3, 24), 1.0)

    def stretched(given: np.ndarray) -> np.ndarray:
        return np.hstack([given, np.ones((len(given), 1))]) * scale

    plain = probe(*train, *test)
    other = probe(stretched(train[0]), train[1], stretched(test[0]), test[1])
    assert other.accuracy == pytest.approx(plain.accuracy, abs=0.02)


def test_states_do_not_depend_on_the_neighbours(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    from suite.models import policy
    from training.states import last_states

    make_base(tmp_path, ["// write spmv f32 sm_90\n// program\n"] * 3)
    who = policy.load(tmp_path)
    prompts = [who.encode("// write spmv " * n) for n in (9, 1, 4)]
    together = last_states(who, prompts)
    for prompt, state in zip(prompts, together, strict=True):
        alone = who.model.model(input_ids=torch.tensor([prompt])).last_hidden_state[0, -1]
        assert np.allclose(state, alone.numpy(), atol=1e-5)


def test_the_command_compares_with_a_prompt_that_shows_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    from training.__main__ import main

    make_base(tmp_path / "base", ["// write spmv f32 sm_90\n// program\n"] * 3)
    line = f"probe --out {tmp_path} --base {tmp_path / 'base'} --train 20 --test 5 --workers 1"
    assert main([*line.split(), "--device", "cpu", "--tracking", "off"]) == 0
    found = json.loads((tmp_path / "probe.json").read_text())
    assert found.keys() == {"whole", "header"}
    assert found["whole"]["count"] == 5
    assert "on 5 unseen matrices" in capsys.readouterr().out
    assert main([*line.split(), "--train", "3"]) == 2
