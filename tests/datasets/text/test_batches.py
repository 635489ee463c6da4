import numpy as np
import pytest
import tensorflow as tf

from datasets.text.batches import (
    assemble,
    count_windows,
    evaluation_batch,
    training_dataset,
)
from datasets.text.corpus import Corpus, CorpusError, Part

CONTENT = np.random.default_rng(0).bytes(1003)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(CONTENT)
    return Corpus([Part(path, 0, 500), Part(path, 500, 1003)])


def test_shift_by_one_and_padding():
    windows = tf.constant([[7, 8, 9], [4, 5, 6]])
    batch = assemble(windows, tf.constant([3, 1]), 4, begin=256)
    token_ids = [[256, 7, 8, 0], [256, 4, 5, 0]]
    assert batch["token_ids"].numpy().tolist() == token_ids
    assert batch["targets"].numpy().tolist() == [[7, 8, 9, 0], [4, 5, 6, 0]]
    scored = batch["scored"].numpy().astype(int).tolist()
    assert scored == [[1, 1, 1, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("length", "most", "stride"),
    [(64, 0, 0), (1003, 0, 0), (100, 250, 0), (64, 0, 63), (2000, 0, 8)],
)
def test_every_byte_is_predicted_once(corpus, length, most, stride):
    windows = count_windows(corpus, length, most=most, stride=stride)
    found, size = [], 3
    for index in range(-(-windows // size)):
        batch = evaluation_batch(
            corpus,
            index=tf.constant(index),
            batch_size=size,
            length=tf.constant(length),
            padded_length=length + 2,
            most=most,
            stride=stride,
        )
        assert batch["targets"].shape == (size, length + 2)
        used = index * size + np.arange(size) < windows
        scored = batch["scored"].numpy() & used[:, None]
        found += batch["targets"].numpy()[scored].tolist()
        # Windows beyond the last one count nothing.
        assert scored.sum() == batch["scored"].numpy().sum()
    assert bytes(found) == CONTENT[: most or None]


def draw(corpus, first_step, last_step):
    dataset = training_dataset(
        corpus,
        length_at=lambda step: 20 + tf.cast(step % 2, tf.int32),
        batch_size=16,
        seed=3,
        padded_length=24,
        first_step=first_step,
        last_step=last_step,
    )
    return list(dataset.as_numpy_iterator())


def test_windows_are_everywhere_and_a_function_of_the_step(corpus):
    whole, later = draw(corpus, 0, 60), draw(corpus, 56, 60)
    np.testing.assert_equal(later, whole[56:])
    starts = []
    for step, batch in enumerate(whole):
        assert batch["scored"].sum(axis=1).tolist() == [20 + step % 2] * 16
        for window in batch["targets"]:
            starts.append(CONTENT.index(bytes(window[:20].tolist())))
    counts, _ = np.histogram(starts, bins=8, range=(0, 984))
    # 960 windows, 120 in each eighth: chi-square with 7 degrees of freedom.
    assert ((counts - 120) ** 2 / 120).sum() < 24.3
    assert min(starts) < 20 and max(starts) > 963


def test_a_short_text_is_refused():
    with pytest.raises(CorpusError, match="0 tokens for training, fewer"):
        draw(Corpus([]), 0, 1)
