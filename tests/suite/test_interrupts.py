"""Of an interrupt the place is shown, and the way there only where it is asked for."""

from types import SimpleNamespace

import pytest

from suite.interrupts import BriefInterrupt


def caught() -> pytest.ExceptionInfo[BaseException]:
    def inner() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as found:
        inner()
    return found


@pytest.mark.parametrize(("full", "shown"), [(False, ["inner"]), (True, ["caught", "inner"])])
def test_the_last_place_is_left_or_everything(full: bool, shown: list[str]) -> None:
    found = caught()
    config = SimpleNamespace(option=SimpleNamespace(fulltrace=full))
    BriefInterrupt(config).pytest_keyboard_interrupt(found)
    assert [entry.name for entry in found.traceback] == shown


def test_an_interrupt_in_what_is_hidden_is_left_as_it_is() -> None:
    def hidden() -> None:
        __tracebackhide__ = True
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as found:
        hidden()
    found.traceback = found.traceback[-1:]
    config = SimpleNamespace(option=SimpleNamespace(fulltrace=False))
    BriefInterrupt(config).pytest_keyboard_interrupt(found)
    assert [entry.name for entry in found.traceback] == ["hidden"]
