"""Searching the teacher's space: every search finds, goes on after a stop, and is told honestly."""

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suite.evaluation import Evaluation, Status, Timing
from suite.harness.device import DeviceFacts
from suite.harness.settings import Settings
from suite.matrices.base import Matrix
from suite.matrices.named import smoke
from suite.problem import DType, Op, Problem
from suite.program import Answer, KernelProgram, LibraryCall
from training.__main__ import main
from training.autotune import asked_of, autotune, results_in
from training.autotune_config import AutotuneConfig
from training.autotune_report import curves, read, table
from training.errors import ConfigError, TrainingError
from training.pace import TimeBox
from training.recover import nearest
from training.search import SEARCHES, expected_best
from training.teacher.space import STRATEGIES, Asked, Program
from training.teacher.writing import drawn

MATRIX = "tridiagonal-1k"


def timed(microseconds: float) -> Evaluation:
    found = (microseconds,)
    return Evaluation(Status.OK, hot=Timing(*found * 3, found, 1, True))


class Fake:
    """Times programs by their text: some format is best, and larger blocks are slower."""

    settings = Settings(precision=None)
    facts = DeviceFacts("emulator", "fake", "sm_90", 1, 1, 1, 1)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = False

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        if isinstance(answer, LibraryCall):
            return timed(10.0)
        self.asked.append(answer.text)
        if "//! format coo" in answer.text:
            return Evaluation(Status.WRONG_RESULT, "wrong")
        return timed((1.0 if "//! format dia" in answer.text else 8.0) + len(answer.text) / 1000)

    def compile_ahead(self, programs: Sequence[KernelProgram], dtype: DType) -> None: ...

    def convert_ahead(self, problem: Problem, programs: Sequence[KernelProgram]) -> None: ...

    def binary(self, program: KernelProgram, dtype: DType) -> bytes:
        return program.text.encode()

    def release(self, matrix: Matrix) -> None: ...

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def config(tmp_path: Path) -> AutotuneConfig:
    return AutotuneConfig(
        out=tmp_path / "tuned", matrices=MATRIX, ops="spmv", measurements=32, batch=8
    )


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked(Problem(Op.SPMV, next(s for s in smoke() if s.name == MATRIX).build()))


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_proposes_what_applies_and_nothing_twice(search: str, asked: Asked) -> None:
    made = SEARCHES[search](asked, "a seed", ())
    texts = []
    for _ in range(24):
        program = made.ask()
        assert program is not None
        assert asked.accepts(program.text)
        texts.append(program.text)
        made.tell(program, None if "coo" in program.strategy else float(len(program.text)) / 1000)
    assert len(set(texts)) == 24


@pytest.mark.parametrize("search", SEARCHES)
def test_the_same_seed_and_answers_give_the_same_search(search: str, asked: Asked) -> None:
    def texts(seed: str) -> list[str]:
        made, found = SEARCHES[search](asked, seed, ()), []
        for _ in range(14):
            program = made.ask()
            assert program is not None
            made.tell(program, float(len(program.text)))
            found.append(program.text)
        return found

    assert texts("one") == texts("one") != texts("other")


@pytest.mark.parametrize("search", ["tpe", "evolution"])
def test_a_search_that_learns_measures_more_of_what_is_fast(search: str, asked: Asked) -> None:
    made = SEARCHES[search](asked, "seed", ())
    told = []
    for _ in range(80):
        program = made.ask()
        assert program is not None
        told.append(-1.0 * ("csr" in program.strategy) - ("team" in program.strategy))
        made.tell(program, told[-1])
    assert fmean(told[50:]) < fmean(told[:30]) - 0.2


def test_results_have_every_measurement_and_what_made_it(config: AutotuneConfig) -> None:
    fake = Fake()
    config = replace(config, search="random")
    assert autotune(config, lambda line: None, opened=lambda _: fake)
    (rows,) = read(results_in(config))
    assert [row["order"] for row in rows] == list(range(32))
    assert {row["matrix"] for row in rows} == {MATRIX}
    assert {row["cusparse_us"] for row in rows} == {10.0}
    assert [row["text"] for row in rows] == fake.asked[:32]
    assert fake.closed
    again = [row for row in rows if row["again_us"] is not None]
    assert 1 <= len(again) <= 3
    assert min(rows, key=lambda row: row["hot_us"] or math.inf) in again


def test_what_is_done_is_not_done_again(config: AutotuneConfig) -> None:
    autotune(config, lambda line: None, opened=lambda _: Fake())
    fake = Fake()
    assert autotune(config, lambda line: None, opened=lambda _: fake)
    assert fake.asked == []


