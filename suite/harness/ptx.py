"""Reads from PTX, which the compiler makes on its way to machine code, what would outlive a run.

Every run of a program has to start from nothing but its inputs. A variable in the device's global
memory would carry something from one run to the next: an answer, or which run this is.
"""

from __future__ import annotations

_BREAKS = str.maketrans(dict.fromkeys("[](){}<>,;+=|!", " "))


def variables_in_use(text: str) -> list[str]:
    """Names of the variables in global memory that some instruction names.

    Constants that the compiler has folded have a declaration still, but nobody names them.

    Args:
        text: PTX as NVRTC writes it, one declaration or instruction a line.
    """
    declared: set[str] = set()
    named: set[str] = set()
    for line in text.splitlines():
        words = line.partition("//")[0].translate(_BREAKS).split()
        if ".global" in words:  # instructions have it as a part of a longer word
            declared.add(_declared(words[words.index(".global") + 1 :]))
        else:
            named.update(words)
    return sorted(declared & named)


def _declared(words: list[str]) -> str:
    """The name in what follows ``.global``: the first word that is no attribute and no number."""
    return next(word for word in words if not word.startswith(".") and not word.isdigit())
