"""What ``python -m training rates`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from suite.problem import Op
from training.errors import ConfigError
from training.subject import Subject


@dataclass(frozen=True, kw_only=True)
class RatesConfig(Subject):
    """Whose programs are judged, on what."""

    matrices: Annotated[str, "as of --suite-matrices: sets, names, files"] = "test"
    ops: Annotated[str, "operations, with their columns"] = "spmv,spmm32,spmm128"
    samples: Annotated[int, "programs for each problem"] = 16
    temperature: Annotated[float, "at which they are drawn"] = 0.8
    pairs: Annotated[tuple[Path, ...], "folders of training pairs, to tell what is new"] = ()
    rows: Annotated[int, "of a batch; 0: 1024 on a GPU, 8 elsewhere"] = 0
    limit: Annotated[int, "tokens of a program, at most"] = 1024
    judge: Annotated[Literal["auto", "cuda", "emulator"], "what verifies"] = "auto"
    workers: Annotated[
        int, "processes that look at matrices, of which the largest take gigabytes; 0: one a core"
    ] = 8
    minutes: Annotated[
        float | None, "stop between two matrices after this long; no limit if left out"
    ] = None

    def asked(self) -> list[tuple[Op, int]]:
        """Operations with their columns.

        Raises:
            ConfigError: One is unknown.
        """
        found, wrong = [], []
        for text in self.ops.split(","):
            name = text.strip()
            columns = name.removeprefix(Op.SPMM)
            if name == Op.SPMV:
                found.append((Op.SPMV, 1))
            elif name.startswith(Op.SPMM) and columns.isdigit() and int(columns):
                found.append((Op.SPMM, int(columns)))
            else:
                wrong.append(f"ops {name!r}: spmv, or spmm and its columns, as spmm32")
        if wrong:
            raise ConfigError(wrong)
        return found

    def check(self) -> None:
        """Finds every mistake.

        Raises:
            ConfigError: Lists them.
        """
        checks = {
            f"samples {self.samples}: at least 1": self.samples >= 1,
            f"limit {self.limit}: at least 1": self.limit >= 1,
            f"rows {self.rows}: 0 or more": self.rows >= 0,
            f"workers {self.workers}: 0 or more": self.workers >= 0,
            f"temperature {self.temperature}: from 0 to 100": 0 <= self.temperature <= 100,
            f"minutes {self.minutes}: above 0": self.minutes is None or self.minutes > 0,
        }
        wrong = [*self.mistakes(), *(text for text, right in checks.items() if not right)]
        try:
            self.asked()
        except ConfigError as error:
            wrong += error.mistakes
        if wrong:
            raise ConfigError(wrong)
