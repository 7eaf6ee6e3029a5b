"""What an evaluation may take, and how precisely it measures: every limit, with its default."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from suite.harness.bench import MAX_WORKSPACE
from suite.harness.compile import OUTPUT_BYTES
from suite.harness.parse import MAX_TEXT
from suite.harness.timing import Precision


@dataclass(frozen=True)
class Settings:
    """Limits and precision of an evaluation.

    Attributes:
        precision: How precisely to time; None for verdicts without times.
        compile_s: Seconds that one compilation may take.
        run_s: Seconds that verifying and timing one program may take.
        together: Programs that the emulator judges at a time; as they share the processors, each is
            given so many times ``run_s``.
        load_s: Seconds that loading or converting a matrix may take (never the program's fault).
        library_s: Seconds for one library routine, which may try many algorithms.
        sanitizer: What repeats the verification of right programs, with all its tools; None for
            nothing.
        sanitize_s: Seconds for each of them.
        source_chars: Length of a program's text.
        compiler_bytes: Address space of a compiler; an ordinary program takes under 1 GB.
        output_bytes: Machine code of one program.
        workspace_bytes: Scratch memory and derived arrays of one program; a quarter of the device's
            memory where that is less.
        compilers: Compiler processes; 0 for one per core.
        converters: Processes that convert matrices ahead of their programs; 0 for one per core.
        spares: Workers that start in the background once a GPU's was lost, to replace the next.
        ordinal: Which GPU.
        exclusive: Whether nobody else may use the GPU for as long as the evaluator is open, so that
            its owner may compute there between measurements.
        cache: Folder for compiled programs.
    """

    precision: Precision | None = field(default_factory=Precision)
    compile_s: float = 30.0
    run_s: float = 20.0
    together: int = 1
    load_s: float = 600.0
    library_s: float = 120.0
    sanitizer: Path | None = None
    sanitize_s: float = 300.0
    source_chars: int = MAX_TEXT
    compiler_bytes: int = 2 << 30
    output_bytes: int = OUTPUT_BYTES
    workspace_bytes: int = MAX_WORKSPACE
    compilers: int = 1
    converters: int = 0
    spares: int = 2
    ordinal: int = 0
    exclusive: bool = False
    cache: Path = field(default_factory=lambda: Path(platformdirs.user_cache_dir("sparserl-bench")))
