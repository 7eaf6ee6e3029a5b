"""The teacher's space: every point of it is a program, and steps and descriptions stay true."""

import dataclasses
import random
from pathlib import Path

import pytest

from suite.harness.bind import check_names
from suite.harness.parse import parse
from suite.matrices.named import smoke
from suite.problem import DType, Op, Problem
from training.teacher.describe import describe, normalised
from training.teacher.space import (
    STRATEGIES,
    Asked,
    Program,
    combinations,
    draw,
    every,
    mutate,
    table,
)
from training.teacher.strategy import Strategy
from training.teacher.writing import Writing, drawn, options

BY_NAME = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


def covering(strategy: Strategy, rng: random.Random) -> list[Program]:
    """Programs that together have every value of every parameter."""
    programs: list[Program] = []
    for name, values in strategy.choices.items():
        for value in values:
            if any((name, value) in program.parameters for program in programs):
                continue
            fitting = [one for one in strategy.combinations if one[name] == value]
            assert fitting, f"{name}={value} never makes sense"
            chosen = rng.choice(fitting)
            programs.append(
                Program(strategy.name, tuple(chosen.items()), drawn(rng.getrandbits(40)))
            )
    return programs


@BY_NAME
def test_every_value_of_every_parameter_is_a_program(strategy: Strategy) -> None:
    for program in covering(strategy, random.Random(1)):
        declaration = parse(program.text)
        for dtype in DType:
            check_names(declaration, strategy.op, dtype)


@BY_NAME
def test_every_choice_of_writing_is_a_program(strategy: Strategy) -> None:
    rng = random.Random(f"2 {strategy.name}")
    shuffled = {name: rng.sample(values, len(values)) for name, values in options().items()}
    for turn in range(max(map(len, shuffled.values()))):
        choices = {name: values[turn % len(values)] for name, values in shuffled.items()}
        writing = Writing(names=rng.randrange(1, 1 << 30), **choices)
        chosen = rng.choice(strategy.combinations)
        text = Program(strategy.name, tuple(chosen.items()), writing).text
        check_names(parse(text), strategy.op, DType.FLOAT32)


@pytest.mark.slow
@BY_NAME
def test_every_choice_of_writing_goes_with_many_others(strategy: Strategy) -> None:
    rng = random.Random(2)
    for name, values in options().items():
        for value in values:
            writing = dataclasses.replace(drawn(rng.getrandbits(40)), **{name: value})
            chosen = rng.choice(strategy.combinations)
            text = Program(strategy.name, tuple(chosen.items()), writing).text
            check_names(parse(text), strategy.op, DType.FLOAT32)


@pytest.mark.parametrize(
    ("points", "writings"), [(2, 3), pytest.param(4, 6, marks=pytest.mark.slow)]
)
@BY_NAME
def test_what_a_program_does_does_not_depend_on_how_it_is_written(
    strategy: Strategy, points: int, writings: int
) -> None:
    rng = random.Random(3)
    for _ in range(points):
        chosen = tuple(rng.choice(strategy.combinations).items())
        written = [
            Program(strategy.name, chosen, drawn(rng.getrandbits(40))) for _ in range(writings)
        ]
        assert len({describe(program.text) for program in written}) == 1, chosen


@pytest.mark.parametrize("each", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_strategies_differ_in_what_their_programs_do(each: int) -> None:
    rng = random.Random(4)
    owners: dict[str, set[str]] = {}
    for strategy in STRATEGIES.values():
        for _ in range(each):
            chosen = tuple(rng.choice(strategy.combinations).items())
            key = describe(Program(strategy.name, chosen, drawn(rng.getrandbits(40))).text)
            owners.setdefault(key, set()).add(strategy.name)
    # Two ways to spread a block over lanes have the same geometry and use the same things.
    alike = [names for names in owners.values() if len(names) > 1]
    assert all(names == {"spmv bsr rows", "spmv bsr values"} for names in alike)
    assert len(alike) <= 4 < len(owners) / 50


def test_normalised_texts_forget_names_comments_and_spaces_only() -> None:
    chosen = tuple(STRATEGIES["spmv csr team"].combinations[0].items())
    plain = Writing(constants="number")
    other = dataclasses.replace(plain, names=5, indent=4, comments="all")
    texts = [Program("spmv csr team", chosen, writing).text for writing in (plain, other)]
    assert texts[0] != texts[1]
    assert normalised(texts[0]) == normalised(texts[1])
    while_loops = dataclasses.replace(plain, loop="while", add="fma")
    changed = Program("spmv csr team", chosen, while_loops).text
    assert normalised(changed) != normalised(texts[0])
    assert normalised(texts[0].replace("<", ">")) != normalised(texts[0])


def test_a_seed_gives_the_same_program_and_another_seed_another() -> None:
    problem = Problem(Op.SPMV, smoke()[0].build())
    texts = [draw(random.Random(seed), Asked(problem)).text for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]
    assert drawn(5) == drawn(5) != drawn(6)


@pytest.mark.parametrize("op", Op)
def test_what_is_drawn_applies(op: Op) -> None:
    rng = random.Random(9)
    for spec in smoke()[:4]:
        problem = Problem(op, spec.build(), 1 if op is Op.SPMV else 33)
        asked = Asked(problem)
        programs = [draw(rng, asked) for _ in range(30)]
        assert all(asked.accepts(program.text) for program in programs)
        assert len({program.strategy for program in programs}) > 5
        if op is Op.SPMM:  # vectors do not fit 33 columns
            assert all(dict(program.parameters)["vec"] == 1 for program in programs)


def test_mutations_change_the_text_and_stay_in_the_space() -> None:
    rng = random.Random(10)
    for strategy in STRATEGIES.values():
        program = Program(strategy.name, tuple(rng.choice(strategy.combinations).items()))
        for _ in range(5):
            other = mutate(program, rng)
            assert other.text != program.text
            assert other.parameters in combinations(strategy.name)
            parameters = sum(
                a != b for a, b in zip(program.parameters, other.parameters, strict=True)
            )
            before, after = vars(program.writing), vars(other.writing)
            writing = sum(before[name] != after[name] for name in before)
            assert parameters + writing == 1
            program = other


def test_every_goes_through_the_whole_space_once() -> None:
    seen = {(program.strategy, program.parameters) for program in every()}
    assert len(seen) == sum(len(s.combinations) for s in STRATEGIES.values())


def test_programs_are_short() -> None:
    rng = random.Random(11)
    lengths = sorted(
        len(Program(s.name, tuple(rng.choice(s.combinations).items()), drawn(i)).text)
        for s in STRATEGIES.values()
        for i in range(8)
    )
    assert lengths[len(lengths) // 2] < 2200  # characters, of which a token has about three
    assert lengths[-1] < 5000


def test_the_page_has_the_table_of_the_space() -> None:
    page = (Path(__file__).parents[2] / "docs/teacher.md").read_text(encoding="utf-8")
    assert "\n".join(table()) in page, "put the output of python -m training.teacher there"
