import functools

import numpy as np
import pytest
import tensorflow as tf

from datasets.curricula import Uniform
from datasets.indexed import shuffled_index
from datasets.tasks import TASKS
from datasets.tasks.batches import training_dataset

LENGTHS = (1, 2, 3, 4, 5)


def batches(name="reverse_string", **changes):
    arguments = {
        "lengths": LENGTHS,
        "curriculum": Uniform(),
        "batch_size": 16,
        "seed": 3,
        "padded_length": 12,
        "first_step": 0,
        "last_step": 8,
        **changes,
    }
    dataset = training_dataset(TASKS[name], **arguments)
    return list(dataset.as_numpy_iterator())


@functools.cache
def all_batches(**changes):
    """What is the same for many tests, of which each would wait for it."""
    return batches(**changes)


def test_a_step_depends_on_its_number_alone():
    whole = all_batches()
    assert len(whole) == 8
    for batch, other in zip(batches(first_step=5), whole[5:], strict=True):
        assert batch.keys() == other.keys()
        for name, values in batch.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)
    assert any(
        not np.array_equal(one["token_ids"], other["token_ids"])
        for one, other in zip(whole, batches(seed=4), strict=True)
    )


def test_no_two_examples_come_from_one_draw():
    examples = [
        tuple(row)
        for batch in batches(lengths=(40,), padded_length=80)
        for row in batch["token_ids"]
    ]
    assert len(set(examples)) == len(examples)


# Shares that are sub-batches, parts of one, and odd ones.
@pytest.mark.parametrize(
    ("pipelines", "replicas", "batch_size"),
    [
        (2, 2, 16),
        *(
            pytest.param(*shape, marks=pytest.mark.product)
            for shape in ((1, 2, 16), (2, 8, 16), (4, 16, 16), (3, 3, 24))
        ),
    ],
)
def test_replicas_share_the_global_batch(pipelines, replicas, batch_size):
    shares = [
        batches(
            batch_size=batch_size,
            context=tf.distribute.InputContext(pipelines, host, replicas),
        )
        for host in range(pipelines)
    ]
    local = replicas // pipelines
    for step, batch in enumerate(all_batches(batch_size=batch_size)):
        parts = [
            share[step * local + replica]
            for share in shares
            for replica in range(local)
        ]
        for name in ("token_ids", "targets", "answer", "scored"):
            joined = np.concatenate([part[name] for part in parts])
            np.testing.assert_array_equal(joined, batch[name])
        assert {int(part["lengths"]) for part in parts} == {batch["lengths"]}


def test_a_batch_that_replicas_cannot_share():
    with pytest.raises(ValueError, match=r"3 replicas.*16 examples"):
        batches(context=tf.distribute.InputContext(1, 0, 3))


def test_every_item_comes_once_an_epoch():
    size = 7
    epochs = np.reshape(shuffled_index(3, tf.range(5 * size), size), (5, size))
    for epoch in epochs:
        assert sorted(epoch) == list(range(size))
    assert len(set(map(tuple, epochs))) > 1
    other = shuffled_index(4, tf.range(5 * size), size)
    assert not np.array_equal(np.ravel(epochs), other)
    # An item is found without those before it.
    graph = tf.function(lambda number: shuffled_index(3, number, size))
    for number in (0, 6, 7, 30):
        assert int(graph(tf.constant(number))) == epochs.ravel()[number]
