"""The process that a sanitizer's tool watches: verifies one program and writes what it found."""

from __future__ import annotations

import json
import pickle
import signal
import sys
from pathlib import Path

from suite.harness import services
from suite.harness.bench import Bench
from suite.harness.sanitize import Request


def main(asked: Path, answer: Path) -> None:
    """Verifies what the file ``asked`` holds; its author is the suite itself."""
    request = pickle.loads(asked.read_bytes())
    assert isinstance(request, Request)
    bench = getattr(services, request.service)(**request.arguments)
    assert isinstance(bench, Bench)
    bench.hold(request.ref)
    bench.prepare(request.ref.key, request.format)
    verdict = bench.judge_program(
        request.ref.key, request.format, request.plan, request.compiled, None
    )
    answer.write_text(json.dumps({"status": verdict.status, "error": verdict.error}))


if __name__ == "__main__":
    # Not tied to its parent: a tool starts it from a thread of its own, which ends at once.
    signal.alarm(int(sys.argv[3]))
    main(Path(sys.argv[1]), Path(sys.argv[2]))
