"""The suite's own kernels on a GPU: compiled once a precision, prepared once each.

A verdict launches a hundred of them and more; a prepared launch packs its arguments in
microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from suite.harness.compile import Cache, Target, source_of
from suite.harness.cuda.memory import faults
from suite.problem import DType

TEXT = Path(__file__).with_name("kernels.cu").read_text()
# Parameters in the order of the text: P a pointer, Q a u64, i an int, d a double.
SIGNATURES: Mapping[str, str] = {
    "stream": "PQQid",
    "gather": "PPPQ",
    "transpose": "PPQQ",
    "digest": "PQP",
    "guards": "PPQP",
    "flush": "PQP",
    "check_vector": "iiPPPPPdddP",
    "check_matrix": "iiiPPPPPdddP",
    "check_long": "PiPPPPPdddP",
}


def source(dtype: DType) -> str:
    """What is compiled for a precision."""
    wide = "#define WIDE\n" if dtype is DType.FLOAT64 else ""
    return source_of(wide + TEXT, {}, dtype)


class Kernels:
    """The kernels on one device.

    Args:
        driver: ``pycuda.driver`` with a current context.
        cache: Compiled programs.
        arch: Architecture to compile for.
        stream: The pycuda stream to launch on.
    """

    def __init__(self, driver: Any, cache: Cache, arch: str, stream: Any) -> None:
        self._driver, self._cache, self._arch, self._stream = driver, cache, arch, stream
        self._prepared: dict[np.dtype, dict[str, Any]] = {}

    def launch(
        self, kernel: str, dtype: np.dtype, grid: tuple[int, int], block: int, *args: float
    ) -> None:
        """Enqueues a kernel.

        Args:
            kernel: Its name.
            dtype: Its precision.
            grid: Blocks, x and y.
            block: Threads of a block.
            args: As many as its signature has, and of those types: anything else is refused.

        Raises:
            DeviceFault: The driver or the signature refused it.
        """
        function = self._functions(dtype)[kernel]
        with faults():
            function.prepared_async_call((*grid, 1), (block, 1, 1), self._stream, *args)

    def _functions(self, dtype: np.dtype) -> Mapping[str, Any]:
        if dtype not in self._prepared:
            target = Target(self._arch, DType(dtype.name))
            cubin = self._cache.compile(source(target.dtype), target).cubin
            module = self._driver.module_from_buffer(cubin)
            self._prepared[dtype] = {
                name: module.get_function(name).prepare(signature)
                for name, signature in SIGNATURES.items()
            }
        return self._prepared[dtype]
