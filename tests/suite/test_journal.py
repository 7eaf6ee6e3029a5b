"""Rows are on disk as they are made, and every answer asked for has one when they are read."""

import dataclasses
import json
import math

import pytest
from scipy import sparse

from suite.author import Kind
from suite.evaluation import Conditions, Evaluation, Resources, Status, Timing
from suite.journal import Journal, JournalError, read
from suite.matrices.base import Matrix, canonical
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from suite.record import LOG_LIMIT, Ask, RecordError, Row, complete, judged, missing

ASK = Ask("t[a]", Op.SPMM, 32, DType.FLOAT64, "band-5", "band", "good", Kind.BASELINE)
MODEL = dataclasses.replace(ASK, author="model", kind=Kind.MODEL, samples=3)


def row(ask=ASK, sample=0, **changes):
    return dataclasses.replace(missing("c", ask, sample, "lost"), **changes)


def ok(ask=ASK, sample=0, **changes):
    return row(ask, sample, status=Status.OK, error="", **changes)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "20260101-000000-abcdef"
    Journal(folder, "main").facts({"commit": "abc"})
    return folder


def test_a_row_comes_back_as_it_was_written():
    written = ok(hot_us=1.5, hot_samples_us=(1.4, 1.5), hot_settled=True, nnz=7, log="ä")
    assert Row.from_dict(json.loads(json.dumps(written.to_dict()))) == written


def test_an_infinite_error_is_stored_as_nothing_rather_than_as_bare_infinity():
    stored = row(error_ratio=math.inf).to_dict()
    assert stored["error_ratio"] is None
    json.dumps(stored, allow_nan=False)


def test_a_row_of_a_newer_schema_is_refused():
    with pytest.raises(RecordError, match="schema 99"):
        Row.from_dict({**row().to_dict(), "schema": 99})


def test_an_ask_without_a_row_gets_one_that_says_so():
    rows = complete("c", [ASK, MODEL], [], "the worker died")
    assert [r.key for r in rows] == [
        ("spmm32/band-5/f64/good", 0),
        *(("spmm32/band-5/f64/model", sample) for sample in range(3)),
    ]
    assert {r.status for r in rows} == {Status.INFRASTRUCTURE_ERROR}
    assert {r.error for r in rows} == {"the worker died"}


def test_a_sample_that_a_model_still_owes_gets_a_row():
    rows = complete(
        "c", [MODEL], [ok(MODEL, 0, answers=3), ok(MODEL, 2, answers=3)], "the worker died"
    )
    assert [(r.sample, r.ok) for r in rows] == [(0, True), (1, False), (2, True)]


def test_a_model_that_answers_once_owes_nothing_more():
    assert len(complete("c", [MODEL], [ok(MODEL, 0, answers=1)], "the worker died")) == 1


def test_an_ask_that_several_processes_wrote_down_counts_once():
    assert len(complete("c", [ASK, ASK], [ok()], "lost")) == 1


def test_what_several_processes_wrote_is_read_as_one_campaign(folder):
    for process, ask in (("gw0", ASK), ("gw1", MODEL)):
        journal = Journal(folder, process)
        journal.asked([ASK, MODEL])
        journal.add(ok(ask, answers=ask.samples))
        journal.program("d1", "//! op spmv\r\n\ud800")
        journal.close()
    record = read(folder)
    assert [r.author for r in record.rows] == ["good", "model", "model", "model"]
    assert record.unanswered == 2
    assert record.facts == {"commit": "abc"}
    assert record.programs == {"d1": "//! op spmv\r\n\ud800"}


def test_rows_can_be_read_while_the_journal_is_still_open(folder):
    journal = Journal(folder, "main")
    journal.asked([ASK])
    journal.add(ok())
    assert read(folder).rows[0].ok


def test_a_torn_last_line_costs_that_row_only(folder):
    journal = Journal(folder, "main")
    journal.asked([ASK, MODEL])
    journal.add(ok())
    journal.close()
    with (folder / "rows-main.jsonl").open("a") as file:
        file.write('{"campaign": "c", "test"')
    record = read(folder)
    assert [r.ok for r in record.rows] == [True, False, False, False]


