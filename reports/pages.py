"""Pages that are filled: where a table or a figure has no room, a later one may go before it."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Literal

from reportlab.platypus import BaseDocTemplate, FrameBreak, KeepTogether
from reportlab.platypus import Table as Grid

FEWEST = 4  # rows that a broken table has on its last page


class Together(KeepTogether):
    """Parts that stay on one page.

    Attributes:
        parts: What is kept together.
        kind: Those of one kind are numbered, and stay in their order; empty where nothing may
            change places with it.
    """

    def __init__(self, parts: list[Any], kind: Literal["", "table", "figure"] = "") -> None:
        super().__init__(parts)
        self.parts, self.kind = parts, kind


class Broken(Grid):
    """A table that may be broken between rows, and leaves no few of them alone on its last page."""

    def split(self, width: float, height: float) -> list[Any]:
        """The part that fits, and the rest; nothing where none of it fits."""
        parts: list[Any] = super().split(width, height)
        if len(parts) != 2:
            return parts
        missing = FEWEST + self.repeatRows - len(parts[1]._cellvalues)
        if missing <= 0:
            return parts
        moved = sum(parts[0]._rowHeights[-missing:])
        parts = super().split(width, sum(parts[0]._rowHeights) - moved + 0.01)
        return [parts[0], FrameBreak(), parts[1]] if len(parts) == 2 else []


class Pages(BaseDocTemplate):
    """Sets a story; within a section a figure may pass a table that does not fit, or a table it."""

    def filterFlowables(self, flowables: list[Any]) -> None:  # noqa: N802  # ReportLab calls it so
        """Puts first what still fits on the page, where the first one does not."""
        first = flowables[0]
        if not isinstance(first, Together) or not first.kind or self._fits(first):
            return
        passed = {first.kind}
        near = takewhile(lambda part: isinstance(part, Together) and part.kind, flowables[1:])
        for at, part in enumerate(near, 1):
            if part.kind not in passed and self._fits(part):
                flowables.insert(0, flowables.pop(at))
                return
            passed.add(part.kind)

    def _fits(self, part: Together) -> bool:
        frame = self.frame
        height = sum(
            piece.wrapOn(self.canv, frame._aW, frame._aH)[1] + piece.getSpaceAfter()
            for piece in part.parts
        )
        return bool(height <= frame._y - frame._y1p)
