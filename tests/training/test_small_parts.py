"""Schedule, time box, pace, options and curve: pure parts, tested with made-up clocks."""

import argparse
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from training.curve import Curve
from training.errors import TrainingError
from training.options import add_options, from_options
from training.pace import Pace, TimeBox, clock_text
from training.schedule import cosine


def test_the_rate_rises_to_its_highest_and_falls_to_its_share() -> None:
    rates = [cosine(s, 100, 10, 1e-3, 0.1) for s in range(100)]
    assert rates[0] == pytest.approx(1e-4)
    assert rates[9] == rates[10] == pytest.approx(1e-3)
    assert rates[99] == pytest.approx(1e-4)
    assert all(a > b for a, b in itertools.pairwise(rates[10:]))
    assert cosine(0, 1, 0, 1e-3, 0.1) == pytest.approx(1e-3)
    assert cosine(9, 10, 10, 1e-3, 0.1) == pytest.approx(1e-3)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_box_leaves_time_to_save_in() -> None:
    clock = Clock()
    box = TimeBox(1.0, clock)
    clock.now = 57.9
    assert not box.over
    clock.now = 58.1
    assert box.over
    clock.now = 48.0
    box.saved(5.5)
    assert not box.over
    clock.now = 49.1
    assert box.over


def test_a_box_without_minutes_ends_when_asked() -> None:
    box = TimeBox(None, Clock())
    assert not box.over
    box.asked = True
    assert box.over


def test_pace_is_of_the_last_lap_alone() -> None:
    clock = Clock()
    pace = Pace(1000, clock)
    clock.now = 50.0
    pace.start(10)
    clock.now = 52.0
    assert pace.lap(20, 100) == (5000, 16)
    clock.now = 53.0
    assert pace.lap(30, 100) == (10_000, 7)
    assert [clock_text(s) for s in (5, 65, 3723)] == ["0:05", "1:05", "1:02:03"]


@dataclass(frozen=True)
class Some:
    folder: Annotated[Path, "where"]
    save_every: Annotated[int, "100 % of it"] = 5
    minutes: Annotated[float | None, "how long"] = None
    mode: Annotated[Literal["on", "off"], "which"] = "on"
    more: Annotated[tuple[Path, ...], "others"] = ()


def parsed(*words: str) -> Some:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, Some)
    parser.format_help()
    return from_options(parser.parse_args(words), Some)


def test_options_are_the_fields() -> None:
    assert parsed("--folder", "a") == Some(Path("a"))
    words = ("--folder", "a", "--save-every", "7", "--minutes", "1.5", "--mode", "off")
    assert parsed(*words) == Some(Path("a"), 7, 1.5, "off")
    assert parsed(*words, "--more", "b", "c").more == (Path("b"), Path("c"))
    with pytest.raises(argparse.ArgumentError):
        parsed("--folder", "a", "--mode", "perhaps")


def test_a_curve_is_cut_where_its_run_goes_on(tmp_path: Path) -> None:
    curve = Curve(tmp_path, 0)
    for step in (1, 2, 3):
        curve.add(step, {"loss": float(step)})
    with (tmp_path / "curve.jsonl").open("a") as stream:
        stream.write('{"step": 4, "lo')  # killed while writing
    again = Curve(tmp_path, 2)
    again.add(3, {"loss": 9.0})
    lines = (tmp_path / "curve.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 1, "loss": 1.0},
        {"step": 2, "loss": 2.0},
        {"step": 3, "loss": 9.0},
    ]


def test_a_damaged_curve_is_named(tmp_path: Path) -> None:
    (tmp_path / "curve.jsonl").write_text('nonsense\n{"step": 1}\n')
    with pytest.raises(TrainingError, match=r"curve\.jsonl:1: not a point"):
        Curve(tmp_path, 5)
