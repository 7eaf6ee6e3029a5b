"""Each matrix is built once, held while it is needed, and released; every ask leaves rows."""

import dataclasses
import socket
import threading
from typing import ClassVar

import pytest
from scipy import sparse

from suite.author import Kind
from suite.campaign import Campaign, Pair, Shelf, ask, check_files, outcome, pairs, representative
from suite.config import ConfigError, SuiteConfig
from suite.evaluation import Status
from suite.journal import Journal, read
from suite.matrices import collection
from suite.matrices.base import MatrixError, MatrixSpec
from suite.problem import DType, Op
from suite.program import KernelProgram
from suite.progress import Measured, Progress
from suite.record import missing
from suite.summary import table
from tests.suite.fake import FakeAuthor, FakeEvaluator, script
from tests.suite.rows import BLANK, failed, right, unanswered

GOOD = (FakeAuthor("good"),)


def build(n):
    return lambda: sparse.eye_array(n, format="csr")


def broken():
    raise OSError("disk gone")


@pytest.fixture
def make(tmp_path):
    def make(
        specs,
        authors=GOOD,
        ops=(Op.SPMV,),
        columns=(32,),
        samples=1,
        done=lambda asks: {},
        written=lambda asks: {},
        kind_of_evaluator=FakeEvaluator,
    ):
        config = SuiteConfig(
            tuple(specs), ops, authors, "emulator", columns, samples, DType.FLOAT32, False, tmp_path
        )
        evaluator = kind_of_evaluator("emulator")
        asks = [ask(config, pair, pair.id) for op in ops for pair in pairs(config, op)]
        journal = Journal(tmp_path / "c", "main")
        campaign = Campaign("c", config, evaluator, journal, done(asks), written(asks))
        campaign.plan(asks)
        return campaign, evaluator, asks

    return make


def test_pairs_leave_out_authors_that_do_not_answer_the_operation(make):
    authors = (FakeAuthor("both"), FakeAuthor("one", ops=("spmv",)))
    _, _, asks = make([MatrixSpec("m", "f", build(2))], authors, (Op.SPMV, Op.SPMM), (8, 32))
    assert [a.key for a in asks] == [
        "spmv/m/f32/both",
        "spmv/m/f32/one",
        "spmm8/m/f32/both",
        "spmm32/m/f32/both",
    ]


def test_an_id_is_readable():
    spec = MatrixSpec("band-33", "band", build(2))
    assert Pair(Op.SPMV, spec, 1, FakeAuthor("csr")).id == "band-33-csr"
    assert Pair(Op.SPMM, spec, 32, FakeAuthor("csr")).id == "band-33-n32-csr"


