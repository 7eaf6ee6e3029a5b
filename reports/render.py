"""Drawings as files, each drawn once for each kind of file."""

from __future__ import annotations

import io
from typing import Literal

from matplotlib.figure import Figure as Drawing

from reports.theme import styled

# Same drawing, same bytes.
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}


def rendered(drawing: Drawing, kind: Literal["pdf", "svg", "png"]) -> bytes:
    """The drawing as a PDF page of its size, as SVG, or as pixels."""
    stream = io.BytesIO()
    with styled():
        engine = drawing.get_layout_engine()
        if engine is not None:  # finding places takes most of the time, and is done once
            engine.execute(drawing)
            drawing.set_layout_engine(None)
        drawing.savefig(stream, format=kind, metadata=_METADATA[kind])
    return stream.getvalue()
