"""Conversions ahead are those that would have been done anyway, and can do without."""

import itertools
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from suite.baselines.files import baselines
from suite.evaluation import Status
from suite.formats.base import Format, Layout
from suite.formats.bsr import Bsr
from suite.formats.coo import Coo
from suite.formats.csr import Csr
from suite.formats.dia import Dia
from suite.formats.ell import Ell
from suite.formats.hyb import Hyb
from suite.formats.sell import Sell
from suite.harness import conversions
from suite.harness.conversions import Conversions, Converter
from suite.harness.evaluate import Evaluator, Settings
from suite.harness.exchange import Exchange
from suite.harness.resident import ProblemRef, ResidentMatrix
from suite.matrices.base import Matrix
from suite.problem import DType, Op, Problem
from suite.program import KernelProgram
from tests.harness.host import HostDevice
from tests.harness.samples import GOOD

FORMATS = [Csr(), Coo(), Ell(), Sell(), Hyb(), Dia(), Bsr(b=2)]


def matrix(rows: int = 60, density: float = 0.1) -> Matrix:
    rng = np.random.default_rng(rows)
    found = scipy.sparse.random_array((rows, rows), density=density, rng=rng, format="csr")
    return Matrix(f"m{rows}", "uniform", found)


@pytest.fixture
def exchange() -> Iterator[Exchange]:
    made = Exchange()
    yield made
    made.close()


def put(exchange: Exchange, of: Matrix) -> Path:
    folder = exchange.put(Problem(Op.SPMV, of))
    (folder / conversions.FORMATS).mkdir()
    return folder


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("density", [0.0, 0.1])
def test_what_is_read_is_what_was_converted(
    exchange: Exchange, fmt: Format, density: float
) -> None:
    of = matrix(density=density)
    folder = put(exchange, of)
    assert conversions.read(folder, fmt) is None
    Converter().convert(folder, of.csr.shape, fmt)
    found = conversions.read(folder, fmt)
    assert found is not None
    layout, expected = found[0], fmt.convert(of.csr)
    assert layout.sizes == dict(expected.sizes)
    for mine, theirs in ((layout.index, expected.index), (layout.values, expected.values)):
        assert list(mine) == list(theirs)
        for name, array in theirs.items():
            if array is None:
                assert mine[name] is None
            else:
                assert mine[name].dtype == array.dtype
                np.testing.assert_array_equal(mine[name], array)


def test_a_device_takes_what_was_converted_ahead(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = matrix()
    folder = put(exchange, of)
    ref = ProblemRef("p", of.digest, folder, of.csr.shape, Op.SPMV, 1, DType.FLOAT32, seed=7)
    device = HostDevice()
    plain = ResidentMatrix(device, ref).converted(Sell())
    Converter().convert(folder, of.csr.shape, Sell())
    monkeypatch.setattr(Sell, "convert", None)  # not called again
    ahead = ResidentMatrix(device, ref).converted(Sell())
    assert ahead.prepared.sizes == plain.prepared.sizes
    for name, buffer in plain.buffers.items():
        other = ahead.buffers[name]
        plain.use(0), ahead.use(0)
        assert device.digests([buffer]) == device.digests([other]), name


def test_what_fits_no_format_or_finds_no_room_is_not_written(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    diagonal = Matrix("d", "diagonal", scipy.sparse.csr_array(np.eye(1200)[::-1]))
    folder = put(exchange, diagonal)
    Converter().convert(folder, diagonal.csr.shape, Dia())
    assert conversions.read(folder, Dia()) is None
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    Converter().convert(folder, diagonal.csr.shape, Ell())
    assert conversions.read(folder, Ell()) is None


def test_processes_convert_and_a_failure_is_nobodys(exchange: Exchange) -> None:
    of = matrix()
    folder = put(exchange, of)
    ahead = Conversions(2)
    try:
        ahead.begin(folder, of.csr.shape, [*FORMATS, Coo()])
        for fmt in FORMATS:
            ahead.finish(folder, fmt)
            assert conversions.read(folder, fmt) is not None
        ahead.forget(folder, Coo())
        assert conversions.read(folder, Coo()) is None
        shutil.rmtree(folder / conversions.FORMATS)
        (folder / "indptr.npy").unlink()
        ahead.begin(folder, of.csr.shape, [Sell(c=8)])
        ahead.finish(folder, Sell(c=8))
        assert conversions.read(folder, Sell(c=8)) is None
        ahead.finish(folder, Sell(c=4))  # never begun
        ahead.drop(of.digest)
    finally:
        ahead.close()


def test_verdicts_do_not_depend_on_it(cache: Path) -> None:
    texts = [GOOD, GOOD.replace("format csr", "format nonsense"), "", GOOD.replace("+=", "-=")]
    asked = Problem(Op.SPMV, matrix())
    texts += [a.write(asked, 1)[0].text for a in baselines() if a.name in ("ell", "sell-sigma1")]
    programs = [KernelProgram("me", text) for text in texts]
    programs.insert(1, KernelProgram("me", GOOD, unfinished="no end"))
    with Evaluator("emulator", Settings(precision=None, cache=cache, converters=1)) as judging:
        problems = [Problem(Op.SPMV, matrix(rows)) for rows in (40, 50)]
        plain = [judging.evaluate(problems[0], program).status for program in programs]
        judging.release(problems[0].matrix)
        for problem in problems:
            judging.convert_ahead(problem, programs)
        for problem in problems:
            found = [judging.evaluate(problem, program).status for program in programs]
            assert found == plain
        judging.convert_ahead(problems[0], programs)  # it is there
        judging.release(problems[0].matrix)
    assert plain[0] is plain[-1] is plain[-2] is Status.OK
    assert plain[1:4] == [Status.PARSE_ERROR] * 3


def test_a_matrix_that_is_dropped_while_it_is_converted_leaves_nothing(exchange: Exchange) -> None:
    of, over = matrix(), threading.Event()
    root = exchange.put(Problem(Op.SPMV, of)).parent
    layout = Sell().convert(of.csr)

    def write() -> None:
        while not over.is_set():
            with suppress(OSError):
                conversions._write(conversions._place(root / "f32", Sell(c=at())), layout, 1.0)

    at = itertools.count(1).__next__
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            folder = put(exchange, of)
            assert (folder / "indptr.npy").exists()
            time.sleep(0.001)
            exchange.drop(of.digest)
            assert not root.exists()
    finally:
        over.set()
        writer.join()


def test_nothing_is_converted_for_programs_that_get_no_format(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Format] = []
    monkeypatch.setattr(Conversions, "begin", lambda *given: begun.extend(given[-1]))
    lacks = [f"format {name}" for name in ("sell", "ell", "hyb")]  # and names the arrays of CSR
    programs = [KernelProgram("me", GOOD.replace("format csr", name)) for name in lacks]
    asked = Problem(Op.SPMV, matrix())
    with Evaluator("emulator", Settings(precision=None, cache=cache, converters=1)) as judging:
        judging.convert_ahead(asked, programs)
        found = [judging.evaluate(asked, program).status for program in programs]
    assert found == [Status.BIND_ERROR] * 3
    assert not begun


def test_a_conversion_costs_what_a_core_did_and_not_how_long_it_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = Ell.convert

    def crowded(fmt: Ell, csr: scipy.sparse.csr_array) -> Layout:
        time.sleep(0.3)
        return plain(fmt, csr)

    monkeypatch.setattr(Ell, "convert", crowded)
    _, milliseconds = conversions.convert(matrix().csr, Ell())
    assert 0 < milliseconds < 200
