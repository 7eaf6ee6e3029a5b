"""A loaded program with its arguments packed: the CUDA device's ``Executable``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from suite.evaluation import Status
from suite.harness.cuda.memory import faults, pointer
from suite.harness.device import Buffer, DeviceFault
from suite.harness.plan import Launch, Plan, ScalarArg

DEFAULT_SHARED = 48 * 1024  # shared memory that needs no asking for
_LETTERS = {"int": "i", "unsigned int": "I", "long long": "q", "unsigned long long": "Q"}


class Program:
    """A program on a GPU.

    Args:
        module: A pycuda module.
        plan: What one run does.
        buffers: Every buffer that the plan names.
        stream: The pycuda stream to run on.
        shared_limit: Bytes of shared memory that a block may use.
        fill: Sets every byte of a buffer, on the same stream.

    Raises:
        DeviceFault: ``load_error`` when a launch asks for more than the device has.
    """

    def __init__(
        self,
        module: Any,
        plan: Plan,
        buffers: Mapping[str, Buffer],
        stream: Any,
        shared_limit: int,
        fill: Callable[[Buffer, int], None],
    ) -> None:
        scratch = [w.name for w in plan.workspaces if w.zero]
        self._cleared = [buffers[name] for name in scratch + [plan.output] * plan.init_zero]
        self._cleared_once = [
            buffers[name] for name in scratch + [a.name for a in plan.derived if a.zero]
        ]
        self._fill, self._stream = fill, stream
        most: dict[str, int] = {}  # dynamic shared memory that any launch of a kernel asks for
        for launch in plan.kernels:
            most[launch.kernel] = max(launch.shared_bytes, most.get(launch.kernel, 0))

        def loaded(launches: Iterable[Launch]) -> list[tuple[Any, Launch, list[int]]]:
            return [
                (
                    _function(module, launch, most[launch.kernel], shared_limit),
                    launch,
                    _values(launch, buffers),
                )
                for launch in launches
                if not launch.empty
            ]

        self._prepares, self._launches = loaded(plan.prepares), loaded(plan.launches)

    def prepare(self) -> None:
        """Enqueues what fills the derived arrays."""
        self._enqueue(self._cleared_once, self._prepares)

    def run(self) -> None:
        """Enqueues clears and launches."""
        self._enqueue(self._cleared, self._launches)

    def _enqueue(
        self, cleared: Iterable[Buffer], launches: Iterable[tuple[Any, Launch, list[int]]]
    ) -> None:
        for buffer in cleared:
            self._fill(buffer, 0)
        with faults(Status.LOAD_ERROR):
            for function, launch, values in launches:
                function.prepared_async_call(
                    launch.grid,
                    launch.block,
                    self._stream,
                    *values,
                    shared_size=launch.shared_bytes,
                )

    def refresh(self) -> None:
        """Nothing: a program reads the buffers themselves."""

    def collect(self) -> None:
        """Nothing: a program writes the output itself."""

    def close(self) -> None:
        """Lets the module go; pycuda unloads it with its last function."""
        self._prepares, self._launches = [], []


def _function(module: Any, launch: Launch, dynamic: int, shared_limit: int) -> Any:
    import pycuda.driver as driver

    function = module.get_function(launch.kernel)
    attribute = driver.function_attribute
    shared = function.get_attribute(attribute.SHARED_SIZE_BYTES) + dynamic
    if shared > shared_limit:
        raise DeviceFault(
            Status.LOAD_ERROR,
            f"kernel {launch.kernel} wants {shared:,} bytes of shared memory;"
            f" a block has {shared_limit:,}",
        )
    allowed = function.get_attribute(attribute.MAX_THREADS_PER_BLOCK)
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > allowed:
        raise DeviceFault(
            Status.LOAD_ERROR,
            f"kernel {launch.kernel} is launched with {threads} threads a block;"
            f" its registers allow {allowed}",
        )
    if shared > DEFAULT_SHARED:
        function.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)
    letters = [_LETTERS[a.ctype] if isinstance(a, ScalarArg) else "P" for a in launch.args]
    function.prepare("".join(letters))
    return function


def _values(launch: Launch, buffers: Mapping[str, Buffer]) -> list[int]:
    return [
        arg.value if isinstance(arg, ScalarArg) else pointer(buffers[arg.name])
        for arg in launch.args
    ]
