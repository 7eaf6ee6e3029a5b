"""What pytest does with the suite: items, order, outcomes, options, interrupts."""

import json

import pytest

from suite.journal import read
from tests.suite.stores import runs

pytest_plugins = ["pytester"]


SMALL_DISK = """
import pytest, resource

def limit(most):  # bytes in one file
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

def pytest_runtest_setup(item):
    limit(2000)

@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt():
    limit(resource.RLIM_INFINITY)
"""


def rows(suite_dir, folder=".suite"):
    (campaign,) = (suite_dir.path / folder).iterdir()
    return read(campaign)


def test_ids_name_matrix_and_author(run):
    result = run(
        "good,slow", "--suite-ops=spmv,spmm", "--suite-columns=8,32", "--collect-only", "-q"
    )
    assert [line for line in result.outlines if "::" in line] == [
        "test_spmv.py::test_spmv[one-good]",
        "test_spmv.py::test_spmv[one-slow]",
        "test_spmm.py::test_spmm[one-n8-good]",
        "test_spmm.py::test_spmm[one-n32-good]",
        "test_spmv.py::test_spmv[two-good]",
        "test_spmv.py::test_spmv[two-slow]",
        "test_spmm.py::test_spmm[two-n8-good]",
        "test_spmm.py::test_spmm[two-n32-good]",
    ]


def test_a_right_answer_passes_and_leaves_its_row(run, suite_dir):
    run("good", "--benchmark-only").assert_outcomes(passed=2)
    record = rows(suite_dir)
    assert [(row.matrix, row.author, row.status) for row in record.rows] == [
        ("one", "good", "ok"),
        ("two", "good", "ok"),
    ]
    assert record.rows[0].matrix_digest != record.rows[1].matrix_digest
    assert record.rows[0].bytes_moved == 1000 + 4 * (4 + 4)
    assert record.rows[0].flops == 8
    assert list(record.programs) == [record.rows[0].program_digest]


def test_an_operation_that_is_not_asked_for_has_no_items(run):
    run("good", "--suite-ops=spmm", "--suite-columns=8").assert_outcomes(passed=2)


def test_what_does_not_apply_is_skipped_with_its_reason_and_keeps_its_row(run, suite_dir):
    result = run("unfit", "-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*not_applicable: told to be not_applicable"])
    assert [row.status for row in rows(suite_dir).rows] == ["not_applicable"] * 2


