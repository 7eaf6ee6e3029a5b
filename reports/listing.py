"""Programs with their words coloured, for whoever renders them."""

from __future__ import annotations

from collections.abc import Iterator

from pygments import lex
from pygments.lexers.c_like import CudaLexer
from pygments.token import Comment, Keyword, Name, Number, String

from reports.document import Listing

# Dark enough on white to be told apart in grey too: comments are the lightest.
_COLOURS = (
    (Comment.Preproc, "#8a3b00"),
    (Comment, "#6b6b6b"),
    (Keyword, "#00458a"),
    (Name.Builtin, "#00458a"),
    (Number, "#7a1f6b"),
    (String, "#7a1f6b"),
)
HEADER = "#8a3b00"


def coloured(listing: Listing) -> Iterator[tuple[str, str]]:
    """Pieces of the text with their colour; it is empty for ordinary text."""
    if listing.language != "cuda":
        yield listing.text, ""
        return
    for kind, piece in lex(listing.text, CudaLexer(ensurenl=False, stripnl=False)):
        if kind in Comment and piece.startswith("//!"):
            yield piece, HEADER
        else:
            yield piece, next((colour for token, colour in _COLOURS if kind in token), "")
