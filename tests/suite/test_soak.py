"""A soak notices what is lost, changed or slower; a short one on the emulator finds nothing."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from suite import soak
from suite.evaluation import Evaluation, Status
from suite.harness.device import DeviceFacts
from suite.harness.usage import device_bytes, host_bytes
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from tests.harness.samples import GOOD, PROBLEM, body

CHEATS = Path(__file__).parents[1] / "harness" / "cheats"
ANY = {"host": Status.OK}


class Judge:
    """Gives every program the same status; remembers what was compiled ahead."""

    facts = DeviceFacts("host", "host", "sm_90", 4, 1 << 20, 1 << 16, 0)

    def __init__(self, status: Status = Status.OK) -> None:
        self.status, self.ahead, self.judged = status, [], []

    def evaluate(self, problem: Problem, program: KernelProgram) -> Evaluation:
        assert program.text in self.ahead
        self.judged.append(program.text)
        return Evaluation(self.status, "" if self.status is Status.OK else "no")

    def compile_ahead(self, programs: Sequence[KernelProgram], dtype: DType) -> None:
        self.ahead += [program.text for program in programs]


def subjects(count: int) -> list[soak.Subject]:
    return [soak.Subject(f"s{i}", f"text {i}", ANY) for i in range(count)]


def test_every_program_is_judged_once_after_it_was_compiled() -> None:
    judge = Judge()
    found = soak.soak(judge, PROBLEM, subjects(150), 150)
    assert judge.judged == [f"text {i}" for i in range(150)]
    assert (found.lost, found.changed, found.verdicts) == (0, [], Counter({"ok": 150}))
    assert len(found.host_mb) == 4
    assert all(mb > 1 for mb in found.host_mb)


def test_a_program_without_a_verdict_is_lost() -> None:
    assert soak.soak(Judge(), PROBLEM, subjects(5), 7).lost == 2


def test_a_soak_stops_when_its_time_is_over_and_has_lost_nothing() -> None:
    found = soak.soak(Judge(), PROBLEM, subjects(10_000), 10_000, seconds=0.05)
    assert 0 < found.judged < 10_000
    assert (found.judged, found.lost) == (found.verdicts["ok"], 0)


def test_a_soak_stops_after_the_program_that_its_time_ends_in() -> None:
    class Slow(Judge):
        def evaluate(self, problem: Problem, program: KernelProgram) -> Evaluation:
            time.sleep(0.02)
            return super().evaluate(problem, program)

    found = soak.soak(Slow(), PROBLEM, subjects(200), 200, seconds=0.1)
    assert 0 < found.judged < 20
    assert found.lost == 0
    assert len(found.host_mb) == 4


@pytest.mark.slow
def test_the_time_is_for_undisturbed_programs_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "right.cu").write_text("// status: ok\n" + GOOD)
    options = ["--device", "emulator", "--programs", "100000", "--minutes", "0.02"]
    options += ["--good", "csr_vector-lanes32", "--faulty", str(tmp_path)]
    assert soak.main(options) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["programs"] < 100_000
    assert found["lost"] == 0
    assert found["throughput_kept"] > 0


@pytest.mark.parametrize(
    "wrong", [("--minutes", "0"), ("--minutes", "nan"), ("--programs", "0"), ("--share", "1.5")]
)
def test_a_soak_of_nothing_is_a_mistake(
    wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        soak.main(["--device", "emulator", "--good", "csr_scalar", "--faulty", str(CHEATS), *wrong])
    assert " ".join(wrong) in capsys.readouterr().err


def test_another_verdict_is_named_with_its_reason() -> None:
    found = soak.soak(Judge(Status.TIMEOUT), PROBLEM, subjects(1), 1)
    assert found.changed == ["s0: timeout instead of ok: no"]


def test_a_mixture_has_its_share_of_every_kind_and_no_text_twice() -> None:
    good, faulty = subjects(3), [soak.Subject(f"f{i}", "bad", ANY) for i in range(5)]
    mixed = list(soak.mixture(good, faulty, 100, 0.2, seed=1))
    names = Counter(subject.name for subject in mixed)
    assert {names[f"f{i}"] for i in range(5)} == {4}
    assert sum(names[s.name] for s in good) == 80
    assert len({subject.text for subject in mixed}) == 100
    assert mixed == list(soak.mixture(good, faulty, 100, 0.2, seed=1))
    assert mixed != list(soak.mixture(good, faulty, 100, 0.2, seed=2))


def test_a_collection_must_say_what_becomes_of_each(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no \.cu file"):
        soak.collection(tmp_path)
    (tmp_path / "a.cu").write_text("// status: ok on emulator, impossible_time on cuda\n")
    (found,) = soak.collection(tmp_path)
    assert found.expected == {"emulator": Status.OK, "cuda": Status.IMPOSSIBLE_TIME}
    (tmp_path / "b.cu").write_text("// nothing\n")
    with pytest.raises(ValueError, match=r"b\.cu: has 0 lines"):
        soak.collection(tmp_path)


def test_memory_of_children_counts() -> None:
    reader, writer = os.pipe()
    before = host_bytes()
    child = os.fork()
    if child == 0:
        held = bytearray(b"x") * (64 << 20)
        os.write(writer, held[:1])
        os.read(os.pipe()[0], 1)
    os.read(reader, 1)
    try:
        assert host_bytes() - before > 64 << 20
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def test_where_nobody_tells_the_gpus_memory_is_not_known() -> None:
    assert device_bytes("no such bus") is None


def test_a_short_soak_on_the_emulator_loses_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("answers_zero", "writes_past_output", "loops_for_ever", "prints", "traps"):
        (tmp_path / f"{name}.cu").write_text((CHEATS / f"{name}.cu").read_text())
    options = ["--device", "emulator", "--programs", "10", "--clean", "2", "--share", "0.5"]
    options += ["--good", "csr_vector-lanes32"]
    assert soak.main([*options, "--faulty", str(tmp_path), "--run-s", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["programs"], found["lost"], found["changed"]) == (10, 0, [])
    assert sum(found["verdicts"].values()) == 10
    assert found["verdicts"]["ok"] == 5
    assert found["throughput_kept"] > 0
    assert len(found["host_mb"]) == 4


def test_a_changed_verdict_is_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "right.cu").write_text("// status: wrong_result\n" + GOOD)
    (tmp_path / "wrong.cu").write_text("// status: wrong_result\n" + body("y[row] = 0;"))
    options = ["--device", "emulator", "--programs", "2", "--clean", "1", "--share", "1"]
    options += ["--good", "csr_vector-lanes32"]
    assert soak.main([*options, "--faulty", str(tmp_path)]) == 1
    (changed,) = json.loads(capsys.readouterr().out)["changed"]
    assert changed.startswith("right: ok instead of wrong_result")
    assert Problem(Op.SPMV, soak.long_and_empty_rows()).matrix.csr.shape == (402, 60_000)