@pytest.mark.parametrize("author", ["wrong", "broken", "lost", "raises"])
def test_a_baseline_that_fails_fails_its_test(run, author):
    result = run(author)
    result.assert_outcomes(failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_the_reason_and_the_compiler_log_are_shown_without_a_traceback(run):
    result = run("broken", "--suite-matrices=one.mtx")
    result.stdout.fnmatch_lines(
        ["compile_error: told to be compile_error", "line 3: no such name"], consecutive=True
    )
    result.stdout.no_fnmatch_line("*campaign.py*")


def test_a_model_that_fails_is_a_result_and_not_a_defect(run, suite_dir):
    run("hopeless").assert_outcomes(passed=2)
    assert [row.status for row in rows(suite_dir).rows] == ["parse_error"] * 2


def test_a_model_that_cannot_be_asked_is_a_defect_and_owes_every_sample(run, suite_dir):
    run("mute", "--suite-samples=3").assert_outcomes(failed=2)
    record = rows(suite_dir)
    assert [row.status for row in record.rows] == ["infrastructure_error"] * 6
    assert record.rows[0].error == "mute could not answer: RuntimeError: no model is loaded"


def test_every_sample_of_a_model_has_a_row(run, suite_dir):
    run("learner", "--suite-samples=3", "--suite-matrices=one.mtx").assert_outcomes(passed=1)
    assert [(row.sample, row.status) for row in rows(suite_dir).rows] == [
        (0, "ok"),
        (1, "wrong_result"),
        (2, "ok"),
    ]


def test_stopping_at_the_first_failure_leaves_rows_for_what_was_not_measured(run, suite_dir):
    run("wrong,good", "-x").assert_outcomes(failed=1)
    record = rows(suite_dir)
    assert [row.status for row in record.rows] == ["wrong_result", *["infrastructure_error"] * 3]
    assert record.unanswered == 3


def test_deselected_items_were_not_asked(run, suite_dir):
    run("good,slow", "-k", "one-slow").assert_outcomes(passed=1)
    assert [row.author for row in rows(suite_dir).rows] == ["slow"]


def test_benchmark_skip_measures_nothing_and_writes_nothing(run, suite_dir):
    run("good", "--benchmark-skip").assert_outcomes(skipped=2)
    assert not (suite_dir.path / ".suite").exists()


def test_collecting_writes_nothing(run, suite_dir):
    run("good", "--collect-only")
    assert not (suite_dir.path / ".suite").exists()


def test_progress_is_a_line_for_each_matrix_even_when_quiet(run):
    result = run("good,slow", "-q")
    result.stdout.re_match_lines(
        [
            r".*\[1/2\] one 4 rows 4 nnz: 2 programs, \d+\.\d s",
            r".*\[2/2\] two 4 rows 4 nnz: 2 programs, \d+\.\d s",
        ]
    )


def test_the_summary_says_what_a_gpu_would_add(run):
    result = run("good,wrong")
    result.stdout.fnmatch_lines(
        [
            "*suite: emulator*",
            "spmv, 2 problems  asked  n/a  compiled  correct",
            "good                  2    0      100%     100%",
            "wrong                 2    0      100%       0%",
            "Emulated:*With an NVIDIA GPU*speedups over cuSPARSE.",
        ]
    )


def test_the_summary_on_a_gpu_gives_both_speedups(run, on_gpu):
    result = run("cusparse*,good,slow")
    result.stdout.fnmatch_lines(
        [
            "*suite: Fake H200*",
            "spmv, 2 problems*vs cusparse*vs best*fastest",
            "cusparse_best * 1.25x * 1.00x *",
            "good * 2.00x * 1.60x * 1.60x * 2",
            "best_of_baselines * 2.00x * 1.60x *",
        ]
    )
    result.stdout.no_fnmatch_line("*Emulated*")


def test_library_authors_are_measured_first(run, on_gpu):
    result = run("good,cusparse*", "--suite-matrices=one.mtx", "--collect-only", "-q")
    assert [line.partition("[")[2] for line in result.outlines if "::" in line] == [
        "one-cusparse]",
        "one-cusparse_best]",
        "one-good]",
    ]


def test_every_mistake_is_reported_at_once_and_nothing_is_written(run, suite_dir):
    result = run(
        "goood",
        "--suite-ops=spmx",
        "--suite-columns=8,-1,x",
        "--suite-samples=0",
        "--suite-dtype=half",
        "--suite-device=tpu",
        "--suite-tracking=perhaps",
        "--suite-matrices=nowhere.mtx",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for line in (
        "*--suite-device: 'tpu' is none of auto, cuda, emulator",
        "*--suite-ops: 'spmx' is none of spmv, spmm",
        "*--suite-dtype: 'half' is none of float32, float64",
        "*--suite-samples: 0 is not between 1 and 10000",
        "*--suite-columns: -1 is not between 0 and 65536",
        "*--suite-tracking: 'perhaps' is none of on, off",
        "*--suite-matrices: nowhere.mtx*",
        "*--suite-authors: no author is called 'goood'; did you mean good?*",
    ):
        result.stderr.fnmatch_lines([line])
    assert not (suite_dir.path / ".suite").exists()


def test_mistakes_do_not_concern_a_run_without_the_suite(suite_dir):
    suite_dir.makepyfile(test_other="def test_other(): pass")
    result = suite_dir.runpytest_inprocess("test_other.py", "-pno:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*suite:*")


def test_a_malformed_matrix_file_is_a_usage_error_that_names_it(run, suite_dir):
    text = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1.0\n"
    (suite_dir.path / "torn.mtx").write_text(text)
    result = run("good", "--suite-matrices=one.mtx,torn.mtx")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --suite-matrices: torn.mtx*"])
    assert not (suite_dir.path / ".suite").exists()


def test_cuda_without_a_gpu_is_a_usage_error(run, suite_dir):
    result = run("good", "--suite-device=cuda")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: no NVIDIA GPU here; use --suite-device emulator"])
    assert not (suite_dir.path / ".suite").exists()


def test_a_folder_that_cannot_be_written_is_a_usage_error(run, suite_dir):
    (suite_dir.path / "file").write_text("")
    result = run("good", "--suite-folder=file")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *file*Not a directory; free space or give another folder*"]
    )


def test_a_program_of_ones_own_is_measured_like_any_other(run, suite_dir):
    text = '//! op spmv\n{"status": "ok", "us": 3.0}'
    (suite_dir.path / "mine.cu").write_text(text)
    result = run("./mine.cu", "--suite-matrices=one.mtx")
    result.assert_outcomes(failed=1)  # the fake evaluator does not know //!
    (row,) = rows(suite_dir).rows
    assert (row.author, row.kind) == ("mine", "file")


@pytest.mark.parametrize(("author", "code"), [("interrupted", 2), ("terminated", 143)])
def test_an_interrupt_keeps_what_was_measured(run, suite_dir, author, code):
    result = run(f"good,{author},slow", "--suite-matrices=one.mtx", apart=True)
    assert result.ret == code
    result.stdout.re_match_lines([r".*/(fake|session)\.py:\d+: KeyboardInterrupt"])
    assert [row.ok for row in rows(suite_dir).rows] == [True, False, False]


def test_workers_share_one_campaign_in_the_journal_in_json_and_in_mlflow(
    run, suite_dir, store, strict_json
):
    suite_dir.makepyfile(test_other="def test_other(): pass")
    options = ("-n2", "--benchmark-only", "--benchmark-json=out.json", "--suite-tracking=on")
    result = run("good,slow,unfit", *options, apart=True)
    result.assert_outcomes(passed=4, skipped=2 + 1)
    record = rows(suite_dir)
    assert record.unanswered == 0
    assert [(row.matrix, row.author) for row in record.rows] == [
        (matrix, author) for matrix in ("one", "two") for author in ("good", "slow", "unfit")
    ]
    assert {row.test for row in record.rows if row.author == "good"} == {
        "test_spmv.py::test_spmv[one-good]",
        "test_spmv.py::test_spmv[two-good]",
    }
    result.stdout.fnmatch_lines(["*[[]2/2[]] two 4 rows*"])
    for output in (result.stdout, result.stderr):
        output.no_fnmatch_line("*automatically disabled*")
    data = strict_json("out.json")
    found = next(b for b in data["benchmarks"] if b["name"] == "test_spmv[two-good]")
    assert found["fullname"] == "test_spmv.py::test_spmv[two-good]"
    assert found["stats"]["data"] == pytest.approx([10e-3])
    assert len(data["suite_rows"]) == 6
    result.stdout.fnmatch_lines(["*benchmark 'spmv/two/f32 (emulated)': 2 tests*"])
    (parent,) = runs(store, "tags.`suite.role` = 'campaign'")
    assert parent.data.metrics["asked"] == 6
    assert len(runs(store)) == 1 + 3  # the campaign and its authors


def test_a_worker_that_dies_leaves_a_row_for_what_it_was_measuring(run, suite_dir):
    result = run("good,dies,slow", "-n1", "--suite-matrices=one.mtx", apart=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert [(row.author, row.status) for row in rows(suite_dir).rows] == [
        ("good", "ok"),
        ("dies", "infrastructure_error"),
        ("slow", "ok"),
    ]


def test_a_full_disk_ends_the_run_with_one_line_and_keeps_the_rows_before(run, suite_dir):
    with (suite_dir.path / "conftest.py").open("a") as file:
        file.write(SMALL_DISK)
    result = run("good,slow", apart=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*File too large; free space or give another folder*"])
    kept = [row.ok for row in rows(suite_dir).rows]
    assert (len(kept), kept[0], kept[-1]) == (4, True, False)


def test_the_journal_says_who_measured_what_with_what(run, suite_dir):
    run("good", "--suite-dtype=float64")
    facts = json.loads(next((suite_dir.path / ".suite").glob("*/campaign.json")).read_text())
    assert facts["options"]["dtype"] == "float64"
    assert facts["device"]["details"]["driver"] == "580.1"
    assert {"commit", "dirty", "command", "packages", "host", "started"} <= set(facts)


def test_stopping_at_the_first_failure_with_workers_is_a_failure_and_no_interrupt(run):
    result = run("wrong,good,slow", "-x", "-n1", apart=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
