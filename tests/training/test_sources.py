from pathlib import Path

import pytest

from training.corpus.sources import read_sources
from training.errors import ConfigError

HEAD = "name,version,kind,suite,licence,split,sha256\n"


def test_every_package_of_the_table_is_pinned_and_permissive() -> None:
    sources = read_sources()
    assert all(len(s.sha256) == 64 for s in sources)
    assert {s.split for s in sources} == {"train", "validation"}


def test_all_mistakes_of_a_table_are_found_together(tmp_path: Path) -> None:
    table = tmp_path / "sources.csv"
    rows = (
        "../evil,1,pypi-sdist,,MIT,train,\nx,,zip,,GPL-3.0,test,12\ny,1,debian-source,,MIT,train,\n"
    )
    table.write_text(HEAD + rows + "y,1\n")
    with pytest.raises(ConfigError) as caught:
        read_sources(table)
    found = "\n".join(caught.value.mistakes)
    for words in (
        ":2: bad package name '../evil'",
        ":3: no version",
        ":3: kind 'zip'",
        ":3: licence 'GPL-3.0'",
        ":3: split 'test'",
        ":3: sha256",
        ":4: a Debian package needs its release",
        ":5: 7 columns",
    ):
        assert words in found


@pytest.mark.parametrize("licence", ["MIT AND GPL-2.0", "AGPL-3.0", "", "MIT AND"])
def test_one_licence_that_is_not_permissive_keeps_a_package_out(
    licence: str, tmp_path: Path
) -> None:
    table = tmp_path / "sources.csv"
    table.write_text(f"{HEAD}x,1,pypi-sdist,,{licence},train,\n")
    with pytest.raises(ConfigError, match="licence"):
        read_sources(table)


def test_a_package_twice_and_a_missing_table(tmp_path: Path) -> None:
    table = tmp_path / "sources.csv"
    table.write_text(HEAD + "x,1,pypi-sdist,,MIT,train,\n" * 2)
    with pytest.raises(ConfigError, match="x 1 is listed twice"):
        read_sources(table)
    with pytest.raises(ConfigError, match=r"none\.csv: No such file"):
        read_sources(tmp_path / "none.csv")
