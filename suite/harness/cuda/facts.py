"""What a GPU is, for the record."""

from __future__ import annotations

from typing import Any

from suite.harness.compile import architecture, compiler_version, supported_architectures
from suite.harness.device import DeviceFacts


def facts(driver: Any, device: Any) -> DeviceFacts:
    """Facts of a pycuda device, clocks as found."""
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
            **_management(device.pci_bus_id()),
        },
    )


def _cuda_version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


def _management(bus_id: str) -> dict[str, str]:
    """Driver and clocks as found; empty where the management library is not there."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)
        return {
            "driver": str(pynvml.nvmlSystemGetDriverVersion()),
            "sm_clock_mhz": str(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "memory_clock_mhz": str(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            "sm_clock_max_mhz": str(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "power_limit_w": str(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) // 1000),
            "temperature_c": str(
                pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
            ),
        }
    except Exception:  # optional facts: any failure means that they are not known
        return {}
