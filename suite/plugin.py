"""The suite inside pytest: options, an item for each problem and author, outcomes, the summary.

Only hooks are here. What they ask for is in ``config``, ``campaign``, ``session``, ``replay`` and
``summary``.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from suite import hooks, replay, summary
from suite.campaign import outcome, pairs
from suite.config import ConfigError
from suite.extra import replay_of
from suite.interrupts import BriefInterrupt
from suite.items import ASK, PLACE, parameter, place, prepare
from suite.journal import JournalError
from suite.opening import SESSION, add_options, is_controller, is_wanted, session_of, worker_of
from suite.problem import Op
from suite.progress import Measured, ProgressLines
from suite.replay import DeviceTimer
from suite.session import sigterm_interrupts
from suite.tracking import RunStatus

Measure = Callable[[BenchmarkFixture], None]

_MISTAKES = pytest.StashKey[str]()
_TIMER = pytest.StashKey[DeviceTimer]()
_SIGNALS = pytest.StashKey[list[int]]()
_CONCLUDED = pytest.StashKey[bool]()
_LAST = pytest.StashKey[bool]()
_MEASURED = pytest.StashKey[Measured]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ``--suite-*`` options."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """The hooks of ``suite.hooks``."""
    pluginmanager.add_hookspecs(hooks)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decides the campaign, if this run concerns it: mistakes end here."""
    config.addinivalue_line(
        "markers", "suite(op): one item for each problem of the operation and author"
    )
    config.addinivalue_line("markers", "xdist_group(name): items for one process (pytest-xdist)")
    replay.allow_only_with_workers(config)
    if is_wanted(config):
        replay.check_json(config)
        try:
            session_of(config)
        except ConfigError as error:
            raise pytest.UsageError(*str(error).splitlines()) from error
    if not worker_of(config):
        config.pluginmanager.register(ProgressLines(config), "suite-progress")
        config.pluginmanager.register(BriefInterrupt(config), "suite-interrupts")


