"""Options become one complete configuration, or every mistake at once."""

import dataclasses
from pathlib import Path

import pytest
from scipy import sparse

from suite.author import Kind
from suite.config import ConfigError, Requested, Sources, detect_device, resolve
from suite.matrices.base import MatrixError, MatrixSpec
from suite.problem import DType, Op
from tests.suite.fake import FakeAuthor


def spec(name):
    return MatrixSpec(name, "band", lambda: sparse.eye_array(2))


def select(text):
    if text == "typo":
        raise MatrixError("typo: no such set")
    if text == "typos":
        raise MatrixError("a: no such set\nb: no such file")
    return [spec(name) for name in text.split(",") if name != "nothing"]


def from_path(path):
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory")
    return FakeAuthor(path.stem, Kind.FILE)


def sources(device="emulator"):
    everyone = [FakeAuthor("csr_scalar"), FakeAuthor("csr_vector-lanes2", ops=("spmv",))]
    libraries = [FakeAuthor("cusparse", Kind.LIBRARY)]
    return Sources(
        select=select,
        authors=lambda kind: [*everyone, *(libraries if kind == "cuda" else [])],
        from_path=from_path,
        detect=lambda: device,
    )


def names(**options):
    return [author.name for author in resolve(Requested(**options), sources()).authors]


def test_what_is_left_out_is_decided():
    config = resolve(Requested(), sources())
    assert [m.name for m in config.matrices] == ["smoke"]
    assert (config.ops, config.columns, config.samples) == ((Op.SPMV, Op.SPMM), (32, 128), 1)
    assert (config.device, config.dtype, config.tracking) == ("auto", DType.FLOAT32, True)
    assert config.folder == Path.cwd() / ".suite"


def test_authors_are_chosen_by_name_glob_and_path(tmp_path):
    (tmp_path / "mine.cu").write_text("")
    assert names(authors="csr_vector*") == ["csr_vector-lanes2"]
    assert names(authors=f"csr_scalar,{tmp_path}/mine.cu") == ["csr_scalar", "mine"]
    assert names(authors="*,csr_scalar") == ["csr_scalar", "csr_vector-lanes2"]


def test_library_authors_come_with_a_gpu_and_come_first():
    config = resolve(Requested(), sources("cuda"))
    assert [a.name for a in config.authors] == ["cusparse", "csr_scalar", "csr_vector-lanes2"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("authors", "csr_scaler", "no author is called 'csr_scaler'; did you mean csr_scalar"),
        ("authors", "zzz", "known are csr_scalar, csr_vector-lanes2"),
        ("authors", "csr_scaler", "csr_scalar? The path of a program ends in .cu"),
        ("authors", "zzz", "csr_vector-lanes2; the path of a program ends in .cu"),
        ("authors", "cusp*", "cusp* runs on a GPU only, and the device is the emulator"),
        ("authors", "", "--suite-authors: is empty; give a value or leave it out"),
        ("folder", " ", "--suite-folder: is empty; give a value or leave it out"),
        ("authors", "cusparse", "cusparse runs on a GPU only, and the device is the emulator"),
        ("authors", "gone.cu", "gone.cu: No such file or directory"),
        ("authors", ",", "--suite-authors: nothing given"),
        ("matrices", "typo", "--suite-matrices: typo: no such set"),
        ("matrices", "nothing", "--suite-matrices: 'nothing' selects no matrix"),
        ("matrices", "a,b,a", "--suite-matrices: a selected twice"),
        ("ops", "spmx", "--suite-ops: 'spmx' is none of spmv, spmm"),
        ("columns", "3.5", "--suite-columns: '3.5' is not an integer"),
        ("samples", "10001", "--suite-samples: 10001 is not between 1 and 10000"),
        ("device", "gpu", "--suite-device: 'gpu' is none of auto, cuda, emulator"),
    ],
)
def test_a_mistake_names_its_option_and_what_would_be_right(option, value, message):
    with pytest.raises(ConfigError) as caught:
        resolve(Requested(**{option: value}), sources())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_limits_themselves_are_allowed():
    config = resolve(Requested(columns="0,65536", samples="10000"), sources())
    assert (config.columns, config.samples) == ((0, 65536), 10000)


def test_authors_that_do_not_answer_the_operation_are_a_mistake():
    with pytest.raises(ConfigError, match="no author in 'csr_vector\\*' answers spmm"):
        resolve(Requested(authors="csr_vector*", ops="spmm"), sources())


def test_a_file_must_not_take_the_name_of_a_baseline(tmp_path):
    (tmp_path / "csr_scalar.cu").write_text("")
    with pytest.raises(ConfigError, match="the name csr_scalar is taken; rename the file"):
        resolve(Requested(authors=f"{tmp_path}/csr_scalar.cu"), sources())


def test_all_mistakes_are_told_together():
    with pytest.raises(ConfigError) as caught:
        resolve(Requested(device="x", ops="x", samples="x", authors="x,y.cu"), sources())
    assert len(str(caught.value).splitlines()) == 5


def test_no_visible_gpu_means_the_emulator(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert detect_device() == "emulator"


@pytest.fixture
def programs(tmp_path):
    for name in ("x/a.cu", "y/a.cu", "y/b.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def test_two_files_of_one_name_are_a_mistake_that_names_both(programs):
    x, y = programs / "x/a.cu", programs / "y/a.cu"
    with pytest.raises(ConfigError, match=f"{x} and {y} are both called a; rename one"):
        resolve(Requested(authors=f"{x},{y}"), sources())


def test_the_same_file_twice_is_one_author(programs):
    assert names(authors=f"{programs}/x/a.cu,{programs}/x/../x/a.cu") == ["a"]


def test_programs_are_found_by_pattern_and_below_the_home_folder(programs, monkeypatch):
    monkeypatch.setenv("HOME", str(programs))
    assert names(authors="~/x/a.cu") == ["a"]
    assert names(authors="~/y/*.cu") == ["a", "b"]
    with pytest.raises(ConfigError, match=r"z/\*\.cu: No such file or directory"):
        names(authors="~/z/*.cu")


@pytest.mark.parametrize("name", ["best_of_baselines", "cusparse", "cusparse_best"])
@pytest.mark.parametrize("device", ["cuda", "emulator"])
def test_a_file_must_not_take_a_name_of_the_suite_on_any_device(tmp_path, name, device):
    (tmp_path / f"{name}.cu").write_text("")
    with pytest.raises(ConfigError, match=f"{name} is the suite's own name; rename the file"):
        resolve(Requested(authors=f"{tmp_path}/{name}.cu"), sources(device))


def test_two_authors_of_one_name_are_a_mistake():
    twice = dataclasses.replace(sources(), authors=lambda kind: [FakeAuthor("a"), FakeAuthor("a")])
    with pytest.raises(ConfigError, match="2 authors are called a; rename one"):
        resolve(Requested(), twice)


def test_each_mistake_about_matrices_has_a_line_that_names_the_option():
    with pytest.raises(ConfigError) as caught:
        resolve(Requested(matrices="typos"), sources())
    assert str(caught.value).splitlines() == [
        "--suite-matrices: a: no such set",
        "--suite-matrices: b: no such file",
    ]


def test_every_empty_option_is_told():
    with pytest.raises(ConfigError) as caught:
        resolve(Requested(*[""] * 9), sources())
    assert str(caught.value).count("is empty") == 9
