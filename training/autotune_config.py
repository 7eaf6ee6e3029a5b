"""What ``python -m training autotune`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from training.errors import ConfigError

BUDGETS = (1, 8, 64, 1000)  # measurements that reports compare at


@dataclass(frozen=True)
class AutotuneConfig:
    """What to search, and for how long."""

    out: Annotated[Path, "folder of the results: a file for each problem"]
    matrices: Annotated[str, "as --suite-matrices: sets, names, files"] = "test"
    ops: Annotated[str, "operations: spmv, spmm, or both with a comma"] = "spmv,spmm"
    columns: Annotated[str, "dense columns of SpMM"] = "32,128"
    search: Annotated[Literal["random", "tpe", "evolution"], "how programs are proposed"] = "tpe"
    measurements: Annotated[int, "programs measured for each problem"] = 64
    batch: Annotated[int, "programs that are proposed and compiled at a time"] = 16
    seed: Annotated[int, "of the proposals"] = 0
    start: Annotated[
        Path | None,
        "Parquet file with columns matrix, op, n, text: programs, of a model say, near which tpe"
        " and evolution start",
    ] = None
    baselines: Annotated[
        Literal["on", "off"], "the suite's hand-tuned programs are measured too, for comparison"
    ] = "off"
    device: Annotated[Literal["auto", "cuda", "emulator"], "what judges programs"] = "auto"
    known: Annotated[
        Path | None, "file of what is known of programs, may be shared; in OUT if left out"
    ] = None
    run_s: Annotated[float, "seconds that a program may take to be verified and timed"] = 2.0
    budget_ms: Annotated[float, "device milliseconds for one time"] = 4.0
    minutes: Annotated[
        float | None, "stop between two batches after this long; no limit if left out"
    ] = None

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        wrong = [
            f"--{name} {getattr(self, name)}: at least 1"
            for name in ("measurements", "batch")
            if getattr(self, name) < 1
        ]
        wrong += [
            f"--{name.replace('_', '-')} {getattr(self, name)}: above 0"
            for name in ("run_s", "budget_ms", "minutes")
            if getattr(self, name) is not None and getattr(self, name) <= 0
        ]
        if self.start is not None and not self.start.is_file():
            wrong.append(f"--start {self.start}: there is no such file")
        if not set(self.ops.split(",")) <= {"spmv", "spmm"}:
            wrong.append(f"--ops {self.ops}: spmv, spmm or both")
        if not all(part.isdigit() and int(part) > 0 for part in self.columns.split(",")):
            wrong.append(f"--columns {self.columns}: numbers above 0 with commas")
        if wrong:
            raise ConfigError(wrong)
