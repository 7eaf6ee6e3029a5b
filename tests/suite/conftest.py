"""The suite's two modules in a folder of their own, with the fake evaluator and tiny matrices."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

# pytester forgets what a run imports; what is imported here need not be, and pandas cannot be,
# again.
import pandas.core.arrays.arrow.extension_types  # noqa: F401
import pytest
from mlflow.tracking import MlflowClient

import suite.baselines.vendor
import suite.harness.evaluate
import suite.matrices.sets  # noqa: F401
from suite.mlstore import open_store
from tests.shell import plain
from tests.suite.apart import Apart, run_pytest

CONFTEST = 'pytest_plugins = ["suite.plugin", "tests.suite.fake"]\n'
MODULE = "from suite.test_{op} import *\n"
MATRIX = "%%MatrixMarket matrix coordinate real general\n4 4 4\n1 1 {v}\n2 2 2\n3 1 3\n4 4 4\n"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def suite_dir(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The folder, entered."""
    pytester.makeconftest(CONFTEST)
    for op in ("spmv", "spmm"):
        (pytester.path / f"test_{op}.py").write_text(MODULE.format(op=op))
    for name, value in (("one", 1), ("two", 5)):
        (pytester.path / f"{name}.mtx").write_text(MATRIX.format(v=value))
    plain(monkeypatch)
    monkeypatch.setenv("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")  # see ``Apart``
    return pytester


@pytest.fixture
def run(suite_dir: pytest.Pytester) -> Run:
    """Runs pytest there with the authors given, without MLflow unless options say otherwise.

    Here, or ``apart`` where processes are the point.
    """

    def run(authors: str, *options: str, apart: bool = False) -> pytest.RunResult:
        defaults = {
            "--suite-matrices": "one.mtx,two.mtx",
            "--suite-ops": "spmv",
            "--suite-authors": authors,
            "--suite-tracking": "off",
            "-p": "no:cacheprovider",
        }
        given = {option.partition("=")[0] for option in options}
        words = [
            f"{k}={v}" if k != "-p" else f"-p{v}" for k, v in defaults.items() if k not in given
        ]
        if apart:
            return Apart(run_pytest, suite_dir.path, *words, *options).result()
        return suite_dir.runpytest_inprocess(*words, *options)

    return run


@pytest.fixture
def store(
    suite_dir: pytest.Pytester, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[MlflowClient, str]:
    """An initialised store where the runs of the test go: its client, and the experiment."""
    shutil.copy(empty_store, suite_dir.path / "mlflow.db")
    uri = f"sqlite:///{suite_dir.path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return open_store(uri)


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were a GPU."""
    monkeypatch.setenv("FAKE_GPU", "1")
    monkeypatch.setattr("suite.sources.detect_device", lambda: "cuda")


@pytest.fixture
def strict_json(suite_dir: pytest.Pytester) -> Callable[[str], dict]:
    """Reads a file as JSON without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def read(name: str) -> dict:
        return json.loads((suite_dir.path / name).read_text(), parse_constant=refuse)

    return read
