"""What pytest does when a campaign is interrupted, without what takes it half a second."""

from __future__ import annotations

import pytest


class BriefInterrupt:
    """Leaves pytest the place that it shows: the way there it would read, and show to nobody.

    Args:
        config: Of the run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._wanted = config.option.fulltrace

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Shortens the traceback to its last visible entry, unless all of it is to be shown."""
        place = excinfo.traceback.filter(excinfo)[-1:]
        if place and not self._wanted:
            excinfo.traceback = place
