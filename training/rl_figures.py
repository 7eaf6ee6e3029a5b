"""What a step's samples say, as named figures. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from suite.evaluation import Status
from training.rollout import Sample

FAILURE = math.log(0.1)  # a failure counts as a tenth of the reference


def figures(samples: Sequence[Sample], group: int) -> dict[str, float]:
    """Means over the samples of a step, shares of statuses, and how different programs are.

    Speedups are geometric means over the problems whose reference was timed.

    Args:
        samples: Problem by problem.
        group: Programs of each problem.
    """
    count = len(samples)
    statuses = Counter(one.judged.outcome.status for one in samples)
    found = {f"status.{status.value}": statuses[status] / count for status in Status}
    found["compile_rate"] = sum(statuses[s] for s in Status if s.compiled) / count
    found["correct_rate"] = statuses[Status.OK] / count
    found |= dict(_rewards(samples))
    found |= dict(_speeds(samples, group))
    found |= dict(_variety(samples, group))
    found["cache.hit_rate"] = fmean(one.judged.known for one in samples)
    found["program.characters"] = fmean(len(one.program.text) for one in samples)
    return found


def strategy_shares(samples: Sequence[Sample]) -> dict[str, float]:
    """Shares of strategies among the right programs, over all and for each family."""
    by_family: dict[str, Counter[str]] = {}
    for one in samples:
        if one.judged.outcome.ok:
            for family in ("all", one.problem.matrix.family):
                by_family.setdefault(family, Counter())[one.strategy or "unreadable"] += 1
    return {
        f"strategy.{family}.{strategy.replace(' ', '_')}": many / counts.total()
        for family, counts in by_family.items()
        for strategy, many in counts.items()
    }


def shares_of_time(seconds: Mapping[str, float], whole: float) -> dict[str, float]:
    """Seconds of a step by phase and their shares; what no phase has is the update's."""
    found = {"seconds.step": whole}
    known = {**seconds, "update": max(whole - sum(seconds.values()), 0.0)}
    for phase, spent in known.items():
        found[f"seconds.{phase}"] = spent
        found[f"share.{phase}"] = spent / whole if whole else 0.0
    return found


def _rewards(samples: Sequence[Sample]) -> Iterator[tuple[str, float]]:
    known = [one.reward for one in samples if one.reward is not None]
    if not known:
        return
    for part in ("total", "rung", "speed", "length", "preparing"):
        name = "reward" if part == "total" else f"reward.{part}"
        yield name, fmean(getattr(one, part) for one in known)


def _speeds(samples: Sequence[Sample], group: int) -> Iterator[tuple[str, float]]:
    groups = [samples[at : at + group] for at in range(0, len(samples), group)]
    timed = [g for g in groups if g[0].reference is not None]
    right = [one.logarithm for one in samples if one.logarithm is not None]
    if right:
        yield "speedup_if_correct", math.exp(fmean(right))
    known = [[one.logarithm for one in g if one.reward is not None] for g in timed]
    counted = [[FAILURE if value is None else value for value in g] for g in known if g]
    if not counted:
        return
    yield "speedup", math.exp(fmean(value for g in counted for value in g))
    yield "speedup_failures", fmean(value is None for g in known for value in g)
    yield "speedup_best", math.exp(fmean(max(g) for g in counted))


def _variety(samples: Sequence[Sample], group: int) -> Iterator[tuple[str, float]]:
    distinct, kinds, texts = [], [], []
    for at in range(0, len(samples), group):
        mine = [one for one in samples[at : at + group] if one.judged.outcome.ok]
        texts.append(len({one.program.text for one in samples[at : at + group]}) / group)
        if mine:
            distinct.append(len({one.judged.identity for one in mine}) / len(mine))
            kinds.append(_entropy([one.strategy for one in mine]))
    yield "variety.texts", fmean(texts)
    if distinct:
        yield "variety.programs", fmean(distinct)
        yield "variety.strategy_entropy", fmean(kinds)


def _entropy(names: Sequence[str]) -> float:
    """In nats, of the shares of names."""
    shares = [many / len(names) for many in Counter(names).values()]
    return -sum(share * math.log(share) for share in shares)
