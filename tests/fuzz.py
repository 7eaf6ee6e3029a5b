"""How many examples a fuzz test tries: its own few, or ``FUZZ_EXAMPLES`` under ``make fuzz``."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

HUNTING = "FUZZ_EXAMPLES" in os.environ


def fuzzed(examples: int) -> settings:
    """Settings of a fuzz test; times are held to account by the tests themselves."""
    return settings(
        max_examples=int(os.environ.get("FUZZ_EXAMPLES", examples)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
