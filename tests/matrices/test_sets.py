"""What ``--suite-matrices`` may say, and what it answers to what it may not."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from suite.matrices import named, sets
from suite.matrices.base import MatrixError

TEXT = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n"


def names(text: str) -> list[str]:
    return [spec.name for spec in sets.select(text)]


def test_smoke_is_small_and_varied():
    built = [spec.build() for spec in named.smoke()]
    assert 8 <= len(built) <= 12
    assert max(m.csr.nnz for m in built) <= 50_000
    assert len({m.family for m in built}) >= 8
    assert any(m.csr.shape[0] != m.csr.shape[1] for m in built)
    assert any((np.diff(m.csr.indptr) == 0).any() for m in built)
    assert {"pyamg", "graph"} <= {m.family for m in built}


def test_smoke_is_the_same_every_time():
    assert [s.build().digest for s in named.smoke()] == [s.build().digest for s in named.smoke()]


def test_paper_has_the_structures_of_the_published_tables():
    sizes = {spec.name: dict(spec.params) for spec in named.paper()}
    assert sizes["pentadiagonal-1m"] == {"rows": 1 << 20, "offsets": "-1024,-1,0,1,1024"}
    assert sizes["stencil-7pt-160"]["shape"] == "160,160,160"
    assert sizes["uniform-64-1m"] == {"rows": 1 << 20, "per_row": 64}
    assert len(sizes) == len(named.paper())


def test_paper_matrices_for_launch_cost_are_small():
    built = {m.name: m.csr for m in (spec.build() for spec in sets.select("*-4k"))}
    assert built["uniform-16-4k"].nnz == 65_536
    assert built["band-17-4k"].shape == (4096, 4096)


def test_paper_covers_every_family():
    assert {spec.family for spec in named.paper()} == set(sets.families())


@pytest.mark.parametrize("spec", [*named.smoke(), *named.paper()], ids=lambda spec: spec.name)
def test_specs_travel_between_processes_under_safe_names(spec):
    assert re.fullmatch(r"[A-Za-z0-9._-]+", spec.name)
    assert pickle.loads(pickle.dumps(spec)).params == spec.params


def test_sets_families_globs_and_names_select():
    assert names("smoke") == [spec.name for spec in named.smoke()]
    assert names("stencil")[:2] == ["stencil-5pt-48", "stencil-5pt-2048"]
    assert names("uniform-*-1m") == ["uniform-8-1m", "uniform-64-1m"]
    assert names(" airfoil , rmat-11 ") == ["airfoil", "rmat-11"]


def test_matrix_asked_for_twice_comes_once():
    assert names("airfoil,smoke,air*").count("airfoil") == 1
    assert names("airfoil,smoke")[0] == "airfoil"


def test_matrix_of_a_split_is_found_by_its_name():
    name = sets.SETS["train"]()[17].name
    assert names(name) == [name]


def test_a_name_that_no_split_can_have_costs_no_drawing(tmp_path, monkeypatch):
    def drawn():
        raise AssertionError("the split was drawn")

    monkeypatch.setattr(sets, "SETS", {"train": drawn})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.mtx").write_text(TEXT)
    assert names("mine.mtx") == ["mine"]
    with pytest.raises(MatrixError, match="did you mean airfoil"):
        sets.select("airfoill")
    with pytest.raises(AssertionError, match="drawn"):
        sets.select("band-0123abcd")


def test_files_and_sorted_folders_select(tmp_path):
    for name in ("b.mtx", "a.mtx", "notes.txt"):
        (tmp_path / name).write_text(TEXT)
    assert names(str(tmp_path)) == ["a", "b"]
    assert names(str(tmp_path / "b.mtx")) == ["b"]
    assert names(str(tmp_path / "*.mtx")) == ["a", "b"]


def test_path_relative_to_the_working_folder_selects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.mtx").write_text(TEXT)
    assert names("mine.mtx") == ["mine"]


def test_two_files_of_one_name_are_refused_with_both_paths(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.mtx").write_text(TEXT)
    with pytest.raises(MatrixError, match=r"one/a\.mtx.*two/a\.mtx"):
        sets.select(f"{tmp_path}/one,{tmp_path}/two")


def test_the_same_file_twice_comes_once(tmp_path):
    (tmp_path / "a.mtx").write_text(TEXT)
    assert names(f"{tmp_path},{tmp_path}/a.mtx") == ["a"]


def test_unknown_word_lists_sets_families_and_close_names():
    with pytest.raises(MatrixError) as caught:
        sets.select("stencill")
    message = str(caught.value)
    assert "did you mean stencil" in message
    assert "smoke, paper, train, tuning, validation, test" in message
    assert "power-law" in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["", " , ", "nothing-*"])
def test_selecting_nothing_is_refused(text):
    with pytest.raises(MatrixError):
        sets.select(text)


def test_folder_without_matrices_and_absent_paths_are_refused(tmp_path):
    with pytest.raises(MatrixError, match="holds no matrix file"):
        sets.select(str(tmp_path))
    with pytest.raises(MatrixError, match="no such"):
        sets.select(str(tmp_path / "absent.mtx"))
    with pytest.raises(MatrixError, match="no such"):
        sets.select("absent.mtx")


@pytest.mark.parametrize("text", ["ss:HB/bcsstk13", "suitesparse:HB/bcsstk13"])
def test_collection_names_select_without_fetching(text):
    (spec,) = sets.select(text)
    assert (spec.name, spec.family) == ("bcsstk13", "suitesparse")


@pytest.mark.parametrize("text", ["ss:", "ss:a/b/c", "ss:../../etc", "suitesparse:a b"])
def test_collection_names_that_are_none_are_refused(text):
    with pytest.raises(MatrixError, match="GROUP/NAME"):
        sets.select(text)


def test_every_mistake_is_told_at_once_also_where_two_names_are_one(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.mtx").write_text(TEXT)
    with pytest.raises(MatrixError) as caught:
        sets.select(f"zzzz,{tmp_path}/one,{tmp_path}/two,absent.mtx,stencill")
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("'zzzz' is no matrix, set, family or file. Sets: smoke")
    assert lines[1].startswith("absent.mtx: there is no such")
    assert "? Sets: smoke" in lines[2]
    assert lines[3].startswith("two matrices are called a")