def pytest_report_header(config: pytest.Config) -> str | None:
    """The campaign, in one line."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return None
    chosen = session.config
    going_on = ""
    if session.before is not None:
        done = sum(map(len, session.before.rows.values()))
        going_on = f" resumed with {done} answers,"
    sizes = f"{len(chosen.matrices)} matrices, {len(chosen.authors)} authors"
    return (
        f"suite: campaign {session.name},{going_on} {sizes}, {chosen.dtype}, device {chosen.device}"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells an xdist worker which campaign it works for."""
    session = node.config.stash.get(SESSION, None)
    if session is not None:
        node.workerinput["suite_campaign"] = session.name


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item for each pair that the ``suite`` marker's operation has."""
    marker = metafunc.definition.get_closest_marker("suite")
    if marker is None:
        return
    op = Op(marker.args[0])
    try:
        config = session_of(metafunc.config).config
        chosen = list(pairs(config, op)) if op in config.ops else []
    except (
        ConfigError
    ) as error:  # here it would be an error of collection; told to the user afterwards
        metafunc.config.stash[_MISTAKES] = str(error)
        chosen = []
    names = ["matrix", "author"] if op is Op.SPMV else ["matrix", "columns", "author"]
    values = [[parameter(pair, name) for name in names] for pair in chosen]
    metafunc.parametrize(names, values, ids=[pair.id for pair in chosen])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Orders items by matrix, so that each is built once, and attaches what they ask."""
    if _MISTAKES in config.stash:
        raise pytest.UsageError(*config.stash[_MISTAKES].splitlines())
    marked = [item for item in items if item.get_closest_marker("suite")]
    session = session_of(config) if marked else None
    places = {item: position for item in marked if session and (position := prepare(item, session))}
    for item in places:
        item.add_marker(pytest.mark.benchmark(timer=config.stash.setdefault(_TIMER, DeviceTimer())))
    # What is marked and has no place is pytest's stand-in for an operation that nobody is asked
    # about.
    others = [item for item in items if item not in marked]
    items[:] = others + sorted(places, key=places.__getitem__)
    replay.skip_others(config, items, list(places))


def pytest_sessionstart(session: pytest.Session) -> None:
    """With xdist, the controller starts the record."""
    config = session.config
    if worker_of(config) or SESSION not in config.stash:
        return
    if is_controller(config):
        _or_usage_error(config.stash[SESSION].look)
        _keep_record(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Opens the device before the first item."""
    items = [item for item in session.items if ASK in item.stash]
    place(items)
    idle = session.config.option.collectonly or replay.skips_benchmarks(session.config)
    broken = session.testsfailed and not session.config.option.continue_on_collection_errors
    if items and not idle and not broken:
        ours = session.config.stash[SESSION]
        try:
            _or_usage_error(lambda: ours.measure([item.stash[ASK] for item in items]))
            _keep_record(session.config)
        except pytest.UsageError:
            ours.abandon()
            raise
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Notices the last item of a matrix."""
    if ASK in item.stash:
        following = nextitem.stash.get(ASK, None) if nextitem is not None else None
        item.stash[_LAST] = following is None or following.matrix != item.stash[ASK].matrix
    return (yield)


@pytest.fixture
def measure(request: pytest.FixtureRequest) -> Measure:
    """Measures what the item asks for, and hands the times to the ``benchmark`` fixture given."""
    item, config = request.node, request.config
    session, asked = config.stash[SESSION], item.stash[ASK]

    def run(benchmark: BenchmarkFixture) -> None:
        campaign = session.campaign
        assert campaign is not None  # opened before the first item
        started = time.perf_counter()
        try:
            rows = campaign.measure(asked, item.stash[_LAST])
        except JournalError as error:
            pytest.exit(str(error), returncode=1)
        items, position, matrices = item.stash[PLACE]
        item.stash[_MEASURED] = Measured(
            matrix=asked.matrix,
            items=items,
            position=position,
            matrices=matrices,
            rows=rows[0].rows,
            nnz=rows[0].nnz,
            programs=sum(row.program_digest != "" for row in rows),
            seconds=time.perf_counter() - started,
        )
        replay.play(
            benchmark,
            config.stash[_TIMER],
            replay_of(asked, rows, campaign.rows[asked.problem_key]),
        )
        result = outcome(asked.kind, rows)
        if result.verdict == "skipped":
            pytest.skip(result.reason)
        if result.verdict == "failed":
            pytest.fail("\n".join(filter(None, (result.reason, result.log))), pytrace=False)

    return run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Carries what progress needs to the process with the terminal."""
    report = yield
    if call.when == "teardown" and _MEASURED in item.stash:
        vars(report)["suite_measured"] = dataclasses.asdict(item.stash[_MEASURED])
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(
    session: pytest.Session, exitstatus: int
) -> Generator[None, object, object]:
    """Completes the record, before pytest-benchmark writes its files."""
    config = session.config
    ours = config.stash.get(SESSION, None)
    if exitstatus == pytest.ExitCode.INTERRUPTED and session.shouldfail:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED  # xdist's way to stop after a failure
    if ours is not None:
        ours.finish(_run_status(int(session.exitstatus)))
        if ours.interrupted:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        if ours.record is not None and is_controller(config):
            asks = ours.record.asks
            rows = ours.record.rows
            mine = ((a, [row for row in rows if row.ask_key == a.key]) for a in asks)
            replay.play_all(config, (replay_of(a, found, rows) for a, found in mine))
        if ours.warnings and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if config.stash.get(_SIGNALS, []):
        session.exitstatus = 128 + config.stash[_SIGNALS][0]  # as a shell reports it
    if not worker_of(config) and ours is not None and ours.record is not None:
        replay.write_json_without_benchmarks(config)
    try:
        return (yield)
    except BaseException:  # another plugin's closing failed, before the terminal's or in it
        _conclude(config)
        raise


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Adds every row, and leaves no number that strict JSON does not know."""
    session = config.stash.get(SESSION, None)
    if session is not None and session.record is not None:
        output_json["suite_facts"] = dict(session.record.facts)
        output_json["suite_rows"] = [row.to_dict() for row in session.record.rows]
    plain = replay.strict(output_json)
    output_json.clear()
    output_json.update(plain)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_terminal_summary(config: pytest.Config) -> Generator[None, None, None]:
    """The closing table and where the results are, whatever becomes of others' summaries."""
    try:
        return (yield)
    finally:
        _conclude(config)


def _conclude(config: pytest.Config) -> None:
    """Shows the summary and the warnings, once."""
    session = config.stash.get(SESSION, None)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if session is None or terminal is None or config.stash.get(_CONCLUDED, False):
        return
    config.stash[_CONCLUDED] = True
    terminal.ensure_newline()
    if session.record is not None:
        terminal.section(f"suite: {session.device.name if session.device else 'no device'}")
        for line in summary.closing(session.record, session.device, session.where):
            terminal.write_line(line)
    for warning in session.warnings:
        terminal.write_line(f"WARNING: {warning}", yellow=True)


def _keep_record(config: pytest.Config) -> None:
    """Starts the record; SIGTERM is an interrupt from here on, so that no run stays open."""
    ours = config.stash[SESSION]
    if not worker_of(config):
        catching = ExitStack()
        config.stash[_SIGNALS] = catching.enter_context(sigterm_interrupts())
        config.add_cleanup(catching.close)
        config.add_cleanup(lambda: ours.close("KILLED"))
    _or_usage_error(ours.keep_record)


def _or_usage_error(step: Callable[[], object]) -> None:
    from suite.harness.evaluate import DeviceUnavailable

    try:
        step()
    except (ConfigError, DeviceUnavailable, JournalError) as error:
        raise pytest.UsageError(*str(error).splitlines()) from error


def _run_status(exitstatus: int) -> RunStatus:
    if exitstatus == pytest.ExitCode.OK:
        return "FINISHED"
    return "KILLED" if exitstatus == pytest.ExitCode.INTERRUPTED else "FAILED"
