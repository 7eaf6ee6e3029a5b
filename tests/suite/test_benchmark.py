"""pytest-benchmark shows device times as its own, and its JSON is strict and whole (case 20)."""

import statistics

import pytest

pytest_plugins = ["pytester"]

CHANGING = """
import os
from tests.suite.fake import FakeAuthor, script

def pytest_suite_authors(device):
    return [FakeAuthor("changing", texts=(script(us=float(os.environ["CHANGING_US"])),))]
"""

UNWRITABLE = """
def pytest_benchmark_generate_commit_info(config):
    raise OSError("No space left on device")
"""


def bench(data, name):
    return next(b for b in data["benchmarks"] if b["name"] == name)


def test_gpu_samples_are_the_statistics(run, on_gpu, strict_json):
    run("cusparse*,good", "--suite-matrices=one.mtx", "--benchmark-json=out.json")
    found = bench(strict_json("out.json"), "test_spmv[one-good]")
    assert found["stats"]["data"] == pytest.approx([9e-6, 10e-6, 11e-6])
    assert found["stats"]["median"] == pytest.approx(10e-6)
    assert found["stats"]["stddev"] == pytest.approx(statistics.stdev([9e-6, 10e-6, 11e-6]))
    assert found["group"] == "spmv/one/f32"
    assert found["params"] == {"matrix": "one", "author": "good"}


def test_extra_info_has_verdict_resources_bandwidth_and_both_speedups(run, on_gpu, strict_json):
    run("cusparse*,good", "--suite-matrices=one.mtx", "--benchmark-json=out.json")
    extra = bench(strict_json("out.json"), "test_spmv[one-good]")["extra_info"]
    assert (extra["status"], extra["correct"], extra["error_ratio"]) == ("ok", True, 0.25)
    assert (extra["registers"], extra["format_bytes"]) == (32, 1000)
    assert (extra["hot_us"], extra["cold_us"]) == (10.0, 20.0)
    assert extra["speedup_vs_cusparse.hot"] == pytest.approx(2.0)
    assert extra["speedup_vs_cusparse_best.cold"] == pytest.approx(1.6)
    assert extra["bandwidth_gbps.hot"] == pytest.approx(1032 / 10e-6 / 1e9)
    assert extra["bandwidth_fraction.hot"] == pytest.approx(1032 / 10e-6 / 1e9 / 4000)
    assert extra["sm_mhz"] == 1980
    assert not {"emulated", "disturbed"} & set(extra)


def test_a_disturbed_measurement_is_marked_in_its_row_its_extra_info_and_the_summary(
    run, on_gpu, strict_json
):
    result = run("good,shaken", "--suite-matrices=one.mtx", "--benchmark-json=out.json")
    data = strict_json("out.json")
    extra = bench(data, "test_spmv[one-shaken]")["extra_info"]
    assert extra["disturbed"] == "power cap"
    assert [row["disturbed"] for row in data["suite_rows"]] == ["", "power cap"]
    result.stdout.fnmatch_lines(["1 of 2 were measured on a disturbed GPU*"])


def test_emulated_times_are_labelled_and_give_no_speedup(run, strict_json):
    run("good,slow", "--suite-matrices=one.mtx", "--benchmark-json=out.json")
    found = bench(strict_json("out.json"), "test_spmv[one-good]")
    assert found["group"] == "spmv/one/f32 (emulated)"
    assert found["extra_info"]["emulated"] is True
    assert found["stats"]["data"] == pytest.approx([10e-3])
    assert not [k for k in found["extra_info"] if "speedup" in k or "bandwidth" in k]


def test_json_has_every_row_asked_for_and_is_strict(run, strict_json):
    run("good,wrong,broken,unfit,hopeless,raises", "--benchmark-json=out.json")
    data = strict_json("out.json")
    assert {b["name"] for b in data["benchmarks"]} == {"test_spmv[one-good]", "test_spmv[two-good]"}
    assert [
        (row["author"], row["status"]) for row in data["suite_rows"] if row["matrix"] == "two"
    ] == [
        ("good", "ok"),
        ("wrong", "wrong_result"),
        ("broken", "compile_error"),
        ("unfit", "not_applicable"),
        ("hopeless", "parse_error"),
        ("raises", "infrastructure_error"),
    ]
    assert data["suite_facts"]["device"]["name"] == "emulator"


def test_json_is_written_even_where_nothing_was_right(run, strict_json):
    run("wrong", "--benchmark-json=out.json")
    data = strict_json("out.json")
    assert data["benchmarks"] == []
    assert [row["status"] for row in data["suite_rows"]] == ["wrong_result"] * 2


@pytest.mark.parametrize(
    ("path", "why"),
    [("absent/out.json", "No such file or directory"), (".", "Is a directory")],
)
def test_json_that_cannot_be_written_is_told_before_anything_is_measured(run, suite_dir, path, why):
    result = run("good", f"--benchmark-json={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[-2:] == [f"ERROR: --benchmark-json: {path} cannot be written: {why}", ""]
    assert not (suite_dir.path / ".suite").exists()


def test_a_later_run_is_compared_with_a_saved_one(run, on_gpu):
    run("good", "--suite-matrices=one.mtx", "--benchmark-save=before")
    result = run("good", "--suite-matrices=one.mtx", "--benchmark-compare=0001")
    result.stdout.fnmatch_lines(
        ["*test_spmv?one-good? (0001_before)*", "*test_spmv?one-good? (NOW)*"]
    )


def test_benchmark_only_leaves_other_tests_out(run, suite_dir):
    suite_dir.makepyfile(test_other="def test_other(): pass")
    run("good", "--benchmark-only").assert_outcomes(passed=2, skipped=1)


def test_benchmark_disable_still_measures_rows(run):
    run("good,wrong", "--benchmark-disable").assert_outcomes(passed=2, failed=2)


def test_a_failed_item_causes_no_warning_of_its_own(run):
    result = run("wrong,unfit")
    result.assert_outcomes(failed=2, skipped=2)
    result.stdout.no_fnmatch_line("*Benchmark fixture was not used*")


def test_authors_can_be_grouped_by_pytest_benchmark(run):
    result = run("good,slow", "--benchmark-group-by=param:author")
    result.stdout.fnmatch_lines(["*benchmark 'author=good': 2 tests*"])


def test_a_regression_fails_the_run_and_the_summary_is_still_there(
    run, suite_dir, on_gpu, monkeypatch
):
    with (suite_dir.path / "conftest.py").open("a") as file:
        file.write(CHANGING)
    monkeypatch.setenv("CHANGING_US", "10")
    run("changing", "--suite-matrices=one.mtx", "--benchmark-save=before")
    monkeypatch.setenv("CHANGING_US", "20")
    compare = ("--benchmark-compare=0001", "--benchmark-compare-fail=median:5%")
    result = run("changing", "--suite-matrices=one.mtx", *compare)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["spmv, 1 problem *", "changing *", "Results: journal *"])


def test_a_benchmark_file_that_cannot_be_written_does_not_cost_the_summary(run, suite_dir):
    with (suite_dir.path / "conftest.py").open("a") as file:
        file.write(UNWRITABLE)
    result = run("good", "--suite-matrices=one.mtx", "--benchmark-autosave")
    result.stdout.fnmatch_lines(["good *", "Results: journal *"])


def test_emulated_times_take_part_in_no_comparison_that_can_fail(run, suite_dir):
    result = run("good", "--benchmark-compare-fail=median:5%")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --benchmark-compare-fail: emulated times *"])
    assert not (suite_dir.path / ".suite").exists()
