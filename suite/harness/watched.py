"""Device memory of one owner that is watched: a change by anybody else is noticed.

Every array has a digest from before any program ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from suite.harness.device import Buffer, Device
from suite.harness.judge import OWN


class Memory:
    """The buffers of one owner: freed together, and watched for changes."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers: dict[str, Buffer] = {}
        self._digests: dict[tuple[str, int], int] = {}

    def __getitem__(self, name: str) -> Buffer:
        return self._buffers[name]

    def upload(self, name: str, array: np.ndarray) -> Buffer:
        """Keeps an array that is not to change."""
        self._buffers[name] = self._device.upload(array)
        self.note(name)
        return self._buffers[name]

    def allocate(self, name: str, nbytes: int) -> Buffer:
        """Keeps room for contents that come later; ``note`` them then."""
        self._buffers[name] = self._device.allocate(nbytes)
        return self._buffers[name]

    def note(self, name: str, version: int = OWN) -> None:
        """Takes the digest of what a buffer holds as right, the first time for each version."""
        if (name, version) not in self._digests:
            self._digests[name, version] = self._device.digest(self._buffers[name])

    def changed(self, names: Iterable[str], version: int = OWN) -> list[str]:
        """Which of the buffers do not hold what was noted for the version."""
        return [
            name
            for name in names
            if self._device.digest(self._buffers[name]) != self._digests[name, version]
        ]

    def free(self) -> None:
        """Gives everything back."""
        while self._buffers:
            self._device.free(self._buffers.popitem()[1])
        self._digests.clear()


class Derived:
    """Arrays that a program has made of the matrix; watched while it multiplies.

    Attributes:
        buffers: By name.
    """

    def __init__(self, device: Device, buffers: Mapping[str, Buffer]) -> None:
        self._device = device
        self.buffers = buffers
        self._digests: dict[str, int] = {}

    def note(self) -> None:
        """Takes what the arrays hold as right: they were just made."""
        self._digests = {n: self._device.digest(buffer) for n, buffer in self.buffers.items()}

    def changed(self) -> list[str]:
        """Which of them hold something else by now."""
        return [
            name
            for name, buffer in self.buffers.items()
            if self._device.digest(buffer) != self._digests[name]
        ]
