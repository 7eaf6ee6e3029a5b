"""The answer of an author: the text of a CUDA program, or the name of a library routine.

What the text may say is in ``docs/program.md``; ``suite.harness.parse`` reads it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelProgram:
    """Header lines and CUDA device code, as an author wrote them.

    Attributes:
        author: Who wrote it; a name without spaces.
        text: The whole text, untouched.
        sample: Which of several answers to the same problem this is, from 0.
        unfinished: Why the author came to no end, in one line; what is not finished is not parsed.
    """

    author: str
    text: str
    sample: int = 0
    unfinished: str = ""

    @property
    def digest(self) -> str:
        """Hex digest that identifies the text."""
        return hashlib.blake2b(
            self.text.encode("utf-8", "surrogatepass"), digest_size=8
        ).hexdigest()


@dataclass(frozen=True)
class LibraryCall:
    """A vendor routine that stands for a program: measured the same way, but it has no text.

    Attributes:
        author: The routine's name: ``cusparse`` or ``cusparse_best``.
    """

    author: str
    sample: int = 0
    text: str = ""

    @property
    def digest(self) -> str:
        """The routine's name, which is all there is to identify."""
        return self.author


Answer = KernelProgram | LibraryCall
