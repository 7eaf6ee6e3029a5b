"""A report says what won, how sure that is and what is missing, in whatever state a campaign is."""

from dataclasses import replace

import pytest

from reports.build import report
from reports.closeup import NoSuchMatrixError
from reports.document import Document, Listing, Paragraph, Plot, Points, Table, Warned
from reports.learning import rewarded
from reports.source import Campaign, TrainingRun
from reports.spy import build
from reports.theme import Theme
from suite.author import Kind
from suite.evaluation import Status
from suite.matrices.named import smoke
from tests.reports.campaigns import FACTS, campaign, cut_off, emulated, on_gpu, with_models
from tests.suite.rows import failed

SPEED = ("speed", "headline", "fast-p", "authors", "repaid", "closeup", "matrix")


def made(rows: list, text: str = "", **more: object) -> Document:
    return report(campaign(rows, **more), [], lambda _: text)


def table(document: Document, name: str) -> Table:
    (found,) = (b for b in document.blocks() if isinstance(b, Table) and b.name == name)
    return found


def names(document: Document) -> set[str]:
    return {block.name for block in document.blocks() if hasattr(block, "name")}


def words(document: Document) -> str:
    found: list[str] = []
    for block in document.blocks():
        match block:
            case Points() | Warned():
                found += block.items
            case Paragraph():
                found.append(block.text)
            case Table():
                found += [block.caption, *block.headings, *(c for row in block.rows for c in row)]
    return "\n".join(found)


def test_the_first_page_says_what_won_by_how_much_and_how_sure() -> None:
    document = made(on_gpu())
    rows = {row[1]: row for row in table(document, "headline").rows}
    assert rows["`best_of_baselines`"][2:5] == ("8", "4.00 [4.00, 4.00]", "2.00 [2.00, 2.00]")
    first = document.sections[0]
    claims = next(block for block in first.blocks if isinstance(block, Points)).items
    assert any("is faster than `cusparse_best`, by a factor of 2.00" in text for text in claims)
    assert any("All 16 answers of 2 baselines" in text for text in claims)
    assert not any(isinstance(block, Warned) for block in first.blocks)


def test_every_number_leads_back_to_its_run() -> None:
    document = made(on_gpu())
    headline = table(document, "headline")
    by_author = dict(zip((row[1] for row in headline.rows), headline.runs, strict=True))
    assert by_author["`fast`"] == "run-spmv-fast"
    listed = {row[-1].strip("`") for row in table(document, "runs").rows}
    for found in document.blocks():
        if isinstance(found, Table):
            assert {run for run in found.runs if run} <= listed


def test_how_to_repeat_it_can_be_typed() -> None:
    (commands,) = (b for b in made(on_gpu()).blocks() if isinstance(b, Listing))
    assert "pytest suite --suite-matrices 'a b'" in commands.text
    assert "git checkout 0123456789abcdef" in commands.text
    assert "-e '.[dev,gpu]'" in commands.text
    assert "suite import" not in commands.text


def test_what_models_need_is_installed_before_it_is_repeated() -> None:
    (commands,) = (b for b in made(with_models()).blocks() if isinstance(b, Listing))
    assert "-e '.[dev,gpu,train]'" in commands.text


def test_what_was_measured_without_mlflow_is_imported_before_its_report_is_built() -> None:
    facts = {**FACTS, "command": ["pytest", "suite", "--suite-tracking", "off"]}
    document = report(Campaign("c", "", on_gpu(), facts), [], lambda _: "")
    (commands,) = (b for b in document.blocks() if isinstance(b, Listing))
    steps = [line.partition(" .")[0] for line in commands.text.splitlines()]
    assert steps.index("python -m suite import") < steps.index(
        "python -m reports build --out report"
    )


def test_the_first_page_explains_the_names_that_it_uses() -> None:
    chooser = [replace(r, author="heuristic", kind=Kind.CHOOSER) for r in on_gpu()[16:24]]
    note = table(made([*on_gpu(), *chooser]), "headline").note
    for name in ("`cusparse`", "`cusparse_best`", "`best_of_baselines`", "`heuristic`"):
        assert name in note
    assert "picks" not in table(made(on_gpu()), "headline").note


def test_an_emulated_campaign_has_verdicts_and_no_speed_at_all() -> None:
    document = made(emulated())
    assert not {name for name in names(document) if name.startswith(SPEED)}
    text = words(document)
    assert "**Emulated campaign:**" in text
    assert "777" not in text
    assert "vs `cusparse" not in text
    assert "faster" not in text
    assert table(document, "outcomes").rows[0][-1] == "100 % [63, 100]"


def test_a_campaign_that_was_cut_off_says_how_much_it_is_over() -> None:
    document = made(cut_off())
    (warned,) = (block for block in document.blocks() if isinstance(block, Warned))
    assert "16 of 32 answers measured (50 %); 4 of 8 matrices" in warned.items[0]
    assert {row[2] for row in table(document, "headline").rows} == {"4"}
    assert "too few for a claim" in words(document)  # four matrices
    assert "is faster than" not in words(document)


def test_half_logged_and_empty_campaigns_build_and_say_so() -> None:
    assert "Logging was cut off" in words(made(on_gpu(), complete=False))
    assert "still running" in words(made(on_gpu(), status="RUNNING"))
    assert "Nothing of campaign `c1` has been logged" in words(made([]))


def test_without_a_reference_no_speedup_over_it_is_given() -> None:
    rows = [row for row in on_gpu() if row.author != "cusparse_best"]
    document = made(rows)
    assert "There are no times of `cusparse_best` on SpMV" in words(document)
    assert all(row[4] == "" for row in table(document, "headline").rows)


