import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.batches import IGNORED, Batches

END = 1


def batches(count: int = 1000, size: int = 4, length: int = 16, seed: int = 0) -> Batches:
    """Tokens that count upwards, so that each tells where it is from; no end among them."""
    return Batches(np.arange(10, 10 + count, dtype=np.uint16), END, size, length, seed)


def test_a_step_has_the_same_batch_whatever_came_before() -> None:
    first, second = batches(), batches()
    for step in (40, 3, 0, 40):
        second.at(step)
    for step in (0, 7, 40):
        assert np.array_equal(first.at(step).inputs, second.at(step).inputs)


@given(
    count=st.integers(32, 400),
    length=st.integers(1, 16),
    size=st.integers(1, 5),
    seed=st.integers(0, 3),
)
def test_an_epoch_has_every_window_once(count: int, length: int, size: int, seed: int) -> None:
    whole = batches(count, size, length, seed)
    rows = np.concatenate([whole.at(s).inputs for s in range(-(-2 * whole.windows // size))])
    for epoch in range(2):
        mine = rows[epoch * whole.windows : (epoch + 1) * whole.windows]
        assert len(np.unique(mine)) == whole.windows * length
        assert mine.max() < 10 + count - 1  # each has a token after it to learn


def test_epochs_and_seeds_cut_and_order_differently() -> None:
    whole = batches(size=1)
    first, second = (
        np.stack([whole.at(e * whole.windows + i).inputs[0] for i in range(whole.windows)])
        for e in (0, 1)
    )
    assert first[0, 0] % 16 != second[0, 0] % 16
    assert not np.array_equal(np.argsort(first[:, 0]), np.argsort(second[:, 0]))
    assert not np.array_equal(
        first, np.stack([batches(size=1, seed=1).at(i).inputs[0] for i in range(len(first))])
    )


def test_documents_keep_to_themselves() -> None:
    tokens = np.array([5, 6, END, 7, END, END, 8, 9, 10, 11, 12, 13] * 2, dtype=np.uint16)
    batch = Batches(tokens, END, 1, 11, 0).fixed(0)
    assert batch.inputs[0].tolist() == [5, 6, 1, 7, 1, 1, 8, 9, 10, 11, 12]
    assert batch.targets[0].tolist() == [6, 1, IGNORED, 1, IGNORED, IGNORED, 9, 10, 11, 12, 13]
    assert batch.documents[0].tolist() == [0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 3]
    assert batch.positions[0].tolist() == [0, 1, 2, 0, 1, 0, 0, 1, 2, 3, 4]


def test_validation_rows_are_the_same_at_every_call_and_wrap_around() -> None:
    whole = batches(100)
    assert whole.windows == 5
    assert whole.fixed(1).inputs[:, 0].tolist() == [74, 10, 26, 42]
    assert batches(100, seed=5).fixed(1).inputs[:, 0].tolist() == [74, 10, 26, 42]


@pytest.mark.parametrize("count", [0, 15, 31])
def test_too_few_tokens_are_no_window(count: int) -> None:
    assert batches(count).windows == 0
