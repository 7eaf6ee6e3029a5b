from pathlib import Path

import pytest

from tests.training.archives import deb, tar, wheel, write
from training.corpus.archives import LARGEST, cuda_members
from training.errors import TrainingError

FILES = {
    "p/a.cu": "int a;",
    "p/b.cuh": "int b;",
    "p/c.hpp": "__device__ int c();",
    "p/d.hpp": "int plain;",
    "p/e.c": "__global__ void e() {}",
    "p/f.cpp": "__device__ int only_sources_with_kernels_count;",
    "p/g.cu.cc": "__global__ void g() {}",
    "p/h.py": "'__global__'",
}
EXPECTED = ["p/a.cu", "p/b.cuh", "p/c.hpp", "p/e.c", "p/g.cu.cc"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tar.gz", tar(FILES)),
        ("a.tar.xz", tar(FILES, "xz")),
        ("a.whl", wheel(FILES)),
        ("a.deb", deb(FILES)),
    ],
    ids=["tar.gz", "tar.xz", "wheel", "deb"],
)
def test_only_files_that_bear_cuda_are_read(name: str, data: bytes, tmp_path: Path) -> None:
    found = list(cuda_members(write(tmp_path / name, data)))
    assert [m.path for m in found] == EXPECTED
    assert found[0].data == b"int a;"


def test_huge_and_empty_files_are_passed_over(tmp_path: Path) -> None:
    data = tar({"a.cu": b"x" * (LARGEST + 1), "b.cu": b"", "c.cu": b"int c;"})
    assert [m.path for m in cuda_members(write(tmp_path / "a.tar.gz", data))] == ["c.cu"]


@pytest.mark.parametrize("name", ["a.tar.gz", "a.whl", "a.deb"])
@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"!<arch>\n", tar(FILES)[:200]])
def test_a_damaged_archive_is_named(name: str, data: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / name, data)
    with pytest.raises(TrainingError, match=r"cannot be read .*delete it and retry"):
        list(cuda_members(path))
