"""The benchmark of generation reports what was asked, on this host's CPU."""

import json

import pytest

from suite.models import throughput
from tests.models import lab


def test_a_measurement_counts_every_token_of_every_row() -> None:
    found = throughput.measure(lab.reader(), rows=3, tokens=8, shared=2)
    assert (found.device, found.dtype, found.graphs) == ("cpu", "float32", False)
    assert (found.rows, found.tokens, found.prompt, found.shared) == (3, 8, 336, 2)
    whole_ms = 3 * 8 / found.tokens_per_s * 1e3
    assert 0 < found.prompt_ms < whole_ms
    assert 0 < 8 * found.step_ms < whole_ms


def test_it_prints_a_line_for_each_number_of_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "TinyConfig", lambda: lab.TINY)
    assert throughput.main(["--device=cpu", "--rows=1,2", "--tokens=4", "--shared=1"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["rows"] for line in lines] == [1, 2]
    assert all(line["tokens_per_s"] > 0 for line in lines)


@pytest.mark.parametrize("wrong", ["--rows=0", "--rows=x", "--tokens=0", "--weights=/nowhere"])
def test_mistakes_are_one_line(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert throughput.main(["--device=cpu", wrong]) == 2
    assert capsys.readouterr().err.startswith("error: ")
