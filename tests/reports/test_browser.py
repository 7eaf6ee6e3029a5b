"""MLflow's own pages, in a real browser: what a person sees after a campaign.

Needs the system's Chromium (``apt install chromium``) and the extra ``dev``; skipped without.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.__main__ import main
from reports.source import Store
from suite.journal import Record
from suite.tracking import import_record
from tests.reports.campaigns import FACTS, with_models

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
ABOUT = "#/experiments/1/runs?workflowType=machine_learning"
# Hints that MLflow shows to newcomers and that would lie over its pages.
SEEN = "localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')"
PROGRAM = "//! op spmv\n// written by a model\n"

playwright = pytest.importorskip("playwright.sync_api", reason="playwright: pip install '.[dev]'")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt install chromium"),
    pytest.mark.timeout(180),
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one campaign of two models."""
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    import_record(Record("c1", FACTS, (), tuple(with_models()), 0, {"written": PROGRAM}), uri)
    return tmp_path


@pytest.fixture
def address(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """MLflow's server over that store; while it starts, the report is logged."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{store / 'mlflow.db'}"]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (store / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=store,
            env={**os.environ, **quiet},
            start_new_session=True,
        )
    try:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store / 'mlflow.db'}")
        assert main(["build", "--out", str(store / "out"), "--log"]) == 0
        found = f"http://127.0.0.1:{port}/"
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{found}health", timeout=2).close()
                break
            except OSError:
                assert server.poll() is None, (store / "server.log").read_text()
                time.sleep(0.5)
        yield found
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.fixture
def page(address: str) -> Iterator["Page"]:
    with playwright.sync_playwright() as driver:
        # Without a sandbox of its own it also runs as root, as in containers.
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1500, "height": 900})
        context.add_init_script(SEEN)
        context.set_default_timeout(30_000)
        opened = context.new_page()
        opened.goto(f"{address}{ABOUT}")
        yield opened
        browser.close()


def run_of(store: Path, author: str = "") -> str:
    campaign = Store(f"sqlite:///{store / 'mlflow.db'}").campaign("c1")
    return campaign.runs["spmv", author] if author else campaign.run


def shows(page: "Page", *texts: str) -> None:
    """Waits until the page's visible text has each of these."""
    for text in texts:
        page.wait_for_function("text => document.body.innerText.includes(text)", arg=text)


# One test, for a server and a browser are started for it; its steps are statements too.
def test_what_a_person_sees_in_mlflow(page: "Page", address: str, store: Path) -> None:
    the_experiment_says_what_it_is_and_offers_views(page)
    the_fastest_stands_first_with_its_speedup(page, address)
    charts_and_parallel_coordinates_are_drawn(page, address)
    variants_are_compared(page, address, store)
    the_summary_the_report_and_a_figure_are_shown(page, address, store)
    a_models_program_can_be_read(page, address, store)


def opened(page: "Page", address: str) -> None:
    """Loads a page anew: going from artifact to artifact, MLflow keeps showing the first."""
    page.goto("about:blank")
    page.goto(address)


def framed(page: "Page", text: str) -> None:
    """Waits until a frame has the text; MLflow lets no script run there that could wait for it."""
    page.locator("iframe").wait_for()
    for _ in range(60):
        if any(text in frame.content() for frame in page.frames[1:]):
            return
        page.wait_for_timeout(500)
    raise AssertionError(f"no frame shows {text!r}")


def the_experiment_says_what_it_is_and_offers_views(page: "Page") -> None:
    shows(page, "answer: who is fastest")
    page.get_by_test_id("saved-views-trigger").click()
    shows(page, "Fastest: spmv", "Right: rates of every author", "Campaigns: what they differ in")
    page.keyboard.press("Escape")


def the_fastest_stands_first_with_its_speedup(page: "Page", address: str) -> None:
    page.goto(f"{address}#/experiments/1/runs?viewStateShareKey=suite-fastest-spmv")
    first = page.locator("[role=row][row-index='0']").filter(has_text="spmv.").first
    name = first.locator("a").first
    name.wait_for()
    assert name.inner_text() in ("spmv.best_of_baselines", "spmv.fast")
    shows(page, "speedup_vs_cusparse_best", "spmv.sft_only")


def charts_and_parallel_coordinates_are_drawn(page: "Page", address: str) -> None:
    view = f"{address}#/experiments/1/runs?viewStateShareKey=suite-fastest-spmv"
    opened(page, f"{view}&compareRunsMode=CHART")
    shows(page, "Parallel Coordinates")
    page.locator("svg .barlayer .point").first.wait_for(state="attached")
    page.locator(".parcoords svg, .parcoords canvas").first.wait_for(state="attached")


def variants_are_compared(page: "Page", address: str, store: Path) -> None:
    both = ",".join(f'"{run_of(store, author)}"' for author in ("sparserl", "sft_only"))
    page.goto(f'{address}#/compare-runs?runs=[{both}]&experiments=["1"]')
    shows(page, "Comparing 2 Runs", "spmv.sparserl", "spmv.sft_only", "correct_rate")


def the_summary_the_report_and_a_figure_are_shown(page: "Page", address: str, store: Path) -> None:
    artifacts = f"{address}#/experiments/1/runs/{run_of(store)}/artifacts"
    opened(page, f"{artifacts}/summary.md")
    shows(page, "8 matrices, commit", "best_of_baselines")
    opened(page, f"{artifacts}/report/report.html")
    framed(page, "Sparse matrix multiplication on one NVIDIA H200")
    opened(page, f"{artifacts}/report/profile.png")
    page.locator("img[src*='blob:'], img[src^='data:']").first.wait_for()
    opened(page, f"{artifacts}/campaign.json")
    shows(page, "0123456789abcdef")


def a_models_program_can_be_read(page: "Page", address: str, store: Path) -> None:
    run = run_of(store, "sparserl")
    opened(page, f"{address}#/experiments/1/runs/{run}/artifacts/programs/written.cu.txt")
    shows(page, "written by a model")
