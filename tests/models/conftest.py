"""Most of this folder needs the extra train; without it those files are left out."""

from __future__ import annotations

from suite.models.variants import lacking

NEED_NOTHING = ("test_sampler.py", "test_prompt.py", "test_manifest.py")
NEEDING = [
    "test_adapters.py",
    "test_author.py",
    "test_decode.py",
    "test_embedding.py",
    "test_generate.py",
    "test_policy.py",
    "test_throughput.py",
]
collect_ignore = NEEDING if lacking() else []


def pytest_report_header() -> str | None:
    if not lacking():
        return None
    return (
        f"tests/models: {len(NEEDING)} files need {', '.join(lacking())}: install the extra train"
    )
