"""What a prompt needs of a matrix: made again from recipes, held to digests, kept."""

from pathlib import Path

import pyarrow as pa
import pytest

from suite.matrices.named import smoke
from tests.training.pairs_lab import make_pairs
from training import seen
from training.errors import TrainingError


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    folder = tmp_path_factory.mktemp("pairs")
    return folder, make_pairs(folder)


@pytest.mark.parametrize("spec", smoke(), ids=lambda spec: spec.name)
def test_a_recipe_makes_its_matrix_again(spec: seen.MatrixSpec) -> None:
    again = seen.spec_of(spec.name, spec.family, spec.source)
    assert again.build().digest == spec.build().digest
    assert (again.name, again.family, again.source) == (spec.name, spec.family, spec.source)


@pytest.mark.parametrize(
    "source",
    [
        "os.system(command='true')",
        "suite.matrices.synthetic.nothing(rows=1)",
        "suite.matrices.synthetic.diagonals(rows=open('x'))",
        "suite.matrices.synthetic.diagonals(3)",
        "matrix.mtx",
        "(",
    ],
)
def test_what_is_no_recipe_is_refused(source: str) -> None:
    with pytest.raises(TrainingError, match="no recipe"):
        seen.spec_of("name", "family", source)


def test_matrices_are_looked_at_once(
    pairs: tuple[Path, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, table = pairs
    path = seen.of_pairs(folder, table, lambda _: None, 1)
    kept = seen.read(path)
    assert kept.keys() == set(table["matrix_digest"].to_pylist())
    specs = {
        digest: seen.spec_of(*rest)
        for digest, *rest in zip(
            *(table[n].to_pylist() for n in ("matrix_digest", "matrix", "family", "recipe")),
            strict=True,
        )
    }
    for digest, spec in specs.items():
        fresh, held = seen.look(spec), kept[digest]
        assert (fresh.shown.rows == held.shown.rows).all()
        assert (fresh.shown.cols == held.shown.cols).all()
        assert (fresh.size, fresh.family) == (held.size, held.family)
    monkeypatch.setattr(seen, "look_at", lambda *_: pytest.fail("built again"))
    assert seen.of_pairs(folder, table, lambda _: None) == path


def test_another_matrix_than_the_verified_one_is_refused(
    pairs: tuple[Path, pa.Table], tmp_path: Path
) -> None:
    _, table = pairs
    others = ["0" * 32] * table.num_rows
    changed = table.set_column(
        table.schema.get_field_index("matrix_digest"), "matrix_digest", [others]
    )
    with pytest.raises(TrainingError, match="gives another matrix"):
        seen.of_pairs(tmp_path, changed, lambda _: None, 1)
    assert not (tmp_path / seen.FILE).exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / seen.FILE
    path.write_bytes(b"no parquet")
    with pytest.raises(TrainingError, match=f"{path}: cannot be read"):
        seen.read(path)