def test_what_a_torn_line_has_left_is_taken_off_before_the_next_is_written(folder):
    whole = json.dumps(ok().to_dict()) + "\n"
    (folder / "rows-main.jsonl").write_text(whole + '{"campaign": "c", "te')
    journal = Journal(folder, "main")
    journal.add(ok(MODEL))
    assert [r.author for r in read(folder).rows] == ["good", "model"]
    assert (folder / "rows-main.jsonl").read_text().startswith(whole + "{")


def test_a_line_that_lacks_its_newline_only_is_kept(folder):
    (folder / "rows-main.jsonl").write_text(json.dumps(ok().to_dict()))
    journal = Journal(folder, "main")
    journal.add(ok(MODEL))
    assert [r.author for r in read(folder).rows] == ["good", "model"]


def test_which_programs_an_author_wrote_comes_back_in_order(folder):
    journal = Journal(folder, "main")
    journal.answered(MODEL, ["b", "a", "b"])
    assert read(folder).answers == {MODEL.key: ("b", "a", "b")}


def test_what_is_asked_is_written_whole_and_again_without_harm(folder):
    journal = Journal(folder, "main")
    journal.asked([ASK])
    journal.asked([ASK, MODEL])
    assert [ask.author for ask in read(folder).asks] == ["good", "model"]
    assert not list(folder.glob("*.draft"))


def test_a_broken_line_in_the_middle_is_named(folder):
    (folder / "rows-main.jsonl").write_text("{broken\n{}\n")
    with pytest.raises(JournalError, match=r"rows-main\.jsonl:1: "):
        read(folder)


def test_a_row_with_an_unknown_status_is_named(folder):
    (folder / "rows-main.jsonl").write_text(
        json.dumps({**row().to_dict(), "status": "fine"}) + "\n"
    )
    with pytest.raises(JournalError, match=r"rows-main\.jsonl:1: .*fine"):
        read(folder)


def test_a_folder_that_is_no_campaign_is_refused(tmp_path):
    with pytest.raises(JournalError, match=r"no campaign\.json"):
        read(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_line_that_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError) as caught:
        Journal(tmp_path / "file" / "campaign", "main")
    assert str(tmp_path / "file") in str(caught.value)
    assert "--suite-folder" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_one_line(tmp_path):
    journal = Journal(tmp_path / "campaign", "main")
    (tmp_path / "campaign" / "rows-main.jsonl").symlink_to("/dev/full")
    with pytest.raises(JournalError, match="No space left on device"):
        journal.add(ok())


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("campaign.json", b"[1]", r"campaign\.json: expected a JSON object, not '\[1\]'"),
        ("campaign.json", b"\xff{}", r"campaign\.json: byte 0 is not UTF-8"),
        (
            "campaign.json",
            b'{"campaign": "it\'s"}',
            r"campaign\.json: \"it's\" is no campaign's name",
        ),
        ("campaign.json", b'{"campaign": 7}', r"campaign\.json: 7 is no campaign's name"),
        ("campaign.json", b'{"options": 7}', r"campaign\.json: options is 7, not an object"),
        ("rows-main.jsonl", b"[1]\n", r"rows-main\.jsonl:1: expected a JSON object"),
        ("rows-main.jsonl", b"\xff\n", r"rows-main\.jsonl: byte 0 is not UTF-8"),
        ("asked-main.jsonl", b"{}\n", r"asked-main\.jsonl:1: unreadable ask: 'op'"),
        ("answers-main.jsonl", b"{}\n", r"answers-main\.jsonl:1: unreadable answers: '{}'"),
        ("programs/d.cu", b"\xff", r"d\.cu: byte 0 is not UTF-8"),
    ],
)
def test_damage_is_one_line_that_names_the_file(folder, file, content, message):
    (folder / file).write_bytes(content)
    with pytest.raises(JournalError, match=message) as caught:
        read(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"), [("sample", "a"), ("hot_us", "fast"), ("rows", 1.5), ("schema", "x")]
)
def test_a_row_with_a_value_of_the_wrong_type_is_named(folder, field, value):
    (folder / "rows-main.jsonl").write_text(json.dumps({**row().to_dict(), field: value}) + "\n")
    with pytest.raises(JournalError, match=r"rows-main\.jsonl:1: unreadable row: .*"):
        read(folder)


