"""Says of a file's own words whether its licence lets it in, whatever its package declares.

These are words that people write over their files; nothing here judges code. A file that says
nothing has its package's licence.
"""

from __future__ import annotations

import re

from training.corpus.sources import permissive

HEAD = 6000  # characters of a file that are searched
_ALIASES = {"BSD-3": "BSD-3-Clause", "BSD-2": "BSD-2-Clause"}  # written by some; not SPDX
_SPDX = re.compile(r"SPDX-License-Identifier:\s*([\w.+() -]+)")
_REFUSED = {
    "copyleft": r"GNU\s+(?:Lesser\s+|Affero\s+|Library\s+)?General\s+Public"
    r"|\b[AL]?GPLv[23]\b|Mozilla\s+Public\s+License|European\s+Union\s+Public",
    "non-commercial": r"non-?\s?commercial|research\s+purposes\s+only|CC[- ]BY[- ]NC",
    "proprietary": r"NvidiaProprietary|proprietary\s+(?:rights|and\s+confidential|information)"
    r"|strictly\s+prohibited|without\s+an\s+express\s+license|NVIDIA\s+Software\s+License"
    r"|confidential\s+and\s+proprietary|End\s+User\s+License\s+Agreement",
}


def refused(text: str) -> str:
    """Why a file's header keeps it out (``copyleft``, ``proprietary``, …); empty if it does not."""
    words = re.sub(r"[\s*/#]+", " ", text[:HEAD])
    for reason, pattern in _REFUSED.items():
        if re.search(pattern, words, re.IGNORECASE):
            return reason
    for expression in _SPDX.findall(text[:HEAD]):
        if not _permissive(expression):
            return "licence not listed"
    return ""


def _permissive(expression: str) -> bool:
    """One of alternatives is enough, and brackets do not change that."""
    plain = expression.replace("(", " ").replace(")", " ").strip().rstrip("*/ -")
    alternatives = re.split(r"\s+OR\s+", re.sub(r"\s+", " ", plain))
    return any(permissive(_ALIASES.get(one, one)) for one in alternatives)
