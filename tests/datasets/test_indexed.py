import numpy as np
import pytest
import tensorflow as tf

from datasets.curricula import Uniform
from datasets.indexed import shuffled_index
from datasets.tasks import TASKS
from datasets.tasks.batches import training_dataset


def batches(**changes):
    arguments = {
        "lengths": (1, 2, 3, 4, 5),
        "curriculum": Uniform(),
        "batch_size": 16,
        "seed": 3,
        "padded_length": 12,
        "first_step": 0,
        "last_step": 8,
        **changes,
    }
    dataset = training_dataset(TASKS["reverse_string"], **arguments)
    return list(dataset.as_numpy_iterator())


def test_a_step_depends_on_its_number_alone():
    whole = batches(lengths=(40,), padded_length=80)
    later = batches(lengths=(40,), padded_length=80, first_step=5)
    np.testing.assert_equal(later, whole[5:])
    other = batches(lengths=(40,), padded_length=80, seed=4, last_step=1)[0]
    assert not np.array_equal(whole[0]["token_ids"], other["token_ids"])
    # No two examples come from one draw.
    token_ids = np.concatenate([batch["token_ids"] for batch in whole])
    assert len(np.unique(token_ids, axis=0)) == 8 * 16


# Shares that are parts of sub-batches, and odd ones.
@pytest.mark.parametrize(
    ("pipelines", "replicas", "batch_size"), [(2, 8, 16), (3, 3, 24)]
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
    for step, batch in enumerate(batches(batch_size=batch_size)):
        parts = [
            share[step * local + replica]
            for share in shares
            for replica in range(local)
        ]
        for name in ("token_ids", "targets", "answer", "scored"):
            joined = np.concatenate([part[name] for part in parts])
            np.testing.assert_array_equal(joined, batch[name])


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
    assert shuffled_index(3, tf.constant(30), size) == epochs.ravel()[30]
