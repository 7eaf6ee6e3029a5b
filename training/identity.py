"""When two programs are one: the same machine code, launched and fed the same way.

Names, comments and ways of writing that the compiler sees through make another text and no other
program. What the header says is compared as it stands, with constants put in and the author's names
replaced by their order; so programs of one identity behave alike, and some that behave alike have
two.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Mapping

from suite.harness.plan import Declaration, LaunchLine

_NAME = re.compile(r"[A-Za-z_]\w*")
_ELF = b"\x7fELF\x02\x01"
_NO_BITS = 8  # type of a section that has a size and no contents
# Names, where they point, and what the compiler says of itself.
_ASIDE = (".shstrtab", ".strtab", ".symtab", ".debug", ".rela.debug", ".rel.debug", ".note")


def identity(declaration: Declaration, code: bytes) -> str:
    """Hex digest of what a program is, whatever its names.

    Args:
        declaration: Its text, read.
        code: Its machine code for one architecture and precision.
    """
    lines = (*declaration.prepares, *declaration.launches)
    kernels = {name: f"k{at}" for at, name in enumerate(dict.fromkeys(li.kernel for li in lines))}
    h = hashlib.blake2b(digest_size=16)
    for part in (*_header(declaration, kernels), *_sections(code, kernels)):
        h.update(len(part).to_bytes(8, "little"))
        h.update(part)
    return h.hexdigest()


def _header(declaration: Declaration, kernels: Mapping[str, str]) -> Iterator[bytes]:
    arrays = (*declaration.derived, *declaration.workspaces)
    own = {array.name: f"a{at}" for at, array in enumerate(arrays)}
    numbers = {name: str(value) for name, value in declaration.constants.items()}

    def plain(text: str) -> str:
        return "".join(_NAME.sub(lambda match: numbers.get(match[0], match[0]), text).split())

    def launch(line: LaunchLine) -> str:
        fed = [
            f"{own.get(p.name, numbers.get(p.name, p.name))}:{p.base}:{p.pointer}:{p.const}"
            for p in declaration.kernels[line.kernel]
        ]
        shape = [*line.grid, "|", *line.block, "|", line.shared]
        return f"{kernels[line.kernel]}({', '.join(fed)}) {' '.join(map(plain, shape))}"

    said = [
        f"{declaration.op} {declaration.spelling} {declaration.init_zero}",
        *(f"size {name} {plain(text)}" for name, text, _ in declaration.sizes),
        *sorted(f"require {plain(text)}" for text, _ in declaration.requires),
        *(f"derived {a.dtype} {plain(a.count)} {a.zero}" for a in declaration.derived),
        *(f"workspace {a.dtype} {plain(a.count)} {a.zero}" for a in declaration.workspaces),
        *(f"prepare {launch(line)}" for line in declaration.prepares),
        *(f"launch {launch(line)}" for line in declaration.launches),
    ]
    return (line.encode() for line in said)


def _sections(code: bytes, kernels: Mapping[str, str]) -> Iterator[bytes]:
    """What of an object file decides what it does; all of it where it is none."""
    if code[:6] != _ELF:
        yield code
        return
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", code, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", code, table + at * size) for at in range(count)]
    names_from = heads[names_at][4]
    found = []
    for name_at, kind, flags, _, offset, length in heads:
        start = names_from + name_at
        name = code[start : code.index(b"\0", start)].decode("utf-8", "replace")
        if name.startswith(_ASIDE):
            continue
        head, dot, kernel = name.rpartition(".")
        named = f"{head}{dot}{kernels.get(kernel, kernel)}"
        content = b"" if kind == _NO_BITS else code[offset : offset + length]
        found.append((f"{named} {kind} {flags} {length}".encode(), content))
    yield code[0x30:0x34]  # flags: the architecture
    for named_bytes, content in sorted(found):
        yield named_bytes
        yield content