def test_a_matrix_is_built_once_and_released_after_its_last_item(make):
    calls = []
    specs = [MatrixSpec(f"m{n}", "f", lambda n=n: calls.append(n) or build(n)()) for n in (2, 3)]
    campaign, evaluator, asks = make(specs, (FakeAuthor("a"), FakeAuthor("b")))
    for at, one in enumerate(asks):
        campaign.measure(one, last_of_matrix=at in (1, 3))
        assert evaluator.released == ["m2", "m3"][: (at + 1) // 2]
    assert sorted(calls) == [2, 3]
    campaign.close()
    assert evaluator.closed


def test_the_next_matrix_is_built_while_the_first_is_measured():
    started = threading.Event()
    second = MatrixSpec("second", "f", lambda: started.set() or build(2)())
    shelf = Shelf([MatrixSpec("first", "f", build(2)), second], FakeEvaluator("emulator"))
    shelf.take("first", following="second")
    assert started.wait(5)


class Foresighted(FakeEvaluator):
    """Remembers what it was told ahead."""

    def __init__(self, kind):
        super().__init__(kind)
        self.ahead = []

    def evaluate_ahead(self, asked):
        self.ahead += [(problem.key, answer.author) for problem, answer in asked]


def test_an_evaluator_is_told_ahead_what_is_asked_of_the_matrix_in_hand(make):
    specs = [MatrixSpec(name, "f", build(2)) for name in ("m", "next")]
    authors = (
        FakeAuthor("a"),
        FakeAuthor("done"),
        FakeAuthor("learner", Kind.MODEL),
        FakeAuthor("mute", Kind.BASELINE),  # fails when it is asked
        FakeAuthor("b"),
    )

    def done(asks):
        return {a.key: [missing("c", a, 0, "told to be")] for a in asks if a.author == "done"}

    campaign, evaluator, asks = make(specs, authors, done=done, kind_of_evaluator=Foresighted)
    rows = [campaign.measure(one)[0] for one in asks if one.matrix == "m"]
    assert evaluator.ahead == [("spmv/m/f32", "a"), ("spmv/m/f32", "b")]
    assert [row.author for row in rows] == [author.name for author in authors]
    assert rows[3].error == "mute could not answer: RuntimeError: no model is loaded"


def test_who_was_asked_ahead_is_not_asked_again(make):
    asked = []

    class Counting(FakeAuthor):
        def write(self, problem, samples):
            asked.append(problem.key)
            return super().write(problem, samples)

    specs = [MatrixSpec(name, "f", build(2)) for name in ("m", "next")]
    campaign, _, asks = make(specs, (Counting("a"),), kind_of_evaluator=Foresighted)
    for one in asks:
        campaign.measure(one)
    assert asked == ["spmv/m/f32", "spmv/next/f32"]


def test_only_what_is_missing_is_begun_ahead_and_of_what_was_written(make):
    class Recording(Foresighted):
        def evaluate_ahead(self, asked):
            self.ahead += [answer.digest for _, answer in asked]

    author = FakeAuthor("a", texts=tuple(script(us=at) for at in (1.0, 2.0, 3.0)))
    written = [KernelProgram("a", script(us=10.0 * at), at) for at in range(3)]
    campaign, evaluator, asks = make(
        [MatrixSpec("m", "f", build(2))],
        (author,),
        done=lambda asks: earlier(asks, 0, 2, answers=3),
        written=lambda asks: {asks[0].key: written},
        kind_of_evaluator=Recording,
    )
    campaign.measure(asks[0])
    assert evaluator.ahead == [written[1].digest]


class Foreseeing(FakeAuthor):
    """Remembers what it was told is coming."""

    told: ClassVar[list[tuple[str, str, bool]]] = []

    def foresee(self, coming, alone=True):
        self.told += [(one.op.value, one.matrix.name, alone) for one in coming]
        if self.name == "mute":
            raise RuntimeError("no model is loaded")


def test_an_author_is_told_what_will_be_asked_of_it_and_is_not_on_record(make):
    Foreseeing.told.clear()
    specs = [MatrixSpec(name, "f", build(2)) for name in ("m", "next")]
    authors = (FakeAuthor("a"), Foreseeing("learner", Kind.MODEL), Foreseeing("mute", Kind.MODEL))

    def done(asks):
        first, *_ = [a for a in asks if a.author == "learner"]
        return {first.key: [missing("c", first, 0, "told to be")]}

    campaign, _, asks = make(specs, authors, (Op.SPMV, Op.SPMM), done=done)
    learner = Foreseeing.told[:3]
    assert learner == [("spmm", "m", True), ("spmv", "next", True), ("spmm", "next", True)]
    rows = [campaign.measure(one)[0] for one in asks]  # though one of them failed when told
    assert [row.author for row in rows] == [one.author for one in asks]


def test_models_that_foresee_are_judged_ahead_once_the_first_is_asked(make):
    authors = (FakeAuthor("a"), Foreseeing("learner", Kind.MODEL), FakeAuthor("slow", Kind.MODEL))
    spec = MatrixSpec("m", "f", build(2))
    campaign, evaluator, asks = make(
        [spec], authors, (Op.SPMV, Op.SPMM), kind_of_evaluator=Foresighted
    )
    campaign.measure(asks[0])
    assert evaluator.ahead == [("spmv/m/f32", "a"), ("spmm32/m/f32", "a")]
    campaign.measure(asks[1])
    assert evaluator.ahead[2:] == [("spmv/m/f32", "learner"), ("spmm32/m/f32", "learner")]


def test_a_matrix_that_cannot_be_built_leaves_rows_that_say_so(make):
    campaign, evaluator, asks = make([MatrixSpec("m", "f", broken)])
    (row,) = campaign.measure(asks[0], last_of_matrix=True)
    assert (row.status, row.error) == (Status.INFRASTRUCTURE_ERROR, "m: OSError: disk gone")
    assert row.nnz is None
    assert evaluator.released == []


def test_every_bad_file_is_named_before_anything_is_measured():
    def bad():
        raise MatrixError("b.mtx, line 3: junk")

    good = MatrixSpec("a", "file", build(2), {"path": "a.mtx"})
    with pytest.raises(ConfigError) as caught:
        check_files([good, *(MatrixSpec(n, "file", bad, {"path": n}) for n in "bc")], DType.FLOAT32)
    assert str(caught.value).splitlines() == ["--suite-matrices: b.mtx, line 3: junk"] * 2


def test_only_matrices_from_files_are_read_early():
    (spec,) = check_files([MatrixSpec("m", "f", broken)], DType.FLOAT32)
    assert spec.name == "m"


def test_a_file_whose_values_do_not_fit_the_precision_is_found_early():
    large = MatrixSpec("m", "file", lambda: sparse.csr_array([[1e300]]), {"path": "m.mtx"})
    with pytest.raises(ConfigError, match=r"--suite-matrices: m: .*--suite-dtype float64"):
        check_files([large], DType.FLOAT32)
    assert check_files([large], DType.FLOAT64)


def test_a_matrix_of_the_collection_that_cannot_be_had_is_found_early(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    spec = collection.spec_for("HB/absent", tmp_path, f"http://127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="--suite-matrices: HB/absent: not in") as caught:
        check_files([spec], DType.FLOAT32)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "statuses", "verdict"),
    [
        (Kind.BASELINE, ["ok"], "passed"),
        (Kind.BASELINE, ["ok", "not_applicable"], "passed"),
        (Kind.BASELINE, ["not_applicable"], "skipped"),
        (Kind.BASELINE, ["wrong_result"], "failed"),
        (Kind.LIBRARY, ["impossible_time"], "failed"),
        (Kind.FILE, ["compile_error"], "failed"),
        (Kind.MODEL, ["wrong_result", "timeout"], "passed"),
        (Kind.MODEL, ["impossible_time"], "passed"),
        (Kind.MODEL, ["not_applicable"], "skipped"),
        (Kind.MODEL, ["ok", "infrastructure_error"], "failed"),
    ],
)
def test_how_an_ask_counts_as_a_test(kind, statuses, verdict):
    rows = [right("a", 1.0) if s == "ok" else failed(Status(s)) for s in statuses]
    assert outcome(kind, rows).verdict == verdict


def test_the_fastest_right_sample_stands_for_the_ask():
    rows = [failed(Status.TIMEOUT), right("a", 3.0), right("a", 2.0)]
    assert representative(rows).hot_us == 2.0
    assert representative(rows[:1]).status is Status.TIMEOUT


def test_a_line_of_progress_comes_with_the_last_item_and_not_before():
    item = Measured("band-33", 2, 3, 10, 4096, 133_120, 1, 0.6)
    progress = Progress()
    assert progress.add(item) is None
    assert progress.add(item) == "[3/10] band-33 4,096 rows 133k nnz: 2 programs, 1.2 s"


def test_a_share_is_only_called_all_when_it_is():
    rows = [right("a", 1.0, f"m{at}") for at in range(999)] + [failed(Status.TIMEOUT, "last")]
    assert table(rows)[-1].split()[-6:-4] == ["100%", "99%"]
    assert table([]) == []
    assert BLANK.ok


def test_the_summary_shows_what_was_never_answered_and_how_far_a_speedup_reaches():
    rows = [right("a", 1.0), unanswered("m1", "a"), right("a", 1.0, "m2"), right("cusparse", 2.0)]
    header, _, line = table(rows)[:3]
    assert header.split("problems")[1].split()[:5] == [
        "asked",
        "n/a",
        "compiled",
        "correct",
        "unanswered",
    ]
    assert line.split()[:6] == ["a", "3", "0", "100%", "100%", "1"]
    assert "2.00x (1 of 2)" in line
    assert "unanswered" not in table([right("a", 1.0)])[0]


# Going on with what was measured before


def earlier(asks, *samples, answers=1):
    return {
        ask.key: [
            dataclasses.replace(missing("c", ask, sample, "", Status.OK), answers=answers)
            for sample in samples
        ]
        for ask in asks
    }


def test_what_is_done_is_neither_built_nor_measured_and_comes_back(make):
    calls = []
    specs = [MatrixSpec(f"m{n}", "f", lambda n=n: calls.append(n) or build(n)()) for n in (2, 3)]
    campaign, _, asks = make(specs, done=lambda asks: earlier(asks[:1], 0))
    (first,) = campaign.measure(asks[0], last_of_matrix=True)
    (second,) = campaign.measure(asks[1], last_of_matrix=True)
    assert calls == [3]
    assert (first, second.ok) == (earlier(asks[:1], 0)[asks[0].key][0], True)
    assert campaign.rows[asks[0].problem_key] == [first]


def test_where_everything_is_done_there_is_nothing_to_build_ahead(make):
    campaign, _, asks = make([MatrixSpec("m", "f", broken)], done=lambda asks: earlier(asks, 0))
    assert campaign.measure(asks[0], last_of_matrix=True)


def test_only_the_samples_that_are_missing_are_measured_and_of_what_was_written(make):
    model = FakeAuthor("model", Kind.MODEL, tuple(script(us=at) for at in (1.0, 2.0, 3.0)))
    written = [KernelProgram("model", script(us=10.0 * at), at) for at in range(3)]
    campaign, _, asks = make(
        [MatrixSpec("m", "f", build(2))],
        (model,),
        done=lambda asks: earlier(asks, 0, 2, answers=3),
        written=lambda asks: {asks[0].key: written},
    )
    rows = campaign.measure(asks[0])
    assert [row.sample for row in rows] == [0, 1, 2]
    assert rows[1].emulated_us == 10_000.0
    assert rows[1].program_digest == written[1].digest


def test_several_answers_are_on_record_before_the_first_is_measured(make, tmp_path):
    model = FakeAuthor("model", Kind.MODEL, (script(us=1.0), script(us=2.0)))
    campaign, evaluator, asks = make([MatrixSpec("m", "f", build(2))], (model,), samples=2)
    seen = []
    judge = evaluator.evaluate
    (tmp_path / "c" / "campaign.json").write_text("{}")
    evaluator.evaluate = lambda *a: seen.append(read(tmp_path / "c")) or judge(*a)
    campaign.measure(asks[0])
    digests = [KernelProgram("model", text).digest for text in model.texts]
    assert seen[0].answers == {asks[0].key: tuple(digests)}
    assert set(seen[0].programs) == set(digests)


def test_a_matrix_that_is_another_one_by_now_is_not_measured(make):
    authors = (FakeAuthor("a"), FakeAuthor("b"))

    def done(asks):
        (row,) = earlier(asks[:1], 0)[asks[0].key]
        return {asks[0].key: [dataclasses.replace(row, matrix_digest="0" * 32)]}

    campaign, _, asks = make([MatrixSpec("m", "f", build(2))], authors, done=done)
    (row,) = campaign.measure(asks[1])
    assert row.status is Status.INFRASTRUCTURE_ERROR
    assert row.error.startswith("m: is not what this campaign measured before it was resumed")
