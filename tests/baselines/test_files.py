"""Program files become authors, and a file that cannot says which line to change."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from suite.author import Author, Kind
from suite.baselines.files import AuthorFileError, baselines, from_path
from suite.matrices.base import Matrix, canonical
from suite.problem import Op, Problem

EYE = Matrix("eye", "test", canonical(sparse.csr_array(np.eye(3)), "eye"))
SPMV = Problem(Op.SPMV, EYE)
SPMM = Problem(Op.SPMM, EYE, columns=4)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_the_same_stem_in_both_folders_is_one_author_that_answers_both(tmp_path: Path) -> None:
    put(tmp_path, "spmv/ell.cu", "//! op spmv\n// vector\n")
    put(tmp_path, "spmm/ell.cu", "//! op spmm\n// matrix\n")
    put(tmp_path, "spmm/only.cu", "//! op spmm\n")
    ell, only = baselines(tmp_path)
    assert (ell.name, only.name) == ("ell", "only")
    assert ell.kind is Kind.BASELINE
    assert [ell.answers(op) for op in Op] == [True, True]
    assert [only.answers(op) for op in Op] == [False, True]
    assert ell.write(SPMV, 1)[0].text == "//! op spmv\n// vector\n"
    assert ell.write(SPMM, 1)[0].text == "//! op spmm\n// matrix\n"


def test_an_author_writes_one_program_however_many_are_asked_for(tmp_path: Path) -> None:
    author: Author = from_path(put(tmp_path, "mine.cu", "//! op spmv\n"))
    assert [a.author for a in author.write(SPMV, 8)] == ["mine"]
    assert list(author.write(SPMV, 0)) == []
    with pytest.raises(ValueError, match="mine has no program for spmm; it has spmv"):
        author.write(SPMM, 1)


def test_a_choose_line_gives_one_author_for_each_value(tmp_path: Path) -> None:
    put(tmp_path, "spmv/team.cu", "//! op spmv\n//! choose LANES 2 16\n// code\n")
    texts = {author.name: author.texts["spmv"] for author in baselines(tmp_path)}
    assert texts == {
        "team-lanes2": "//! op spmv\n//! let LANES 2\n// code\n",
        "team-lanes16": "//! op spmv\n//! let LANES 16\n// code\n",
    }


def test_two_choose_lines_give_every_pair_of_values(tmp_path: Path) -> None:
    put(tmp_path, "spmv/k.cu", "//! op spmv\n//! choose A 1 2\n//! choose B 3 4\n")
    names = [author.name for author in baselines(tmp_path)]
    assert names == ["k-a1-b3", "k-a1-b4", "k-a2-b3", "k-a2-b4"]


def test_a_chosen_value_stands_in_the_format_line_as_a_number(tmp_path: Path) -> None:
    put(tmp_path, "spmv/k.cu", "//! op spmv\n//! choose EDGE 2 8\n//! format bsr b=EDGE\n")
    lines = [author.texts["spmv"].split("\n")[2] for author in baselines(tmp_path)]
    assert lines == ["//! format bsr b=2", "//! format bsr b=8"]


def test_a_value_chosen_for_a_parameter_of_its_name_is_no_constant_besides(tmp_path: Path) -> None:
    put(tmp_path, "spmv/k.cu", "//! op spmv\n//! choose BITS 16 32\n//! format ell4 BITS=BITS\n//")
    authors = {author.name: author.texts["spmv"] for author in baselines(tmp_path)}
    assert authors == {
        f"k-bits{bits}": f"//! op spmv\n//\n//! format ell4 BITS={bits}\n//" for bits in (16, 32)
    }


@pytest.mark.parametrize(
    "line",
    [
        "//! choose",
        "//! choose LANES",
        "//! choose 8 16",
        "//! choose LANES 8,16",
        "//! choose LANES 08 16",
        "//! choose LANES -8",
        "//! choose LANES eight",
        "//! choose LANES 8 8",
        "//! choose LA-NES 8",
    ],
)
def test_a_malformed_choose_line_is_named_with_file_and_line(tmp_path: Path, line: str) -> None:
    path = put(tmp_path, "spmv/k.cu", f"//! op spmv\n\n{line}\n")
    with pytest.raises(AuthorFileError) as caught:
        baselines(tmp_path)
    assert str(caught.value).startswith(f"{path}:3: {line}: write //! choose NAME INTEGER")


def test_a_constant_chosen_twice_is_refused_at_its_second_line(tmp_path: Path) -> None:
    path = put(tmp_path, "spmv/k.cu", "//! op spmv\n//! choose A 1\n//! choose A 2\n")
    with pytest.raises(AuthorFileError, match="A is chosen twice") as caught:
        baselines(tmp_path)
    assert str(caught.value).startswith(f"{path}:3: ")


def test_a_baseline_in_the_wrong_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "spmm/k.cu", "//! op spmv\n")
    with pytest.raises(AuthorFileError, match=r"k\.cu: lies in spmm/ but says //! op spmv"):
        baselines(tmp_path)


def test_a_users_file_is_kept_as_it_is_and_named_after_its_stem(tmp_path: Path) -> None:
    text = "\ufeff//! op spmm\r\n//! choose LANES 8\r\n"
    author = from_path(put(tmp_path, "my-kernel_2.cu", text))
    assert (author.name, author.kind) == ("my-kernel_2", Kind.FILE)
    assert author.write(SPMM, 1)[0].text == text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("k.cu", b"", r"k\.cu: no //! op line; add //! op spmv or //! op spmm on top"),
        ("k.cu", b"// \xff", r"k\.cu: byte 3 is not UTF-8"),
        ("k.cu", b"//! op spmv\n\0", r"k\.cu: holds NUL bytes"),
        ("k.cu", b"\n//! op sddmm\n", r"k\.cu:2: write //! op spmv or //! op spmm"),
        ("k.cu", b"//! op\n", r"k\.cu:1: write //! op spmv or //! op spmm"),
        ("my kernel.cu", b"//! op spmv\n", r"my kernel\.cu: an author's name has letters"),
    ],
)
def test_a_file_that_cannot_be_an_author_says_what_is_wrong(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AuthorFileError, match=message):
        from_path(tmp_path / name)


def test_what_may_never_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "zero.cu").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.cu")
    for name in ("zero.cu", "pipe.cu"):
        with pytest.raises(AuthorFileError, match=f"{name}: is a device or a pipe"):
            from_path(tmp_path / name)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AuthorFileError, match=r"none\.cu: cannot be read \(No such file"):
        from_path(tmp_path / "none.cu")
    with pytest.raises(AuthorFileError, match="cannot be read"):
        from_path(tmp_path)