class StopAfter(TimeBox):
    """Ends a session after some batches."""

    def __init__(self, batches: int) -> None:
        super().__init__(None)
        self._left = batches + 1

    @property
    def over(self) -> bool:
        self._left -= 1
        return self._left <= 0


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_that_stops_goes_on_where_it_was(config: AutotuneConfig, search: str) -> None:
    config = replace(config, search=search)
    whole = replace(config, out=config.out.with_name("whole"))
    autotune(whole, lambda line: None, opened=lambda _: Fake())
    first, second = Fake(), Fake()
    assert not autotune(config, lambda line: None, StopAfter(2), lambda _: first)
    assert autotune(config, lambda line: None, opened=lambda _: second)
    assert len(first.asked) == 16
    assert len(set(second.asked) - set(first.asked)) == 16
    texts = [[row["text"] for row in read(results_in(c))[0]] for c in (config, whole)]
    assert texts[0] == texts[1]


def test_curves_count_failures_and_grow_with_measurements(config: AutotuneConfig) -> None:
    config = replace(config, search="random", matrices=f"{MATRIX},uniform-12-2k", measurements=64)
    autotune(config, lambda line: None, opened=lambda _: Fake())
    found = list(curves(read(results_in(config))))
    assert [one.measurements for one in found] == [1, 8, 64]
    assert found[0].speedup < found[1].speedup < found[2].speedup
    assert all(one.problems == 2 and one.low < one.speedup < one.high for one in found)
    assert found[2].again == pytest.approx(found[2].speedup)
    assert len(list(table(found))) == 5


def test_the_fastest_of_some_is_a_mean_over_all_orders() -> None:
    logarithms = [0.5, None, -1.0, 2.0, None]
    for count in range(1, 6):
        lots = [
            min((one for one in some if one is not None), default=9.0)
            for some in itertools.combinations(logarithms, count)
        ]
        assert expected_best(logarithms, count, 9.0) == pytest.approx(fmean(lots))


@pytest.mark.parametrize("name", ["spmv sell rows", "spmv dia rows", "spmm csr rows", "spmv hyb"])
def test_a_text_leads_back_to_the_point_that_it_was_made_of(name: str) -> None:
    chosen = tuple(random.Random(3).choice(STRATEGIES[name].combinations).items())
    found = nearest(Program(name, chosen, drawn(5)).text)
    assert found is not None
    assert found.strategy == name
    same = sum(dict(found.parameters)[key] == value for key, value in chosen)
    assert same >= 0.7 * len(chosen)


def test_what_is_no_program_leads_nowhere() -> None:
    assert nearest("hello") is nearest(smoke()[0].name) is None


@pytest.mark.parametrize("search", ["tpe", "evolution"])
def test_a_search_starts_from_a_models_programs(
    config: AutotuneConfig, search: str, tmp_path: Path
) -> None:
    chosen = tuple(STRATEGIES["spmv dia rows"].combinations[7].items())
    text = Program("spmv dia rows", chosen, drawn(5)).text
    other = {"matrix": "another", "op": "spmv", "n": 1, "text": "text"}
    rows = [other, other | {"matrix": MATRIX, "text": text}, other | {"matrix": MATRIX}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "model.parquet")
    config = replace(config, search=search, measurements=8, start=tmp_path / "model.parquet")
    autotune(config, lambda line: None, opened=lambda _: Fake())
    (found,) = read(results_in(config))
    assert found[0]["strategy"] == "spmv dia rows"
    assert len({row["text"] for row in found}) == 8
    pq.write_table(pa.table({"a": [1]}), tmp_path / "model.parquet")
    with pytest.raises(TrainingError, match="columns are matrix, op, n, text"):
        autotune(replace(config, seed=1), lambda line: None, opened=lambda _: Fake())


def test_baselines_are_measured_beside(config: AutotuneConfig) -> None:
    config = replace(config, baselines="on", measurements=8, search="random")
    autotune(config, lambda line: None, opened=lambda _: Fake())
    (rows,) = read(results_in(config))
    authors = Counter(row["author"] for row in rows)
    assert authors["autotune"] == 8
    assert len(authors) > 20
    assert all(one.of_baselines is not None for one in curves([rows]))


def test_on_the_emulator_programs_are_right_and_not_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"autotune --out {tmp_path} --matrices {MATRIX} --columns 8 --measurements 2 --batch 2"
    assert main([*asked.split(), "--search", "random", "--device", "emulator"]) == 0
    said = capsys.readouterr().out
    assert said.count("2 of 2 right") == 2
    folder = tmp_path / "random-2-seed0"
    assert len(read(folder)) == 2
    assert json.loads((folder / "curves.json").read_text()) == []


def test_mistakes_are_told_at_once(config: AutotuneConfig) -> None:
    wrong = replace(config, measurements=0, ops="spmx", columns="a", minutes=-1.0)
    with pytest.raises(ConfigError) as caught:
        wrong.check()
    assert len(caught.value.mistakes) == 4
    with pytest.raises(ConfigError, match="--matrices: 'nothing-like-it' is no matrix"):
        autotune(replace(config, matrices="nothing-like-it"), print, opened=lambda _: Fake())
    with pytest.raises(TrainingError, match="python -m training autotune"):
        read(config.out)


def test_operations_and_columns_are_read(config: AutotuneConfig) -> None:
    assert asked_of(replace(config, ops="spmv,spmm", columns="32,128")) == [
        (Op.SPMV, 1),
        (Op.SPMM, 32),
        (Op.SPMM, 128),
    ]
