"""Making a winner's weights those that ``rl`` uses by default, with where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.harness.files import replacing
from training.errors import TrainingError
from training.reward import RewardWeights, plain

DEFAULT = "sparserl"
BEFORE = "by_hand"
ALONE = "correctness_only"
RIGHT_ONLY = ("speed", "length", "preparing")  # terms that correctness_only leaves out
DIGITS = 6


def applied(
    known: Mapping[str, Any], weights: RewardWeights, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """The named configurations with a winner as the default; what was chosen by hand stays.

    Args:
        known: Configurations by name, as ``rewards.json`` has them.
        weights: Of the winner.
        provenance: Study, trial and figures.
    """
    mine = {name: round(value, DIGITS) for name, value in plain(weights).items()}
    origin = f"study {provenance['study']}, trial {provenance['trial']}, on {provenance['device']}"
    alone = {**known[ALONE], "weights": {**mine, **dict.fromkeys(RIGHT_ONLY, 0.0)}}
    return {
        **known,
        DEFAULT: {"origin": origin, "provenance": dict(provenance), "weights": mine},
        ALONE: alone,
        BEFORE: known.get(BEFORE, known[DEFAULT]),
    }


def apply(path: Path, weights: RewardWeights, provenance: Mapping[str, Any]) -> None:
    """Rewrites the file of named configurations.

    Raises:
        TrainingError: It cannot be read or written.
    """
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(applied(known, weights, provenance), indent=2)
        with replacing(path) as draft:
            draft.write_text(f"{text}\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path}: {error}") from error
