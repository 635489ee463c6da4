import numpy as np
import pytest
import tensorflow as tf

from datasets.labelled.batches import evaluation_batch, training_dataset
from tests.datasets.labelled.toy import open_toy, split_toy

# Ids: 0 padding, 1 the end, 3 [ANSWER], 4 a, 5 b.
EXPECTED = {
    "label": ([4, 5, 3, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], 3),
    "tags": ([4, 5, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 0, 0, 0], 2),
    "answer": ([4, 5, 3, 5, 0], [0, 0, 5, 1, 0], [0, 0, 1, 1, 0], 4),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_examples_are_arranged_by_kind(tmp_path, kind):
    short, long = {
        "label": ("X", "X"),
        "tags": (["X", "Y"], ["X"] * 3),
        "answer": (["b"], ["b"]),
    }[kind]
    rows = [{"input": ["a", "b"], "target": short}] * 30
    rows += [{"input": ["a"] * 3, "target": long}] * 9
    store = open_toy(tmp_path / "rows.jsonl", rows, kind=kind, tokens="words")
    data = split_toy(store, trained=(2,), tested=(3,))
    dataset = training_dataset(
        data, batch_size=8, seed=0, padded_length=5, first_step=0, last_step=1
    )
    batch = next(iter(dataset))
    for name, values in zip(
        ("token_ids", "targets", "scored", "lengths"),
        EXPECTED[kind],
        strict=True,
    ):
        assert batch[name].shape[0] == 8
        np.testing.assert_array_equal(batch[name][0], values)


def test_each_epoch_has_every_training_example(tmp_path):
    texts = [a + b for a in "abcdefgh" for b in "abcdefgh"]
    rows = [{"input": text, "target": text} for text in texts]
    rows += [{"input": "abc", "target": "x"}]
    data = split_toy(open_toy(tmp_path / "rows.jsonl", rows))
    size = len(data.training)
    dataset = training_dataset(
        data,
        batch_size=size,
        seed=0,
        padded_length=6,
        first_step=0,
        last_step=2,
    )
    first, second = (batch["token_ids"].numpy() for batch in dataset)
    assert (first != second).any()
    for epoch in (first, second):
        assert len(np.unique(epoch, axis=0)) == size
    batch = evaluation_batch(
        data,
        index=tf.constant(0),
        batch_size=3,
        length=tf.constant(4),
        padded_length=6,
    )
    # After the last example, the first one follows again.
    assert np.ptp(batch["token_ids"], axis=0).max() == 0
