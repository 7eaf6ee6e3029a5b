"""What a GPU is, for the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suite.harness.compile import architecture, compiler_version, supported_architectures
from suite.harness.device import DeviceFacts


def facts(driver: Any, device: Any, found: Mapping[str, str]) -> DeviceFacts:
    """Facts of a pycuda device; ``found`` is what its ``Witness`` adds."""
    attribute = driver.device_attribute
    major, minor = device.compute_capability()
    return DeviceFacts(
        kind="cuda",
        name=device.name(),
        arch=architecture(10 * major + minor, supported_architectures()),
        multiprocessors=device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
        memory_bytes=device.total_memory(),
        shared_bytes=device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        l2_bytes=device.get_attribute(attribute.L2_CACHE_SIZE),
        details={
            "driver_cuda": ".".join(map(str, _cuda_version(driver.get_driver_version()))),
            "compiler": compiler_version(),
            "pci_bus_id": device.pci_bus_id(),
            **found,
        },
    )


def _cuda_version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10
