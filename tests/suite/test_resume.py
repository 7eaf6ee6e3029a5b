"""A campaign that was stopped goes on: nothing lost, nothing repeated, the same final tables."""

import dataclasses
import json
import random
import shutil
import time
from pathlib import Path

import pytest

from suite import resume
from suite.config import ConfigError, Requested
from suite.harness.device import DeviceFacts
from suite.journal import JournalError, read
from suite.locks import Locks
from suite.mlstore import open_store
from suite.summary import table
from tests.fuzz import HUNTING
from tests.shell import plain
from tests.suite.apart import Apart, run_pytest
from tests.suite.conftest import CONFTEST, MATRIX, MODULE

pytest_plugins = ["pytester"]

AUTHORS = "good,wrong,learner"
ASKED = [
    f"--suite-authors={AUTHORS}",
    "--suite-matrices=one.mtx,two.mtx,three.mtx",
    "--suite-ops=spmv",
    "--suite-samples=3",
]
ANSWERS = 3 * (1 + 1 + 3)  # matrices; answers of each author
NAP_S = 0.1  # for each answer


class Place:
    """A folder in which campaigns are started, killed and resumed."""

    def __init__(
        self,
        path: Path,
        empty_store: Path,
        monkeypatch: pytest.MonkeyPatch,
        pytester: pytest.Pytester | None = None,
    ) -> None:
        self.path, self.pytester = path, pytester
        shutil.copy(empty_store, path / "mlflow.db")
        (path / "three.mtx").write_text(MATRIX.format(v=7))
        monkeypatch.setenv("FAKE_NAP", str(NAP_S))

    def start(self, *options: str) -> Apart:
        return Apart(run_pytest, self.path, "-pno:cacheprovider", *options)

    def run(self, *options: str) -> tuple[int, str]:
        return _said(self.start(*options).result())

    def within(self, *options: str) -> tuple[int, str]:
        """The same in this process."""
        assert self.pytester is not None
        return _said(self.pytester.runpytest_inprocess("-pno:cacheprovider", *options))

    def killed(self, rows: int, after_s: float, *options: str) -> bool:
        """Starts, waits for so many rows and so long, and kills; whether it still ran."""
        process = self.start(*options)
        while not process.ended and not (self.campaigns() and len(self.lines()) >= rows):
            time.sleep(0.005)
        return process.kill(after_s)

    def campaigns(self) -> list[Path]:
        return sorted(path.parent for path in (self.path / ".suite").glob("*/campaign.json"))

    def lines(self) -> list[str]:
        """Every finished line of the only campaign's rows."""
        (folder,) = self.campaigns()
        texts = [path.read_text() for path in sorted(folder.glob("rows-*.jsonl"))]
        return [
            line for text in texts for line in text.splitlines(keepends=True) if line[-1:] == "\n"
        ]

    def runs(self, where: str = "") -> list:
        client, experiment = open_store(f"sqlite:///{self.path / 'mlflow.db'}")
        return client.search_runs([experiment], where)

    def final(self) -> tuple[list[str], dict[str, dict[str, float]]]:
        """The closing table, and every metric in the store by run and name."""
        (folder,) = self.campaigns()
        metrics = {run.info.run_name: dict(run.data.metrics) for run in self.runs()}
        metrics["parent"] = metrics.pop(folder.name)
        return table(read(folder).rows), metrics


def _said(result: pytest.RunResult) -> tuple[int, str]:
    return int(result.ret), f"{result.stdout.str()}\n{result.stderr.str()}"


@pytest.fixture
def place(suite_dir, empty_store, monkeypatch):
    return Place(suite_dir.path, empty_store, monkeypatch, suite_dir)


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """A folder like ``suite_dir``, shared by tests."""
    path = tmp_path_factory.mktemp("alone")
    (path / "conftest.py").write_text(CONFTEST)
    for op in ("spmv", "spmm"):
        (path / f"test_{op}.py").write_text(MODULE.format(op=op))
    for name, value in (("one", 1), ("two", 5)):
        (path / f"{name}.mtx").write_text(MATRIX.format(v=value))
    return path


