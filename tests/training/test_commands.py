import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.archives import kernel, tar, write
from training.__main__ import COMMANDS, main
from training.corpus.build import build
from training.corpus.sources import Source
from training.packing import read_meta


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    files = {
        "train": {f"{i}.cu": kernel(f"k{i}") for i in range(30)},
        "validation": {f"{i}.cu": kernel(f"v{i}") for i in range(8)},
    }
    sources = [Source(s, "1", "pypi-sdist", "", "MIT", s, "") for s in files]
    folder = tmp_path / "corpus"
    build(
        sources,
        folder,
        lambda line: None,
        lambda s, f: write(f / f"{s.name}.tar.gz", tar(files[s.name])),
    )
    return folder


def words(text: str, **folders: Path) -> list[str]:
    return text.format(**folders).split()


def test_corpus_to_model(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    at = {
        "corpus": corpus,
        "tok": tmp_path / "tok",
        "data": tmp_path / "data",
        "out": tmp_path / "o",
    }
    assert (
        main(words("tokenizer --corpus {corpus} --out {tok} --vocabulary 512 --programs 60", **at))
        == 0
    )
    pack = "pack --corpus {corpus} --tokenizer {tok} --out {data} --tokens 5000 --programs 40"
    assert main(words(pack, **at)) == 0
    meta = read_meta(at["data"])
    assert meta.programs == 40
    assert meta.tokens["train"] > 4000 + 40 * 100
    assert meta.documents["validation"] == 8
    train = (
        "pretrain --data {data} --out {out} --steps 3 --batch 2 --length 16 --width 16 --layers 1"
        " --heads 2 --mlp 16 --warmup 1 --device cpu --tracking off --evaluate-batches 1"
    )
    assert main(words(train, **at)) == 0
    shown = capsys.readouterr().out
    assert "tokens, 0.0 MB" in shown
    assert "step 3/3  loss " in shown
    assert f"finished: {tmp_path / 'o' / 'model'}" in shown


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("pretrain --data {nowhere} --out {nowhere}", 1, "not packed tokens"),
        ("tokenizer --corpus {nowhere} --out {nowhere}", 1, "no data card"),
        ("tokenizer --corpus {nowhere} --out {nowhere} --programs -1", 2, "0 or more"),
        (
            "pack --corpus {nowhere} --tokenizer {nowhere} --out {nowhere} --tokens 0",
            2,
            "at least 1",
        ),
        ("corpus --out {nowhere} --sources {nowhere}/x.csv", 2, "x.csv: No such file"),
    ],
)
def test_a_mistake_is_one_line(
    line: str, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if line.startswith("pretrain"):
        pytest.importorskip("torch", reason="needs the train extra")
    assert main(words(line, nowhere=tmp_path / "nowhere")) == code
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert message in error


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"python -m training {command}" in capsys.readouterr().out


def test_help_loads_no_torch() -> None:
    code = "import sys, training.__main__ as m\ntry: m.main(['--help'])\nexcept SystemExit: pass\n"
    code += "print([n for n in ('torch', 'transformers', 'pyarrow', 'mlflow') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
