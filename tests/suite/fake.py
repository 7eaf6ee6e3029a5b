"""An evaluator that does as the program's text says, so that everything around it can be tried in
no time.

As a pytest plugin it also brings authors, each named after what its program does.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import pytest

from suite.author import Kind
from suite.evaluation import Conditions, Evaluation, Resources, Status, Timing
from suite.harness.device import DeviceFacts
from suite.harness.evaluate import DeviceUnavailable
from suite.matrices.base import Matrix
from suite.problem import Problem
from suite.program import Answer, KernelProgram, LibraryCall

DETAILS = {"driver": "580.1", "compiler": "NVRTC 13.0"}


def facts(kind: str) -> DeviceFacts:
    """A device that is not there."""
    name = "Fake H200" if kind == "cuda" else "emulator"
    return DeviceFacts(kind, name, "sm_90", 132, 2**37, 232448, 60 << 20, DETAILS)


def script(status: str = "ok", us: float = 10.0, **more: Any) -> str:
    """A program's text: what the fake evaluator is to make of it."""
    return json.dumps({"status": status, "us": us, **more})


@dataclasses.dataclass(frozen=True)
class FakeAuthor:
    """Answers every problem with the same texts."""

    name: str
    kind: Kind = Kind.BASELINE
    texts: tuple[str, ...] = (script(),)
    ops: tuple[str, ...] = ("spmv", "spmm")

    def answers(self, op: str) -> bool:
        """The operations it was made for."""
        return op in self.ops

    def write(self, problem: Problem, samples: int) -> Sequence[Answer]:
        """Its texts; a library author has none, and ``mute`` fails."""
        if self.name == "mute":
            raise RuntimeError("no model is loaded")
        if self.kind is Kind.LIBRARY:
            return [LibraryCall(self.name)]
        return [KernelProgram(self.name, text, at) for at, text in enumerate(self.texts)][:samples]


COPY_GBPS = 4000.0
LIBRARY_US = {"cusparse": 20.0, "cusparse_best": 16.0}

AUTHORS = (
    FakeAuthor("cusparse", Kind.LIBRARY),
    FakeAuthor("cusparse_best", Kind.LIBRARY),
    FakeAuthor("good", texts=(script(us=10.0),)),
    FakeAuthor("slow", texts=(script(us=40.0),), ops=("spmv",)),
    FakeAuthor("shaken", texts=(script(us=10.0, disturbed="power cap"),)),
    FakeAuthor("wrong", texts=(script("wrong_result", error_ratio=float("inf")),)),
    FakeAuthor("broken", texts=(script("compile_error", log="line 3: no such name"),)),
    FakeAuthor("unfit", texts=(script("not_applicable"),)),
    FakeAuthor("lost", texts=(script("infrastructure_error"),)),
    FakeAuthor("learner", Kind.MODEL, (script(us=8.0), script("wrong_result"), script(us=4.0))),
    FakeAuthor("hopeless", Kind.MODEL, (script("parse_error"),)),
    FakeAuthor("mute", Kind.MODEL),
    FakeAuthor("raises", texts=(script("raises"),)),
    FakeAuthor("dies", texts=(script("dies"),)),
    FakeAuthor("interrupted", texts=(script("interrupted"),)),
    FakeAuthor("terminated", texts=(script("terminated"),)),
)


class FakeEvaluator:
    """Judges by what the text says, on a device of the kind asked for."""

    def __init__(self, kind: str) -> None:
        self.facts = facts(kind)
        self.released: list[str] = []
        self.closed = False

    def evaluate(self, problem: Problem, answer: Answer) -> Evaluation:
        """What the text says, after ``FAKE_NAP`` seconds."""
        time.sleep(float(os.environ.get("FAKE_NAP", "0")))
        if isinstance(answer, LibraryCall):
            return self._right(LIBRARY_US[answer.author])
        plan = json.loads(answer.text)
        match plan["status"]:
            case "ok":
                return self._right(plan["us"], plan.get("disturbed", ""))
            case "raises":
                raise OSError("worker pipe closed")
            case "dies":
                os._exit(9)
            case "interrupted":
                if "FAKE_INTERRUPTED" in os.environ:  # this time it goes well
                    return self._right(10.0)
                raise KeyboardInterrupt
            case "terminated":
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(5)
                raise AssertionError("the signal was ignored")
        status = Status(plan["status"])
        return Evaluation(
            status,
            f"told to be {status}",
            log=plan.get("log", ""),
            device=self.facts.name,
            resources=Resources(40) if status.compiled else None,
            error_ratio=plan.get("error_ratio"),
        )

    def release(self, matrix: Matrix) -> None:
        """Remembers what was released."""
        self.released.append(matrix.name)

    def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True

    def _right(self, us: float, disturbed: str = "") -> Evaluation:
        ok = Evaluation(
            Status.OK,
            device=self.facts.name,
            resources=Resources(32, spill_bytes=8),
            error_ratio=0.25,
            checks=4,
            format_bytes=1000,
            conversion_ms=1.5,
            compile_ms=30.0,
            wall_ms=50.0,
        )
        if self.facts.kind != "cuda":
            return dataclasses.replace(ok, emulated_us=us * 1000)
        samples = (us * 0.9, us, us * 1.1)
        hot = Timing(us, us * 0.9, us * 1.1, samples, 20, True)
        cold = Timing(us * 2, us * 1.9, us * 2.1, (us * 2,), 1, False)
        conditions = Conditions(COPY_GBPS, 1980, disturbed)
        return dataclasses.replace(ok, hot=hot, cold=cold, conditions=conditions)


def pytest_suite_evaluator(device: str) -> FakeEvaluator:
    """There is a GPU when ``FAKE_GPU`` is set."""
    gpu = "FAKE_GPU" in os.environ
    if device == "cuda" and not gpu:
        raise DeviceUnavailable("no NVIDIA GPU here; use --suite-device emulator")
    return FakeEvaluator("cuda" if gpu and device != "emulator" else "emulator")


@pytest.hookimpl
def pytest_suite_authors(device: str) -> list[FakeAuthor]:
    """All of them; what library authors there are comes with the suite itself."""
    return [author for author in AUTHORS if author.kind is not Kind.LIBRARY]