@pytest.fixture(scope="session")
def uninterrupted(alone, empty_store):
    """What the campaign comes to when nobody kills it, and how many seconds that takes."""
    with pytest.MonkeyPatch.context() as patch:
        plain(patch)
        whole = Place(alone, empty_store, patch)
        process = whole.start(*ASKED)
        while not process.ended and not whole.campaigns():
            time.sleep(0.002)
        started = time.monotonic()
        assert process.result().ret == 1  # ``wrong`` is wrong
        return *whole.final(), time.monotonic() - started


def kill_and_resume(place, uninterrupted, *moments):
    """Kills a campaign at each moment, resuming it between: after so many rows and seconds."""
    tables, metrics, _ = uninterrupted
    options, kept, ended = ASKED, [], False
    for rows, after_s in moments:
        ended = not place.killed(rows, after_s, *options)
        assert place.lines()[: len(kept)] == kept  # nothing that was there has changed
        options, kept = ["--suite-resume"], place.lines()
        if (place.campaigns()[0] / "finished").exists():  # killed on its way out
            ended = True
            break
    if not ended:
        code, output = place.within("--suite-resume")
        assert code == 1, output
        assert f"resumed with {len(kept)} answers" in output
    found = [json.loads(line) for line in place.lines()]
    keys = [(row["label"], row["matrix"], row["author"], row["sample"]) for row in found]
    assert len(keys) == len(set(keys)) == ANSWERS
    assert place.lines()[: len(kept)] == kept
    assert place.final() == (tables, metrics)
    (parent,) = place.runs("tags.`suite.role` = 'campaign'")
    assert parent.info.status == "FAILED"
    assert not place.runs("attributes.status = 'RUNNING'")


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([(0, 0.0)], id="before the first answer", marks=pytest.mark.slow),
        pytest.param([(4, 0.6 * NAP_S), (9, 0.3 * NAP_S)], id="twice in the middle"),
        pytest.param([(ANSWERS, 0.2)], id="while results are logged", marks=pytest.mark.slow),
    ],
)
def test_a_campaign_that_was_killed_goes_on_to_the_same_end(place, uninterrupted, moments):
    kill_and_resume(place, uninterrupted, *moments)


@pytest.mark.parametrize(
    "seed",
    [
        100,
        *(
            pytest.param(seed, marks=pytest.mark.slow)
            for seed in range(101, 120 if HUNTING else 104)
        ),
    ],
)
def test_random_moments(place, uninterrupted, seed):
    kill_and_resume(place, uninterrupted, (0, random.Random(seed).uniform(0, uninterrupted[2])))


# What can be different


@pytest.fixture(scope="session")
def interrupted(tmp_path_factory, alone, empty_store):
    """The journal of a campaign that was interrupted after its first answer, without MLflow."""
    options = ["--suite-authors=good,interrupted,slow", "--suite-matrices=one.mtx,two.mtx"]
    journals = tmp_path_factory.mktemp("journals")
    with pytest.MonkeyPatch.context() as patch:
        plain(patch)
        where = Place(alone, empty_store, patch)
        code, output = where.run(
            *options, "--suite-ops=spmv", "--suite-tracking=off", f"--suite-folder={journals}"
        )
    assert code == 2, output
    return journals


@pytest.fixture
def stopped(place, interrupted):
    """Such a campaign."""
    shutil.copytree(interrupted, place.path / ".suite")
    return place


def refused(place, *options):
    code, output = place.within("--suite-resume", *options)
    assert code == pytest.ExitCode.USAGE_ERROR, output
    lines = [line for line in output.splitlines() if line.startswith("ERROR")]
    assert len(place.lines()) == 1  # nothing was measured
    assert "not measured" not in output  # and no table shown
    return lines