def test_failures_of_the_machine_are_told_from_those_of_programs() -> None:
    rows = [
        *on_gpu()[:-1],
        replace(failed(Status.INFRASTRUCTURE_ERROR, "m7", author="slow"), family="graph"),
    ]
    document = made(rows)
    assert "infrastructure error" in table(document, "failures").headings
    assert "1 answer ended in an infrastructure error" in words(document)


def test_models_have_pass_at_k_an_ablation_and_their_program() -> None:
    document = made(with_models(), text="//! op spmv\nint x;\n")
    outcomes = table(document, "outcomes")
    of = {row[1]: dict(zip(outcomes.headings, row, strict=True)) for row in outcomes.rows}
    assert of["`sparserl`"]["right"].startswith("75 %")
    assert of["`sft_only`"]["pass@2"].startswith("50 %")  # one of four: a half of the pairs
    assert of["`sft_only`"]["pass@4"].startswith("100 %")
    (line,) = table(document, "ablation").rows
    # Failures count as a tenth: (1.2 · 0.1³)^¼ over (1.5³ · 0.1)^¼.
    assert line[1] == "`sft_only`"
    assert line[4].startswith(f"{(1.2 * 0.1**3 / (1.5**3 * 0.1)) ** 0.25:.2f} ")
    assert line[5] == "0.008"  # of eight matrices all say the same: 2/2⁸
    (program,) = (b for b in document.blocks() if isinstance(b, Listing) and b.name == "program")
    assert program.language == "cuda"
    assert "sparserl #" in program.caption
    assert {"right-sparserl", "right-sft_only"} <= names(document)


def test_parts_without_data_are_left_out_and_named() -> None:
    document = made(on_gpu())
    assert not {"ablation", "learning", "training", "program"} & names(document)
    assert "No trained variant took part" in words(document)
    assert "no training run" in words(document)
    assert "The text of the fastest program" in words(document)


def test_learning_curves_appear_with_the_parts_of_the_reward() -> None:
    curve = [(step, step / 10) for step in range(10)]
    keys = ("loss", "reward", "reward.speed", "validation.correct_rate", "speedup", "status.ok")
    never = {"status.timeout": [(step, 0.0) for step in range(10)]}
    run = TrainingRun("rl", "r1", "FINISHED", 7200.0, {}, {**dict.fromkeys(keys, curve), **never})
    before = replace(run, name="sft", curves={"loss": curve})
    document = report(campaign(with_models()), [run, before], lambda _: "")
    assert {"learning", "reward-0"} <= names(document)
    (losses,) = (b for b in document.blocks() if isinstance(b, Plot) and b.name == "learning")
    assert [axis.get_title() for axis in losses.drawing.axes] == ["sft"]  # a reward has no loss
    (plot,) = (b for b in document.blocks() if isinstance(b, Plot) and b.name == "reward-0")
    drawn = {text for axis in plot.drawing.axes for text in axis.get_legend_handles_labels()[1]}
    assert drawn == {"reward", "speed", "validation.correct rate", "speedup", "ok"}
    speed = {key: curve for key, curve in run.curves.items() if key != "speedup"}
    (odd,) = rewarded([replace(run, curves=speed)])
    visible = [axis for axis in odd.drawing.axes if axis.get_visible()]
    assert len(visible) == 3  # of four rooms: none is empty
    assert all(axis.lines for axis in visible)
    costs = table(document, "training")
    assert costs.rows[0][:4] == ("rl", "finished", "120.0", "9")
    assert costs.rows[0][costs.headings.index("reward at the end")] == "0.900"
    assert [row[costs.headings.index("loss at the end")] for row in costs.rows] == ["", "0.900"]


def test_a_matrix_to_look_at_can_be_named_and_must_be_there() -> None:
    document = report(campaign(on_gpu()), [], lambda _: "", "m3")
    assert any(section.title == "One matrix up close: m3" for section in document.sections)
    with pytest.raises(NoSuchMatrixError, match="no time on a matrix 'm99'"):
        report(campaign(on_gpu()), [], lambda _: "", "m99")


def test_an_author_looks_the_same_in_every_report() -> None:
    few, many = Theme.of(["sparserl", "fast"]), Theme.of(["fast", "cusparse", "sparserl", "zzz"])
    assert few["sparserl"] == many["sparserl"]
    assert few["fast"] == many["fast"]
    looks = [Theme.of(["sparserl", "sft_only", "a", "b", "cusparse"])[n] for n in ("a", "sparserl")]
    assert looks[0] != looks[1]


def test_looks_differ_without_colour_too() -> None:
    known = ("sparserl", "sft_only", "no_embedding", "correctness_only", "heuristic")
    theme = Theme.of(known)
    assert len({theme[name].marker for name in known}) == len(known)


def test_a_picture_is_of_the_very_matrix_or_there_is_none() -> None:
    spec = smoke()[0]
    row = replace(on_gpu()[0], matrix=spec.name, matrix_source=spec.source, nnz=2998)
    built = build(row)
    assert built is not None
    assert built.nnz == spec.build().csr.nnz
    assert build(replace(row, matrix_source="/somewhere/else.mtx")) is None
    assert build(replace(row, nnz=10**9)) is None


def test_a_campaign_without_facts_builds() -> None:
    document = report(Campaign("c", "r", on_gpu(), {}), [], lambda _: "")
    assert "Campaign c, undated, commit unknown" in document.subtitle
