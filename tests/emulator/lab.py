"""Runs small kernels: arrays and integers in by name, arrays out by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from suite.evaluation import Resources, Status
from suite.harness.device import Compiled, DeviceFault
from suite.harness.emulator.device import EmulatorDevice
from suite.harness.emulator.faults import FAULT_EXIT, install_fault_handler, parse_fault
from suite.harness.plan import BufferArg, Launch, Plan, ScalarArg

PRELUDE = 'typedef float real; typedef float2 real2; typedef float4 real4;\n#line 1 "program.cu"\n'
PROGRAMS = Path(__file__).parent / "programs"


def compiled(code: str, **resources: Resources) -> Compiled:
    return Compiled(b"", PRELUDE + code, "", resources, 0.0)


def kernel(parameters: str, body: str) -> str:
    return f'extern "C" __global__ void k({parameters}) {{ {body} }}'


def program(name: str) -> str:
    return (PROGRAMS / name).read_text()


@dataclass(frozen=True)
class Lab:
    """One kernel launch at a time on an emulator. Arguments are arrays and integers, by name.

    Every program runs once: as in its first run, or as in its second, which looks for races.
    """

    device: EmulatorDevice
    racing: bool = False

    def run(
        self,
        code: str,
        args: Mapping[str, Any],
        *,
        name: str = "k",
        grid: int | tuple[int, int, int] = 1,
        block: int | tuple[int, int, int] = 32,
        shared: int = 0,
        times: int = 1,
    ) -> dict[str, np.ndarray]:
        """Every array as the kernel left it."""
        arrays = {n: a for n, a in args.items() if isinstance(a, np.ndarray)}
        buffers = {n: self.device.upload(a) for n, a in arrays.items()}
        operands = tuple(
            ScalarArg(a, "int") if isinstance(a, int) else BufferArg(n) for n, a in args.items()
        )
        launch = Launch(name, _three(grid), _three(block), shared, operands)
        plan = Plan("y", False, (), (launch,) * times, tuple(buffers))
        loaded = self.device.load(compiled(code), plan, buffers)
        loaded.runs = int(self.racing)
        try:
            loaded.run()
            return {n: self.device.download(b, arrays[n].dtype) for n, b in buffers.items()}
        finally:
            loaded.close()
            for buffer in buffers.values():
                self.device.free(buffer)

    def fault(self, attempt: Callable[[], object]) -> tuple[Status, str]:
        """How an attempt ends in a process of its own; OK where it ends well."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            install_fault_handler(writer)
            try:
                attempt()
                os._exit(0)
            except DeviceFault as fault:
                os.write(writer, f"{fault.status} {fault}".encode())
                os._exit(1)
            finally:
                os._exit(2)
        os.close(writer)
        said = b"".join(iter(lambda: os.read(reader, 4096), b""))
        os.close(reader)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return Status.OK, ""
        if code == 1:
            status, _, message = said.decode().partition(" ")
            return Status(status), message
        assert code == FAULT_EXIT, f"ended with {code}, said {said!r}"
        return parse_fault(said)

    def fault_of(self, code: str, args: Mapping[str, Any], **how: Any) -> tuple[Status, str]:
        return self.fault(lambda: self.run(code, args, **how))


def _three(size: int | tuple[int, int, int]) -> tuple[int, int, int]:
    return (size, 1, 1) if isinstance(size, int) else size


def ints(count: int) -> np.ndarray:
    return np.full(count, -1, np.int32)


def floats(count: int) -> np.ndarray:
    return np.full(count, np.nan, np.float32)
