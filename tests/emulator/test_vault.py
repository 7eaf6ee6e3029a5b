"""What is remembered is what was computed, and nobody can read it in between."""

import ctypes
import os
import signal
from collections.abc import Hashable

import numpy as np
import pytest

from suite.harness.emulator.vault import Vault


class Counted:
    """Two arrays that depend on the key, and how often they were made."""

    def __init__(self, vault: Vault, size: int = 100) -> None:
        self.vault, self.size, self.made = vault, size, 0

    def read(self, key: int) -> tuple[list[float], list[int]]:
        def make() -> tuple[np.ndarray, ...]:
            self.made += 1
            return np.full(self.size, key / 2), np.full((1, 3), key, np.int32)

        with self.vault.open(key, make) as (halves, whole):
            return halves.tolist(), whole.tolist()


def test_arrays_are_made_once_and_come_back_as_they_were() -> None:
    counted = Counted(Vault(1 << 20))
    first = [counted.read(key) for key in (1, 2)]
    assert [counted.read(key) for key in (1, 2)] == first
    assert first[1] == ([1.0] * 100, [[2, 2, 2]])
    assert counted.made == 2


def test_the_oldest_go_when_there_is_no_room() -> None:
    counted = Counted(Vault(4 * 960))
    for key in (1, 2, 3, 4, 5):
        counted.read(key)
    counted.read(5)
    assert counted.made == 5
    counted.read(1)
    assert counted.made == 6


def test_what_takes_too_much_is_computed_each_time() -> None:
    counted = Counted(Vault(4 * 895))
    assert counted.read(1) == counted.read(1)
    assert counted.made == 2


def test_what_was_cleared_is_made_anew() -> None:
    counted = Counted(Vault(1 << 20))
    counted.read(1)
    counted.vault.clear()
    counted.read(1)
    assert counted.made == 2


@pytest.mark.parametrize("key", [1, "empty"])
def test_empty_arrays_are_remembered_too(key: Hashable) -> None:
    vault = Vault(1 << 20)
    for _ in range(2):
        with vault.open(key, lambda: (np.zeros((0, 3)),)) as (nothing,):
            assert nothing.shape == (0, 3)


@pytest.mark.parametrize(("inside", "ending"), [(True, 0), (False, -signal.SIGSEGV)])
def test_what_is_remembered_can_be_read_inside_only(inside: bool, ending: int) -> None:
    vault = Vault(1 << 20)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        with vault.open(1, lambda: (np.ones(1000),)) as (ones,):
            address = ones.ctypes.data
            if inside:
                ctypes.string_at(address, 8)
                os._exit(0)
        ctypes.string_at(address, 8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == ending


def test_pages_that_cannot_be_locked_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(Vault(1 << 20))
    counted.read(1)
    monkeypatch.setattr("suite.harness.emulator.vault._NOTHING", -1)  # no access the kernel knows
    with pytest.raises(OSError, match="cannot be locked"):
        counted.read(1)
