"""What the emulated GPU refuses to launch: the limits of sm_90."""

from __future__ import annotations

from suite.evaluation import Resources
from suite.harness.emulator.build import SHARED_BYTES
from suite.harness.plan import MAX_BLOCK, MAX_GRID, MAX_THREADS, Launch

STATIC_SHARED_BYTES = 48 << 10
REGISTERS = 65536  # of a block
_REGISTER_UNIT = 256  # given to warps in multiples of


def refusal(launch: Launch, resources: Resources) -> str:
    """Why the launch cannot be, with the limit; empty where it can.

    Args:
        launch: A launch with a nonempty grid.
        resources: What the GPU's compiler gave the kernel.
    """
    static, dynamic = resources.shared_bytes, launch.shared_bytes
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > MAX_THREADS or threads < 1:
        return f"a block of {threads} threads; it may have 1 to {MAX_THREADS}"
    for axis, size, limit in zip("xyz", launch.block, MAX_BLOCK, strict=True):
        if size > limit:
            return f"a block of {size} threads along {axis}; at most {limit}"
    for axis, size, limit in zip("xyz", launch.grid, MAX_GRID, strict=True):
        if size > limit:
            return f"a grid of {size} blocks along {axis}; at most {limit}"
    if static > STATIC_SHARED_BYTES:
        return f"{static} bytes of static shared memory; at most {STATIC_SHARED_BYTES}"
    if static + dynamic > SHARED_BYTES:
        return f"{static + dynamic} bytes of shared memory; at most {SHARED_BYTES}"
    warps = -(-threads // 32)
    registers = warps * -(-resources.registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    if registers > REGISTERS:
        return (
            f"{registers} registers in a block ({resources.registers} a thread);"
            f" at most {REGISTERS}: use smaller blocks"
        )
    return ""
