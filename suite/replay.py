"""Device times as pytest-benchmark's own measurements.

pytest-benchmark times a callable with a timer. Here the device has been timed already, so the
callable does nothing and the timer plays the recorded samples back: the statistics, tables,
comparisons and files are pytest-benchmark's own. Everything that depends on how it works inside is
in this module.
"""

from __future__ import annotations

import errno
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.session import BenchmarkSession
from pytest_benchmark.utils import NameWrapper

_Fixture: Any = BenchmarkFixture  # pytest-benchmark has no type annotations
_Timer: Any = NameWrapper


class DeviceTimer:
    """A timer whose every second reading is one recorded duration after the reading before."""

    __name__ = "device_time"

    def __init__(self) -> None:
        self._readings: list[float] = []

    def load(self, samples_us: Sequence[float]) -> None:
        """Takes durations to play back, in microseconds."""
        self._readings = [t for sample in reversed(samples_us) for t in (sample * 1e-6, 0.0)]

    def __call__(self) -> float:
        """The next reading, in seconds."""
        return self._readings.pop()


@dataclass(frozen=True)
class Replay:
    """One measurement to show.

    Attributes:
        test: Node id of the pytest item.
        params: Parameters of the item.
        group: Compared with each other in one table.
        samples_us: Durations, in microseconds.
        extra: Facts beside the statistics.
    """

    test: str
    params: Mapping[str, Any]
    group: str
    samples_us: tuple[float, ...]
    extra: Mapping[str, Any]


def play(benchmark: BenchmarkFixture, timer: DeviceTimer, replay: Replay) -> None:
    """Feeds the samples through the ``benchmark`` fixture, whose timer must be ``timer``."""
    benchmark.group = replay.group
    benchmark.extra_info.update(strict(dict(replay.extra)))
    if replay.samples_us:
        timer.load(replay.samples_us)
        cast("Any", benchmark).pedantic(_nothing, rounds=len(replay.samples_us))


def play_all(config: pytest.Config, replays: Iterable[Replay]) -> None:
    """Feeds the samples of tests that ran in other processes into this process's session."""
    session = _session(config)
    for replay in replays:
        name = replay.test.rpartition("::")[2]
        identifier = name.partition("[")[2].removesuffix("]")
        timer = DeviceTimer()
        fixture = _Fixture(
            SimpleNamespace(
                name=name,
                nodeid=replay.test,
                callspec=SimpleNamespace(id=identifier, params=dict(replay.params)),
            ),
            add_stats=session.benchmarks.append,
            logger=session.logger,
            warner=None,
            disabled=False,
            **{**session.options, "timer": _Timer(timer)},
        )
        play(fixture, timer, replay)


def allow_only_with_workers(config: pytest.Config) -> None:
    """Makes ``--benchmark-only`` work with xdist; call before pytest-benchmark is configured.

    It refuses the two together because host times taken side by side disturb each other. Device
    times do not: the harness measures one program at a time. Host benchmarks stay switched off
    under xdist as ever.
    """
    distributed = config.getoption("dist", "no") != "no" or hasattr(config, "workerinput")
    if distributed and config.getoption("benchmark_only", False):
        config.option.benchmark_only = False
        config.option.suite_benchmark_only = True


def check_json(config: pytest.Config) -> None:
    """Whether ``--benchmark-json`` can be written, which pytest-benchmark asks after measuring.

    Raises:
        UsageError: Not there.
    """
    path = config.getoption("benchmark_json", None)
    if path is None:
        return
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        why = f"--benchmark-json: {path} cannot be written: {error.strerror}"
        raise pytest.UsageError(why) from error


def skip_others(
    config: pytest.Config, items: Sequence[pytest.Item], ours: Sequence[pytest.Item]
) -> None:
    """What ``--benchmark-only`` would have done, and no warning that our benchmarks are off."""
    benchmarks = [item for item in items if "benchmark" in getattr(item, "fixturenames", ())]
    if getattr(config.option, "suite_benchmark_only", False):
        for item in items:
            if item not in benchmarks:
                item.add_marker(pytest.mark.skip(reason="not a benchmark (--benchmark-only)"))
    if len(benchmarks) == len(ours):
        _session(config).xdist_warning = False


def skips_benchmarks(config: pytest.Config) -> bool:
    """Whether ``--benchmark-skip`` is in force."""
    return bool(_session(config).skip)


def write_json_without_benchmarks(config: pytest.Config) -> None:
    """Writes ``--benchmark-json`` where pytest-benchmark would not, because nothing was right."""
    session = _session(config)
    if not session.json or session.benchmarks:
        return
    machine = session.get_machine_info()
    commit = config.hook.pytest_benchmark_generate_commit_info(config=config)
    output = config.hook.pytest_benchmark_generate_json(
        config=config, benchmarks=[], include_data=True, machine_info=machine, commit_info=commit
    )
    config.hook.pytest_benchmark_update_json(config=config, benchmarks=[], output_json=output)
    session.save_json(output)


def strict(value: Any) -> Any:
    """The same value with None for every number that is not finite, as strict JSON needs it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value


def _nothing() -> None:
    pass


def _session(config: pytest.Config) -> Any:
    session = getattr(config, "_benchmarksession", None)
    if not isinstance(session, BenchmarkSession):
        raise pytest.UsageError("the suite needs pytest-benchmark; do not switch it off with -p")
    return session
