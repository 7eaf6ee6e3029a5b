"""Device memory of one owner that is watched: a change by anybody else is noticed.

Every array has a digest from before any program ran. Digests are asked for together, because each
request is a round trip to the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from suite.harness.device import Buffer, Device
from suite.harness.judge import OWN


@dataclass(frozen=True)
class Watched:
    """A buffer and what it is to hold.

    Attributes:
        name: What messages call it.
        buffer: Where it lies.
        digest: Of the right contents.
    """

    name: str
    buffer: Buffer
    digest: int


def changed(device: Device, watched: Iterable[Watched]) -> list[str]:
    """Names of those that hold something else by now, in order; one request for all."""
    watched = list(watched)
    found = device.digests([one.buffer for one in watched])
    return [one.name for one, digest in zip(watched, found, strict=True) if digest != one.digest]


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
        self.note([name])
        return self._buffers[name]

    def allocate(self, name: str, nbytes: int) -> Buffer:
        """Keeps room for contents that come later; ``note`` them then."""
        self._buffers[name] = self._device.allocate(nbytes)
        return self._buffers[name]

    def note(self, names: Iterable[str], version: int = OWN) -> None:
        """Takes what buffers hold as right, the first time for each version."""
        new = [name for name in names if (name, version) not in self._digests]
        found = self._device.digests([self._buffers[name] for name in new])
        self._digests |= {(name, version): one for name, one in zip(new, found, strict=True)}

    def watched(self, names: Iterable[str], version: int = OWN) -> list[Watched]:
        """The buffers with what was noted for the version."""
        return [Watched(n, self._buffers[n], self._digests[n, version]) for n in names]

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
        self._digests: list[int] = []

    def note(self) -> None:
        """Takes what the arrays hold as right: they were just made."""
        self._digests = self._device.digests(list(self.buffers.values()))

    def watched(self) -> list[Watched]:
        """The arrays with what was noted."""
        pairs = zip(self.buffers.items(), self._digests, strict=True)
        return [Watched(name, buffer, digest) for (name, buffer), digest in pairs]
