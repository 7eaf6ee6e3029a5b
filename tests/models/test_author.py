"""Variants join the suite where their weights are; what is wrong with them is said beforehand."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from suite.author import Coming, Kind
from suite.config import ConfigError
from suite.matrices.base import MatrixSpec
from suite.matrices.sets import select
from suite.models import author, manifest, plugin, variants
from suite.models.author import ModelAuthor, Place, Reading, authors
from suite.models.policy import Policy
from suite.models.prompt import Encoding, PromptStyle
from suite.models.texts import Texts
from suite.models.variants import BASE, VARIANTS
from suite.problem import DType, Op, Problem
from tests.models import lab
from tests.shell import plain

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
NAMES = [variant.name for variant in VARIANTS]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base and adapters for two variants."""
    folder = tmp_path_factory.mktemp("weights")
    lab.save_base(folder / BASE)
    for variant in VARIANTS:
        if variant.name in ("sft_only", "no_embedding"):
            style = PromptStyle(variant.encoding, lab.VOCABULARY)
            lab.save_adapter(folder / BASE, folder / variant.name, style)
    return folder


@pytest.fixture
def weights(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(shipped, tmp_path / "weights")
    monkeypatch.setenv(variants.ELSEWHERE, str(folder))
    return folder


def policy(model: Any = None) -> Policy:
    return Policy(model or lab.reader(), lab.tokenizer(), lab.COORDINATES, "base")


def asked(op: Op = Op.SPMV, columns: int = 1) -> Problem:
    return Problem(op, select("stencil-5pt-48")[0].build(), columns)


def writes(
    limit: int = 16,
    device: str = "cpu",
    texts: Texts | None = None,
    seed: int = 0,
    weights: str = "",
    **more: Any,
) -> ModelAuthor:
    return ModelAuthor(
        "sft_only",
        lambda _: policy(**more),
        Reading(lab.COORDINATES, (weights,)),
        lambda: Place(device),
        texts,
        seed,
        limit,
    )


ASKED = [(Op.SPMV, 1), (Op.SPMM, 32), (Op.SPMM, 128)]
SPECS = select("stencil-5pt-48,block-4-1k,tridiagonal-1k")


def coming(*specs: MatrixSpec) -> list[Coming]:
    return [Coming(op, spec, n, DType.FLOAT32, 1) for spec in specs for op, n in ASKED]


def all_of(spec: MatrixSpec) -> list[Problem]:
    matrix = spec.build()
    return [Problem(op, matrix, n) for op, n in ASKED]


def batches_of(one: ModelAuthor, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each batch that an author writes from now on: the texts in it."""
    batches: list[int] = []
    write = one._write

    def counted(wanted: Any) -> None:
        batches.extend([len(wanted)] if wanted else [])
        write(wanted)

    monkeypatch.setattr(one, "_write", counted)
    return batches


def test_without_weights_nobody_joins(tmp_path: Path) -> None:
    assert authors(tmp_path) == []
    there, missing = variants.trained(tmp_path)
    assert (there, [variant.name for variant in missing]) == ([], NAMES)


def test_those_with_weights_join(weights: Path) -> None:
    found = plugin.pytest_suite_authors("emulator")
    assert [one.name for one in found] == ["sft_only", "no_embedding"]
    assert all(one.kind is Kind.MODEL and one.answers("spmm") for one in found)
    assert not any(one.answers("sddmm") for one in found)


def test_an_author_from_disk_reads_as_its_adapter_was_taught(weights: Path) -> None:
    for one in authors():
        loaded = one._load("cpu")
        assert loaded.style.encoding is (
            Encoding.TEXT if one.name == "no_embedding" else Encoding.COORDINATES
        )


def test_joining_loads_neither_torch_nor_weights(weights: Path) -> None:
    code = "import sys; from suite.models.plugin import *; print(len(authors()))\n"
    code += "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert out.stdout.decode().split("\n")[:2] == ["2", "[]"]


def test_without_the_packages_nobody_joins(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "NEEDED", ("torch", "no_such_package"))
    assert authors() == []
    assert variants.lacking() == ["no_such_package"]


def edit(path: Path, **change: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def test_every_mistake_is_said_before_anything_is_measured(weights: Path) -> None:
    with (weights / "sft_only" / "adapter_model.safetensors").open("r+b") as file:
        file.truncate(100)
    edit(weights / "no_embedding" / manifest.NAME, base="ffff", encoding="coordinates")
    with pytest.raises(ConfigError) as caught:
        authors()
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "adapter_model.safetensors is not what it was" in lines[0]
    assert "was trained on base ffff" in lines[1]
    assert "was taught to read coordinates; no_embedding reads text" in lines[2]


def test_one_sample_is_the_likeliest_and_several_are_drawn() -> None:
    one, again = (writes().write(asked(), 1) for _ in range(2))
    assert len(one) == 1
    assert one == again
    several = writes().write(asked(), 5)
    assert [program.sample for program in several] == [0, 1, 2, 3, 4]
    assert len({program.text for program in several}) == 5
    assert several == writes().write(asked(), 5)
    assert several[:2] == writes().write(asked(), 2)  # more samples do not change the first
    assert {program.author for program in several} == {"sft_only"}


def test_other_seeds_and_problems_are_other_texts() -> None:
    texts = [program.text for program in writes().write(asked(), 3)]
    other = writes(seed=1)
    assert texts != [program.text for program in other.write(asked(), 3)]
    assert texts != [program.text for program in writes().write(asked(Op.SPMM, 32), 3)]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_program_is_the_same_whether_it_was_foreseen_or_not(device: str) -> None:
    alone = [writes(device=device).write(problem, 1) for problem in all_of(SPECS[1])]
    one = writes(device=device)
    one.foresee(coming(*SPECS))
    assert [one.write(problem, 1) for problem in all_of(SPECS[1])] == alone
    assert one.write(all_of(SPECS[1])[0], 1) == alone[0]  # asked again, it is written again
    assert len(one.write(all_of(SPECS[1])[0], 3)) == 3


def test_on_the_cpu_the_next_matrices_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    one = writes()
    batches = batches_of(one, monkeypatch)
    one.foresee(coming(*SPECS))
    for spec in SPECS:
        for problem in all_of(spec):
            one.write(problem, 1)
    assert batches == [9]


def test_on_a_gpu_a_matrix_has_a_batch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next ones may be large: they are not built for it."""

    def never() -> Any:
        raise AssertionError("was built")

    one = writes(device="cuda")
    batches = batches_of(one, monkeypatch)
    one.foresee(coming(SPECS[0], replace(SPECS[1], make=never)))
    for problem in all_of(SPECS[0]):
        one.write(problem, 1)
    assert batches == [3]


def test_what_other_processes_may_be_asked_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    one = writes()
    batches = batches_of(one, monkeypatch)
    one.foresee(coming(*SPECS), alone=False)
    for problem in all_of(SPECS[1]):
        one.write(problem, 1)
    assert batches == [3]


def test_a_matrix_that_cannot_be_built_is_no_matter_for_the_others() -> None:
    def fails() -> Any:
        raise RuntimeError("no such matrix")

    one = writes()
    one.foresee(coming(replace(SPECS[0], make=fails), SPECS[1]))
    (program,) = one.write(all_of(SPECS[1])[0], 1)
    assert [program] == writes().write(all_of(SPECS[1])[0], 1)


def test_a_text_that_was_kept_needs_no_weights(tmp_path: Path) -> None:
    problem = asked()
    for samples in (1, 3):
        expected = writes(texts=Texts(tmp_path)).write(problem, samples)
        again = writes(texts=Texts(tmp_path))
        again._load = None  # type: ignore[assignment]
        assert again.write(problem, samples) == expected


def test_a_text_is_kept_for_its_prompt_weights_limit_and_seed(tmp_path: Path) -> None:
    kept = Texts(tmp_path)
    writes(texts=kept).write(asked(), 1)
    assert len(list(tmp_path.iterdir())) == 1
    writes(texts=kept, weights="other").write(asked(), 1)
    writes(texts=kept, limit=17).write(asked(), 1)
    writes(texts=kept).write(asked(Op.SPMM, 32), 1)
    writes(texts=kept).write(asked(), 2)
    writes(texts=kept, seed=1).write(asked(), 2)
    assert len(list(tmp_path.iterdir())) == 8
    writes(texts=kept, device="cuda").write(asked(), 1)  # in another precision
    assert len(list(tmp_path.iterdir())) == 8


def test_a_damaged_text_is_written_anew(tmp_path: Path) -> None:
    expected = writes(texts=Texts(tmp_path)).write(asked(), 1)
    (path,) = tmp_path.iterdir()
    whole = path.read_text()
    for damaged in ("", whole[:-5], whole.replace('"text": "', '"text": "// '), "[]"):
        path.write_text(damaged)
        assert writes(texts=Texts(tmp_path)).write(asked(), 1) == expected
        assert path.read_text() == whole


def test_where_nothing_can_be_kept_programs_are_written_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    expected = writes().write(asked(), 1)
    assert writes(texts=Texts(tmp_path / "file" / "texts")).write(asked(), 1) == expected


def test_writing_ahead_ends_when_python_does() -> None:
    """What is under way is given up, and nothing crashes."""
    code = """
import atexit, time
from tests.models.test_author import SPECS, coming, saying, writes
one = writes(limit=3000, model=saying(7))
atexit.register(lambda: print(len(one._written), "written"))
one.foresee(coming(*SPECS))
while not one._generators: time.sleep(0.01)
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (out.returncode, out.stdout) == (0, "0 written\n"), out.stderr


def saying(token: int) -> Any:
    model = lab.build("qwen2")
    lab.attach(model)
    with torch.no_grad():
        model.model.norm.weight.zero_()
    bias = torch.full((lab.VOCABULARY,), -50.0)
    bias[token] = 50.0
    model.lm_head.bias = torch.nn.Parameter(bias)
    return model.requires_grad_(False)


def test_no_end_and_no_text_are_told_apart() -> None:
    (endless,) = writes(limit=20, model=saying(7)).write(asked(), 1)
    assert endless.unfinished == "the model came to no end within 20 tokens"
    assert endless.text == lab.tokenizer().decode([7] * 20)
    (empty,) = writes(model=saying(lab.END)).write(asked(), 1)
    assert (empty.text, empty.unfinished) == ("", "")


def test_other_weights_are_another_author(weights: Path) -> None:
    first, second = authors()
    assert first.fingerprint == authors()[0].fingerprint != second.fingerprint


def test_on_this_host_the_cpu_is_used_and_nothing_is_locked() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    place = author.here()
    assert (place.device, place.bus_id) == ("cpu", None)
    assert place.arch.startswith("sm_")


def test_the_suite_takes_garbage_for_a_result_and_says_who_is_left_out(
    weights: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(monkeypatch)
    monkeypatch.setattr(author, "Texts", lambda _: Texts(pytester.path / "texts"))
    pytester.makeconftest('pytest_plugins = ["suite.plugin", "suite.models.plugin"]\n')
    pytester.makepyfile(test_spmv="from suite.test_spmv import *\n")
    out = pytester.runpytest_inprocess(
        *("--benchmark-only", "--suite-matrices=tridiagonal-1k", "--suite-tracking=off"),
        *("--suite-authors=sft_only", "--suite-device=emulator", "--suite-samples=2"),
        *("-p", "no:cacheprovider", "--benchmark-json=out.json"),
    )
    assert out.ret == 0
    out.stdout.fnmatch_lines(["*suite: sparserl, correctness_only left out: no weights in*"])
    rows = json.loads((pytester.path / "out.json").read_text())["suite_rows"]
    assert [row["status"] for row in rows] == ["parse_error"] * 2
    assert all(row["error"] for row in rows)
