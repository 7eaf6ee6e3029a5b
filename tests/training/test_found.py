"""What was found elsewhere becomes pairs to learn from, and what is for examination does not."""

from pathlib import Path

import pytest

from suite.evaluation import Status
from suite.matrices.named import smoke
from suite.matrices.splits import Split, sampled
from suite.problem import Op, Problem
from training.__main__ import main
from training.errors import TrainingError
from training.found import export
from training.measured import Entry, Measurements
from training.outcome import Outcome
from training.pairs import read_pairs
from training.teacher.space import Program, of


@pytest.fixture
def texts() -> list[str]:
    strategy = of(Op.SPMV)[0]
    return [Program(strategy.name, tuple(one.items())).text for one in strategy.combinations[:3]]


def fill(path: Path, problem: Problem, texts: list[str], device: str = "gpu") -> None:
    known = Measurements(path, device)
    for place, text in enumerate(texts):
        outcome = Outcome(Status.OK, hot_us=1.0 + place / 50)
        known.put([Entry(f"p{place}", problem, text, outcome)])
    known.put([Entry("cusparse", problem, "", Outcome(Status.OK, hot_us=0.1))])
    known.put([Entry("bad", problem, "no program", Outcome(Status.WRONG_RESULT, "wrong"))])
    known.close()


def test_the_fastest_programs_become_pairs(
    tmp_path: Path, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    problem = Problem(Op.SPMV, next(sampled(Split.TRAIN, (300, 900))).build())
    fill(tmp_path / "a.sqlite", problem, texts)
    fill(tmp_path / "b.sqlite", problem, texts[:1])
    files = [str(tmp_path / name) for name in ("a.sqlite", "b.sqlite")]
    out = tmp_path / "pairs"
    assert main(["found", *files, "--out", str(out), "--within", "1.03"]) == 0
    assert "2 pairs in" in capsys.readouterr().out
    rows = read_pairs(out).to_pylist()
    assert [row["text"] for row in rows] == texts[:2]
    assert {row["recipe"] for row in rows} == {problem.matrix.source}


def test_programs_of_matrices_for_examination_are_no_pairs(
    tmp_path: Path, texts: list[str]
) -> None:
    fill(tmp_path / "a.sqlite", Problem(Op.SPMV, smoke()[0].build()), texts)
    with pytest.raises(TrainingError, match="no right program of a training matrix"):
        export([tmp_path / "a.sqlite"], tmp_path / "pairs", 2.0, 9)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="is not there"):
        export([tmp_path / "no.sqlite"], tmp_path / "pairs", 2.0, 9)
    assert not (tmp_path / "no.sqlite").exists()
