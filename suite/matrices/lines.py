"""Lines of a file that may be damaged, be endless, or end its lines in any of three ways."""

from __future__ import annotations

import re
from typing import BinaryIO, NoReturn

from suite.matrices.base import MatrixError

BLOCK_BYTES = 1 << 22  # also the longest line that is read
EMPTY = re.compile(rb"(?:[ \t]*+(?:%[^\n]*+)?\n)*+")  # lines that are blank or comments


class Lines:
    """Lines of a byte stream, one at a time or in blocks, whatever their ends (LF, CRLF or CR).

    Attributes:
        name: Named in errors.
        line: Number of the next line, from 1.
        taken: Bytes read so far.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self.line = 1
        self.taken = 0
        self._stream = stream
        self._rest = b""
        self._after_cr = False
        self._ended = False

    def refuse(self, line: int, what: str) -> NoReturn:
        """Raises a ``MatrixError`` that names the file and the line."""
        raise MatrixError(f"{self.name}, line {line}: {what}")

    def _fill(self) -> None:
        raw = self._stream.read(BLOCK_BYTES)
        self.taken += len(raw)
        if not raw:
            self._ended = True
            if self._rest and not self._rest.endswith(b"\n"):
                self._rest += b"\n"
            return
        after_cr, self._after_cr = self._after_cr, raw.endswith(b"\r")
        if after_cr and raw.startswith(b"\n"):
            raw = raw[1:]
        if b"\r" in raw:
            raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._rest += raw

    def skip_empty(self) -> bool:
        """Passes over blank lines and comments of what is in memory; whether there were any.

        A file may have millions of them, so they are not looked at one by one.
        """
        end = EMPTY.match(self._rest).end()  # type: ignore[union-attr]  # it may match nothing
        self.line += self._rest.count(b"\n", 0, end)
        self._rest = self._rest[end:]
        return end > 0

    def readline(self) -> bytes:
        """The next line with its end; empty at the end of the file."""
        while b"\n" not in self._rest and not self._ended:
            self._too_long()
            self._fill()
        end = self._rest.find(b"\n") + 1
        line, self._rest = self._rest[:end], self._rest[end:]
        self.line += 1
        return line

    def block(self) -> bytes:
        """The next whole lines; empty at the end of the file. ``line`` stays at the first."""
        if not self._rest:
            self._fill()
        while b"\n" not in self._rest and not self._ended:
            self._too_long()
            self._fill()
        end = self._rest.rfind(b"\n") + 1
        block, self._rest = self._rest[:end], self._rest[end:]
        return block

    def _too_long(self) -> None:
        if len(self._rest) > BLOCK_BYTES:
            self.refuse(
                self.line, f"longer than {BLOCK_BYTES} bytes; this is not a Matrix Market file"
            )