def test_an_interrupted_campaign_is_unfinished_and_keeps_its_options(stopped):
    (folder,) = stopped.campaigns()
    record = read(folder)
    assert (len(record.rows), record.unanswered) == (6, 5)
    before = resume.load(resume.find(stopped.path / ".suite", resume.LATEST))
    now = before.requested(Requested(tracking="on"))
    assert (now.authors, now.ops) == ("good,interrupted,slow", "spmv")
    assert (now.tracking, now.folder) == ("on", None)


def test_other_options_are_refused_each_with_its_line(stopped):
    lines = refused(
        stopped, "--suite-samples=2", "--suite-authors=good,slow,wrong", "--suite-matrices=one.mtx"
    )
    name = stopped.campaigns()[0].name
    text = f"ERROR: --suite-resume: campaign {name} was asked something else: "
    assert lines == [
        f"{text}--suite-samples has changed from 1 to 2",
        f"{text}matrix two is gone",
        f"{text}author interrupted is gone",
        f"{text}author wrong is new",
        "ERROR: --suite-resume: or leave it out, and start anew",
    ]


def test_another_matrix_in_the_same_file_is_refused(stopped):
    (stopped.path / "two.mtx").write_text(MATRIX.format(v=6))
    assert "matrix two has changed" in refused(stopped)[0]


def test_other_sources_of_the_suite_are_refused(stopped):
    (folder,) = stopped.campaigns()
    known = json.loads((folder / "identity.json").read_text())
    (folder / "identity.json").write_text(json.dumps({**known, "sources": "0" * 32}))
    commit = read(folder).facts["commit"]
    assert f"the suite's sources (then at commit {commit}): go back to them" in refused(stopped)[0]


def test_other_packages_are_refused(stopped):
    (folder,) = stopped.campaigns()
    known = json.loads((folder / "identity.json").read_text())
    known["packages"]["numpy"] = "1.0"
    (folder / "identity.json").write_text(json.dumps(known))
    assert "something else: numpy has changed from 1.0 to " in refused(stopped)[0]


def test_another_device_is_refused(stopped, monkeypatch):
    monkeypatch.setenv("FAKE_GPU", "1")
    (line,) = refused(stopped)
    assert "was measured on another device (kind emulator then, cuda now; name emulator" in line


def test_other_items_are_refused(stopped):
    (line,) = refused(stopped, "-k", "good")
    assert "asked 6 things, of which 4 are not collected now, spmv/one/f32/interrupted" in line


def test_a_changed_program_of_ones_own_is_refused(place):
    mine = place.path / "mine.cu"
    mine.write_text('//! op spmv\n{"status": "ok"}')
    options = ["--suite-authors=interrupted,./mine.cu", "--suite-ops=spmv", "--suite-tracking=off"]
    assert place.run(*options, "--suite-matrices=one.mtx")[0] == 2
    mine.write_text('//! op spmv\n{"status": "ok", "us": 3}')
    code, output = place.within("--suite-resume")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "author mine has changed" in output


def test_a_finished_campaign_is_refused_and_is_never_the_latest(place):
    asked = ("--suite-authors=good", "--suite-matrices=one.mtx", "--suite-tracking=off")
    code, _ = place.within(*asked)
    assert code == 0
    (folder,) = place.campaigns()
    for option, says in (
        (f"--suite-resume={folder.name}", f"campaign {folder.name} is finished"),
        ("--suite-resume", "no unfinished campaign in"),
        ("--suite-resume=other", f"no campaign 'other' in {folder.parent}; the last ones are"),
        ("--suite-resume=", "is empty"),
    ):
        code, output = place.within(option)
        assert (code, says in output) == (pytest.ExitCode.USAGE_ERROR, True), output


def test_two_processes_do_not_resume_one_campaign(stopped):
    (folder,) = stopped.campaigns()
    locks = Locks(folder)
    locks.hold("gw0")
    assert "another process measures this campaign right now" in refused(stopped)[0]
    locks.release()
    locks.hold("main")
    assert "another process measures this campaign right now" in refused(stopped)[0]


