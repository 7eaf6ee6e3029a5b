"""Reads from PTX, which the compiler makes on its way to machine code, what would outlive a run.

Every run of a program has to start from nothing but its inputs. A variable in the device's global
memory would carry something from one run to the next: an answer, or which run this is. So would
the device's heap, and its console is nobody's business.
"""

from __future__ import annotations

COMPILERS_OWN = "__cudart_"  # tables of the compiler's sines and cosines; no program has such names
_MEETING = {"atom", "red", "shared", "volatile", "relaxed", "acquire", "fence", "membar"}
_BREAKS = str.maketrans(dict.fromkeys("[](){}<>,;+=|!", " "))


def lasting(text: str) -> list[str]:
    """Names of what outlives a run: variables in global memory, and the runtime's functions.

    Constants that the compiler has folded have a declaration still, but no instruction names them.

    Args:
        text: PTX as NVRTC writes it, one declaration or instruction a line.
    """
    variables: set[str] = set()
    functions: set[str] = set()
    named: set[str] = set()
    extern = False
    for line in text.splitlines():
        words = line.partition("//")[0].translate(_BREAKS).split()
        if ".global" in words:  # instructions have it as a part of a longer word
            variables.add(_declared(words[words.index(".global") + 1 :]))
        elif extern or (".extern" in words and ".func" in words):
            # The result comes first, in brackets, and the name may stand on the next line.
            own = [word for word in words if not word.startswith(".") and "retval" not in word]
            functions.update(own[:1])
            extern = not own
        else:
            named.update(words)
    mine = {name for name in variables & named if not name.startswith(COMPILERS_OWN)}
    return sorted(mine | functions)


def meets(text: str) -> bool:
    """Whether threads meet in memory, so that an answer may depend on which comes first.

    Args:
        text: As above.
    """
    parts = (set(word.split(".")) for word in text.split() if "." in word)
    return any(not part.isdisjoint(_MEETING) for part in parts)


def _declared(words: list[str]) -> str:
    """The name in what follows ``.global``: the first word that is no attribute and no number."""
    return next(word for word in words if not word.startswith(".") and not word.isdigit())
