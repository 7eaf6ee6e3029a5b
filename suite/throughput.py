"""How fast the evaluation path itself is: ``python -m suite.throughput``.

Two figures that training depends on: programs compiled a second on all cores, and wall time of one
evaluation of a program on a resident problem, compilation excluded. Prints one JSON object. Left
out on purpose: how fast any program is; that is what the suite measures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from suite.baselines.files import baselines
from suite.evaluation import Status
from suite.harness.evaluate import Evaluator, Settings
from suite.matrices.sets import select
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram

# A textbook kernel, and one with shuffles and unrolled loops.
SMALL_PROGRAMS = ("csr_scalar", "csr_vector-lanes8")


def compile_rate(device: str, author: str, programs: int) -> dict[str, float]:
    """Compiles distinct small programs with one compiler per core and an empty cache.

    Args:
        device: Where programs would run; decides the architecture.
        author: The SpMV baseline whose text is compiled, each time with another comment.
        programs: How many.

    Returns:
        Programs a second, how many compilers took part, and characters of a program.
    """
    text = next(a for a in baselines() if a.name == author).texts["spmv"]
    answers = [KernelProgram("throughput", f"{text}\n// {i}\n") for i in range(programs)]
    compilers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(compilers=0, cache=Path(folder))
        with Evaluator(device, settings) as evaluator:
            evaluator.compile_ahead(answers[: 2 * compilers], DType.FLOAT32)  # start them all
            rest = answers[2 * compilers :]
            started = time.perf_counter()
            evaluator.compile_ahead(rest, DType.FLOAT32)
            elapsed = time.perf_counter() - started
    return {
        "compilers": float(compilers),
        "characters": float(len(text)),
        "programs_per_s": len(rest) / elapsed,
    }


def evaluation_wall(device: str, matrix: str, repeats: int) -> dict[str, dict[str, float]]:
    """Wall time of evaluations whose matrix, format and binary are already there.

    Args:
        device: Where programs run.
        matrix: Name of the matrix.
        repeats: Evaluations of each baseline.

    Returns:
        For each operation: milliseconds at the median and at the 95th percentile over every
        evaluation, and the slowest baseline's median.
    """
    (spec,) = select(matrix)
    built = spec.build()
    result: dict[str, dict[str, float]] = {}
    with Evaluator(device) as evaluator:
        for problem in (Problem(Op.SPMV, built), Problem(Op.SPMM, built, 32)):
            walls: dict[str, list[float]] = {}
            for author in (a for a in baselines() if a.answers(problem.op)):
                answer = author.write(problem, 1)[0]
                if evaluator.evaluate(problem, answer).status is Status.OK:
                    found = [evaluator.evaluate(problem, answer).wall_ms for _ in range(repeats)]
                    walls[author.name] = [wall for wall in found if wall is not None]
            every = sorted(wall for found in walls.values() for wall in found)
            slowest = max(walls, key=lambda name: statistics.median(walls[name]))
            result[problem.label] = {
                "evaluations": float(len(every)),
                "median_ms": statistics.median(every),
                "p95_ms": every[int(0.95 * (len(every) - 1))],
                f"slowest_{slowest}_ms": statistics.median(walls[slowest]),
            }
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "emulator"))
    parser.add_argument(
        "--matrix", default="uniform-16-4k", help="any name that --suite-matrices takes"
    )
    parser.add_argument("--programs", type=int, default=1000, help="programs to compile")
    parser.add_argument("--repeats", type=int, default=5, help="evaluations of each baseline")
    options = parser.parse_args()
    figures = {
        "matrix": options.matrix,
        "compile": {
            name: compile_rate(options.device, name, options.programs) for name in SMALL_PROGRAMS
        },
        "evaluation_wall": evaluation_wall(options.device, options.matrix, options.repeats),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
