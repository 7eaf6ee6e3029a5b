"""Whether the evaluator lasts: ``python -m suite.soak``.

Judges many programs, a share of them faulty in every way of a collection of ``.cu`` files, and
prints one JSON object: were results lost, did a verdict change, did memory grow, and how much of
the speed of an undisturbed run was left. Exit code 1 when a result was lost or a verdict changed.

A faulty program's head says what must become of it:

    // status: wrong_result
    // status: impossible_time on cuda, ok on emulator

Left out on purpose: whether programs are fast; that is what the suite measures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from suite.baselines.files import baselines
from suite.evaluation import Evaluation, Status
from suite.harness.evaluate import Evaluator, Settings
from suite.harness.usage import device_bytes, host_bytes
from suite.matrices.base import Matrix, canonical
from suite.problem import Op, Problem
from suite.program import KernelProgram

_STATUS = "// status: "
AHEAD = 512  # programs under way: one may keep its compiler busy to the limit
COMPILERS = max(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Subject:
    """A program whose verdict is known.

    Attributes:
        name: What it is called.
        text: The program.
        expected: Its status, by kind of device.
    """

    name: str
    text: str
    expected: dict[str, Status]


@dataclass
class Soaked:
    """What became of many programs.

    Attributes:
        judged: Programs with a verdict.
        verdicts: How often each status was given.
        lost: Programs without a verdict.
        changed: Verdicts that were not the expected ones, one a line.
        seconds: Time for all.
        host_mb: Memory of this process and its children, at the quarters of the run.
        device_mb: Memory of the GPU in use then; empty where nothing tells.
    """

    judged: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    changed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    host_mb: list[float] = field(default_factory=list)
    device_mb: list[float] = field(default_factory=list)


def long_and_empty_rows() -> Matrix:
    """Two full rows of 60,000 below 400 rows with about two entries, some of them with none."""
    short = sparse.random_array((400, 60_000), density=3e-5, rng=np.random.default_rng(5))
    full = np.random.default_rng(6).standard_normal((2, 60_000))
    a = sparse.vstack([short, sparse.csr_array(full)])
    return Matrix("long-rows", "dense-rows", canonical(a, "long-rows"))


def collection(folder: Path) -> list[Subject]:
    """Every faulty program of a folder.

    Raises:
        ValueError: There is none, or one does not say what must become of it.
    """
    found = [_subject(path) for path in sorted(folder.glob("*.cu"))]
    if not found:
        raise ValueError(f"{folder} has no .cu file; say where the faulty programs are")
    return found


def _subject(path: Path) -> Subject:
    text = path.read_text()
    head = [line for line in text.splitlines() if line.startswith(_STATUS)]
    if len(head) != 1:
        raise ValueError(f"{path}: has {len(head)} lines '{_STATUS}…'; it needs one")
    expected: dict[str, Status] = {}
    for part in head[0].removeprefix(_STATUS).split(", "):
        status, _, kind = part.partition(" on ")
        for device in [kind] if kind else ["cuda", "emulator"]:
            expected[device] = Status(status)
    return Subject(path.stem, text, expected)


def clean(evaluator: Evaluator, problem: Problem, names: str = "*") -> list[Subject]:
    """The hand-tuned programs whose name matches and that are ``ok`` on the problem."""
    found = []
    for author in (a for a in baselines() if a.answers(problem.op) and fnmatch(a.name, names)):
        answer = author.write(problem, 1)[0]
        if evaluator.evaluate(problem, answer).status is Status.OK:
            found.append(Subject(author.name, answer.text, {evaluator.facts.kind: Status.OK}))
    return found


def mixture(
    good: Sequence[Subject], faulty: Sequence[Subject], count: int, share: float, seed: int
) -> Iterator[Subject]:
    """``count`` distinct texts, a share of them faulty, all kinds in turn and in random order."""
    bad = round(count * share)
    chosen = [good[i % len(good)] for i in range(count - bad)]
    order = random.Random(seed)
    kinds = order.sample(faulty, len(faulty))
    chosen += [kinds[i % len(kinds)] for i in range(bad)]
    order.shuffle(chosen)
    for i, subject in enumerate(chosen):
        # A remark makes another program of it, which no cache knows.
        yield replace(subject, text=f"{subject.text}\n// {i}\n")


def soak(
    evaluator: Evaluator,
    problem: Problem,
    subjects: Iterable[Subject],
    count: int,
    seconds: float = math.inf,
    compilers: int = COMPILERS,
) -> Soaked:
    """Judges every program while so many next ones are compiled, until the time is over."""
    found = Soaked(lost=count)
    kind = evaluator.facts.kind
    started = time.perf_counter()
    threads = ThreadPoolExecutor(compilers)
    try:
        for subject in _compiled(evaluator, problem, subjects, threads):
            evaluation = evaluator.evaluate(problem, KernelProgram("soak", subject.text))
            _account(found, subject, evaluation, kind)
            found.judged += 1
            found.lost -= 1
            found.seconds = time.perf_counter() - started
            spent = found.seconds / seconds
            while max(found.judged / count, spent) * 4 >= len(found.host_mb) + 1 <= 4:
                found.host_mb.append(host_bytes() / 2**20)
                used = device_bytes(evaluator.facts.details.get("pci_bus_id", ""))
                found.device_mb += [] if used is None else [used / 2**20]
            if spent >= 1:
                found.lost = 0
                break
    finally:
        threads.shutdown(cancel_futures=True)
    return found


def _compiled(
    evaluator: Evaluator,
    problem: Problem,
    subjects: Iterable[Subject],
    threads: ThreadPoolExecutor,
) -> Iterator[Subject]:
    """The same subjects, each when it has been compiled."""

    def compile_one(subject: Subject) -> Subject:
        evaluator.compile_ahead([KernelProgram("soak", subject.text)], problem.dtype)
        return subject

    begun = (threads.submit(compile_one, subject) for subject in subjects)
    under_way = deque(islice(begun, AHEAD))
    while under_way:
        yield under_way.popleft().result()
        under_way += islice(begun, 1)


def _account(found: Soaked, subject: Subject, evaluation: Evaluation, kind: str) -> None:
    found.verdicts[evaluation.status] += 1
    expected = subject.expected[kind]
    if evaluation.status is not expected:
        found.changed.append(
            f"{subject.name}: {evaluation.status} instead of {expected}: {evaluation.error}"
        )


def report(undisturbed: Soaked, mixed: Soaked) -> dict[str, Any]:
    """What is printed."""
    speeds = [found.judged / found.seconds for found in (undisturbed, mixed)]
    return {
        "programs": mixed.judged,
        "lost": undisturbed.lost + mixed.lost,
        "changed": undisturbed.changed + mixed.changed,
        "verdicts": dict(sorted(mixed.verdicts.items())),
        "clean_per_s": round(speeds[0], 2),
        "mixed_per_s": round(speeds[1], 2),
        "throughput_kept": round(speeds[1] / speeds[0], 3),
        "host_mb": [round(mb, 1) for mb in mixed.host_mb],
        "device_mb": [round(mb, 1) for mb in mixed.device_mb],
        "seconds": round(undisturbed.seconds + mixed.seconds, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Soaks and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "emulator"))
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--clean", type=int, default=0, help="undisturbed ones (default: a fifth)")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="to stop after, undisturbed ones included"
    )
    parser.add_argument("--share", type=float, default=0.2, help="of faulty programs")
    parser.add_argument("--faulty", type=Path, default=Path("tests/harness/cheats"))
    parser.add_argument("--good", default="*", help="names of the baselines that take part")
    parser.add_argument("--compile-s", type=float, default=5.0)
    parser.add_argument("--run-s", type=float, default=1.5)
    parser.add_argument("--compilers", type=int, default=0, help="0 for one per core")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if not options.minutes > 0:
        parser.error(f"--minutes {options.minutes:g}: more than 0")
    if options.programs < 1:
        parser.error(f"--programs {options.programs}: at least 1")
    if not 0 <= options.share <= 1:
        parser.error(f"--share {options.share:g}: from 0 to 1")
    try:
        faulty = collection(options.faulty)
    except ValueError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as cache:
        compilers = options.compilers or COMPILERS
        settings = Settings(
            compile_s=options.compile_s,
            run_s=options.run_s,
            compilers=compilers,
            cache=Path(cache),
        )
        with Evaluator(options.device, settings) as evaluator:
            problem = Problem(Op.SPMV, long_and_empty_rows())
            good = clean(evaluator, problem, options.good)
            if not good:
                parser.error(f"--good: no baseline {options.good!r} is right on the problem")
            # Whether a time is impossible shows on larger problems only.
            told = [s for s in faulty if Status.IMPOSSIBLE_TIME not in s.expected.values()]
            few = options.clean or max(1, options.programs // 5)
            seconds = options.minutes * 60
            share = seconds * few / (few + options.programs)
            subjects = mixture(good, told, few, 0.0, 1)
            undisturbed = soak(evaluator, problem, subjects, few, share, compilers)
            subjects = mixture(good, told, options.programs, options.share, options.seed)
            rest = max(seconds - undisturbed.seconds, 1.0)
            mixed = soak(evaluator, problem, subjects, options.programs, rest, compilers)
    found = report(undisturbed, mixed)
    print(json.dumps(found, indent=1))
    return int(bool(found["lost"] or found["changed"]))


if __name__ == "__main__":
    raise SystemExit(main())