def test_a_campaign_of_a_version_that_could_not_resume_says_so(stopped):
    (folder,) = stopped.campaigns()
    (folder / "identity.json").unlink()
    with pytest.raises(ConfigError, match="made by a version that could not resume"):
        resume.find(folder.parent, folder.name)
    with pytest.raises(ConfigError, match="no unfinished campaign"):
        resume.find(folder.parent, resume.LATEST)


@pytest.mark.parametrize("name", ["identity.json", "campaign.json"])
def test_a_damaged_file_of_a_campaign_is_named(stopped, name):
    (folder,) = stopped.campaigns()
    (folder / name).write_text("{")
    with pytest.raises(ConfigError, match=f"^--suite-resume: {folder / name}: "):
        resume.load(folder)


def test_a_torn_last_line_is_measured_again_and_not_glued_to_the_next(stopped, monkeypatch):
    (folder,) = stopped.campaigns()
    with (folder / "rows-main.jsonl").open("a") as file:
        file.write('{"campaign": "torn')
    monkeypatch.setenv("FAKE_INTERRUPTED", "ok")
    code, output = stopped.within("--suite-resume")
    assert code == 0, output
    assert "resumed with 1 answers" in output
    rows = [json.loads(line) for line in (folder / "rows-main.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert (folder / "finished").exists()
    (again,) = read(folder).facts["resumed"]
    assert {"started", "command", "commit", "dirty"} == set(again)


def test_workers_of_xdist_go_on_together(stopped, monkeypatch):
    monkeypatch.setenv("FAKE_INTERRUPTED", "ok")
    code, output = stopped.run("--suite-resume", "-n2")
    assert code == 0, output
    (folder,) = stopped.campaigns()
    assert [row.author for row in read(folder).rows] == ["good", "interrupted", "slow"] * 2
    assert sum(map(len, (p.read_text().splitlines() for p in folder.glob("rows-*")))) == 6


def test_collecting_does_not_claim_the_campaign(stopped):
    code, _ = stopped.within("--suite-resume", "--collect-only")
    assert code == 0
    locks = Locks(stopped.campaigns()[0])
    locks.hold("main")  # nobody has it
    locks.release()


# The parts


def test_a_lock_is_held_once_and_given_back(tmp_path):
    first, second = Locks(tmp_path / "c"), Locks(tmp_path / "c")
    first.hold("main")
    first.hold("main")
    first.check()
    with pytest.raises(JournalError, match="another process measures this campaign right now"):
        second.hold("main")
    with pytest.raises(JournalError, match="right now"):
        second.check()
    first.release()
    second.hold("main")


def test_a_digest_of_sources_changes_with_names_and_contents_and_nothing_else(tmp_path):
    (tmp_path / "a.py").write_text("1")
    first = resume.sources(tmp_path)
    (tmp_path / "notes.txt").write_text("1")
    assert resume.sources(tmp_path) == first
    (tmp_path / "b.cu").write_text("")
    second = resume.sources(tmp_path)
    (tmp_path / "b.cu").rename(tmp_path / "c.cu")
    assert len({first, second, resume.sources(tmp_path)}) == 3


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"details": {"driver": "580", "sm_clock_mhz": "1"}}, True),
        ({"details": {"driver": "590", "sm_clock_mhz": "1980"}}, False),
        ({"name": "NVIDIA H100"}, False),
        ({"memory_bytes": 1}, False),
    ],
)
def test_a_device_is_the_same_when_what_decides_times_is(change, same):
    then = DeviceFacts("cuda", "NVIDIA H200", "sm_90", 132, 10, 5, 60, {"driver": "580"})
    facts = {"device": dataclasses.asdict(then)}
    record = dataclasses.replace(EMPTY, facts=facts)
    now = dataclasses.replace(then, **change)
    if same:
        resume.check_device(resume.Before(record, {}), now)
    else:
        with pytest.raises(ConfigError, match="another device"):
            resume.check_device(resume.Before(record, {}), now)


EMPTY = resume.Record("c", {}, (), (), 0, {})