def test_a_copied_folder_is_still_the_same_campaign(folder):
    Journal(folder, "main").facts({"campaign": "first"})
    assert read(folder.rename(folder.with_name("it's a copy"))).campaign == "first"


def test_what_was_made_up_says_so():
    (made_up,) = complete("c", [ASK], [], "the worker died")
    assert made_up.unanswered
    assert not missing("c", ASK, 0, "the evaluator failed").unanswered


def test_a_verdict_is_put_into_its_own_fields():
    matrix = Matrix("m", "f", canonical(sparse.csr_array([[1.0, 0, 2], [0, 3, 0]]), "m"), "here")
    problem = Problem(Op.SPMM, matrix, 4, DType.FLOAT64)
    verdict = Evaluation(
        Status.OK,
        log="x" * (LOG_LIMIT + 1),
        device="GPU",
        resources=Resources(1, 2, 3, 4),
        error_ratio=0.5,
        checks=4,
        hot=Timing(11.0, 10.0, 12.0, (10.0, 11.0, 12.0), 13, True),
        cold=Timing(21.0, 20.0, 22.0, (21.0,), 1, False),
        conditions=Conditions(4000.0, 1980, "power cap", 3),
        format_bytes=100,
        conversion_ms=31.0,
        compile_ms=32.0,
        wall_ms=33.0,
        detail="d",
    )
    got = judged(row(), problem, KernelProgram("a", "text"), verdict).to_dict()
    want = {
        "rows": 2, "cols": 3, "nnz": 3, "matrix_source": "here", "device": "GPU", "detail": "d",
        "registers": 1, "spill_bytes": 2, "shared_bytes": 3, "stack_bytes": 4,
        "hot_us": 11.0, "hot_low_us": 10.0, "hot_high_us": 12.0, "hot_launches": 13,
        "hot_settled": True, "cold_us": 21.0, "cold_low_us": 20.0, "cold_high_us": 22.0,
        "cold_launches": 1, "cold_settled": False, "conversion_ms": 31.0, "compile_ms": 32.0,
        "copy_gbps": 4000.0, "sm_mhz": 1980, "disturbed": "power cap", "attempts": 3,
        "wall_ms": 33.0, "error_ratio": 0.5, "checks": 4, "flops": 2 * 3 * 4,
        "bytes_moved": 100 + (2 + 3) * 4 * 8, "log": "x" * LOG_LIMIT,
    }  # fmt: skip
    assert {name: got[name] for name in want} == want
    assert (got["hot_samples_us"], got["cold_samples_us"]) == ((10.0, 11.0, 12.0), (21.0,))


def test_a_baseline_owes_one_answer_however_many_are_asked():
    assert len(complete("c", [dataclasses.replace(ASK, samples=8)], [], "lost")) == 1


def test_a_row_whose_ask_was_lost_is_kept():
    assert complete("c", [], [ok()], "lost") == [ok()]


def test_a_broken_line_that_was_finished_is_named_even_at_the_end(folder):
    (folder / "rows-main.jsonl").write_text(json.dumps(row().to_dict()) + "\n{broken\n")
    with pytest.raises(JournalError, match=r"rows-main\.jsonl:2: "):
        read(folder)


def test_a_write_that_takes_a_part_is_continued(folder):
    class Slow:
        written = b""

        def write(self, data):
            self.written += bytes(data[:3])
            return min(3, len(data))

    journal, slow = Journal(folder, "main"), Slow()
    journal._files["rows"] = slow
    journal.add(ok())
    assert json.loads(slow.written) == ok().to_dict() | {
        "hot_samples_us": [],
        "cold_samples_us": [],
    }
