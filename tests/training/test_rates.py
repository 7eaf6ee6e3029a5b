"""Rates of sampled programs: verdicts from the emulator, tables, and a command that goes on."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from suite.evaluation import Status
from suite.matrices import named
from suite.problem import Op
from suite.program import KernelProgram
from tests.training.pairs_lab import make_base, make_pairs
from training import seen
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.rates_config import RatesConfig

pytest.importorskip("torch", reason="needs the train extra")
from training import rates_run
from training.answers import Question, evaluator, judge
from training.policies import Weights, load
from training.rates import Answer, answer, strategies, table
from training.teacher.describe import digest, normalised
from training.teacher.space import STRATEGIES, Program

SPECS = {spec.name: spec for spec in named.smoke() if spec.name in ("tridiagonal-1k", "airfoil")}
RIGHT = Program("spmv coo each", tuple(STRATEGIES["spmv coo each"].combinations[0].items())).text


def made(name: str, sample: int, status: Status, text: str = RIGHT, label: str = "spmv") -> Answer:
    key = "spmv coo | 256@x" if status is not Status.PARSE_ERROR else ""
    return Answer(name, "f", label, "float32", sample, status, "", key, digest(text), text)


@pytest.fixture(scope="module")
def verdicts() -> list[Answer]:
    """Answers to one question of each matrix: right twice over, wrong, garbage, empty, cut off."""
    wrong = RIGHT.replace("atomicAdd(", "atomicExch(")
    texts = [RIGHT, RIGHT, wrong, "garbage {", "", RIGHT[: len(RIGHT) // 2]]
    texts += ["\x00" + RIGHT, "//! op spmv\n" * 3000]
    programs = [KernelProgram("model", text, at) for at, text in enumerate(texts)]
    programs.append(KernelProgram("model", RIGHT, len(texts), "the model came to no end"))
    questions = {name: Question(seen.look(spec), Op.SPMV) for name, spec in SPECS.items()}
    with evaluator("emulator") as judging:
        found = judge(judging, list(SPECS.values()), lambda name: [(questions[name], programs)])
        return [
            answer(question, program, verdict)
            for _, of_matrix in found
            for (question, written), evaluations in of_matrix
            for program, verdict in zip(written, evaluations, strict=True)
        ]


def test_every_answer_has_a_verdict_of_its_own(verdicts: list[Answer]) -> None:
    expected = ["ok", "ok", "wrong_result"]
    for name in SPECS:
        mine = [one for one in verdicts if one.matrix == name]
        assert [one.sample for one in mine] == list(range(9))
        assert [one.status for one in mine[:3]] == expected
        assert not any(one.compiled for one in mine[3:])
        assert all(one.error for one in mine[2:])
        assert "came to no end" in mine[-1].error


def test_rates_divide_by_all_that_was_asked(verdicts: list[Answer]) -> None:
    rows = table(verdicts, {digest(normalised(RIGHT))})
    (whole,) = (row for row in rows if (row["op"], row["family"]) == ("all", "all"))
    assert whole["answers"] == 18
    assert whole["compile_rate"] == pytest.approx(6 / 18)
    assert whole["correct_rate"] == whole["pass_at_1"] == pytest.approx(4 / 18)
    assert whole["pass_at_9"] == 1.0
    assert whole["novel_if_correct"] == 0.0
    assert whole["correct_rate_low"] < 4 / 18 < whole["correct_rate_high"]
    assert {row["family"] for row in rows} == {"all", "diagonal", "pyamg"}


def test_what_no_training_program_says_is_new() -> None:
    answers = [made("a", 0, Status.OK, "x"), made("a", 1, Status.OK, "y")]
    answers.append(made("a", 2, Status.WRONG_RESULT, "z"))
    assert table(answers, {digest("x")})[0]["novel_if_correct"] == 0.5
    assert "novel_if_correct" not in table(answers)[0]


def test_shares_of_formats_are_of_what_could_be_parsed() -> None:
    answers = [made("a", 0, Status.OK), made("a", 1, Status.COMPILE_ERROR)]
    answers.append(made("a", 2, Status.PARSE_ERROR))
    assert strategies(answers) == [
        {"op": "spmv", "format": "coo", "share": 1.0, "correct_rate": 0.5, "keys": 1}
    ]


# The command


@pytest.fixture
def config(tmp_path: Path) -> RatesConfig:
    table = make_pairs(tmp_path / "pairs", matrices=1, each=2)
    make_base(tmp_path / "base", table["text"].to_pylist())
    return RatesConfig(
        out=tmp_path / "rates",
        base=str(tmp_path / "base"),
        pairs=(tmp_path / "pairs",),
        matrices="tridiagonal-1k,airfoil",
        ops="spmv,spmm32",
        samples=2,
        limit=24,
        rows=8,
        judge="emulator",
        device="cpu",
        workers=1,
        tracking="off",
    )


class Over(TimeBox):
    """A session that must stop at once."""

    @property
    def over(self) -> bool:
        return True


def test_a_model_is_asked_and_judged_and_a_stopped_call_goes_on(
    config: RatesConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rates_run.rates(config, lambda _: None, Over(None)) is None
    assert len(list((config.out / "judged").iterdir())) == 1
    written = pq.read_table(config.out / "programs.parquet")["text"].to_pylist()
    monkeypatch.setattr(rates_run, "write", lambda *_: pytest.fail("written again"))
    summary = rates_run.rates(config, lambda _: None)
    assert summary is not None
    answers = pq.read_table(config.out / "answers.parquet").to_pylist()
    assert [row["text"] for row in answers] == written
    assert len(answers) == 2 * 2 * 2
    assert summary["statuses"] == {"parse_error": 8}  # a random model
    assert json.loads((config.out / "summary.json").read_text())["rates"][0]["answers"] == 8


def test_random_weights_are_others_than_the_bases_and_follow_from_the_seed(
    config: RatesConfig,
) -> None:
    def flat(weights: Weights, seed: int = 0) -> Any:
        model: Any = load(config.base, None, "cpu", weights=weights, seed=seed).model
        return model.model.layers[0].mlp.up_proj.weight

    assert not flat("trained").equal(flat("random"))
    assert flat("random", 3).equal(flat("random", 3))
    assert not flat("random", 3).equal(flat("random", 4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ops": "spmv,spmm"}, "ops 'spmm'"),
        ({"samples": 0}, "samples 0: at least 1"),
        ({"weights": "random", "adapter": Path("a")}, "makes no sense"),
    ],
)
def test_mistakes_are_found_first(
    config: RatesConfig, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        rates_run.rates(dataclasses.replace(config, **change), lambda _: None)


def test_other_answers_and_other_weights_are_refused(config: RatesConfig) -> None:
    say: Callable[[str], None] = lambda _: None  # noqa: E731
    rates_run.rates(config, say, Over(None))
    with pytest.raises(ConfigError, match="samples 2, not 3"):
        rates_run.rates(dataclasses.replace(config, samples=3), say)
    nowhere = dataclasses.replace(config, out=config.out / "b", adapter=config.out / "none")
    with pytest.raises(TrainingError, match=r"manifest\.json"):
        rates_run.rates(nowhere, say)
