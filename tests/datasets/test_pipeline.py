import itertools

import numpy as np
import pytest
import tensorflow as tf

from datasets import pipeline
from datasets.curricula import Uniform
from datasets.tasks import TASKS

LENGTHS = (1, 2, 3, 4, 5)


def batches(name="reverse_string", context=None, **changes):
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
    dataset = pipeline.training_dataset(
        TASKS[name], context=context, **arguments
    )
    return list(dataset.as_numpy_iterator())


def assert_same(batch, other):
    assert batch.keys() == other.keys()
    for name, values in batch.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_a_step_depends_on_its_number_alone():
    whole = batches()
    assert len(whole) == 8
    for batch, other in zip(batches(first_step=5), whole[5:], strict=True):
        assert_same(batch, other)
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


@pytest.mark.parametrize(
    ("pipelines", "replicas"), [(1, 2), (2, 2), (2, 8), (4, 16), (4, 4)]
)
def test_replicas_share_the_global_batch(pipelines, replicas):
    shares = [
        batches(context=tf.distribute.InputContext(pipelines, host, replicas))
        for host in range(pipelines)
    ]
    local = replicas // pipelines
    for step, batch in enumerate(batches()):
        parts = [
            share[step * local + replica]
            for share in shares
            for replica in range(local)
        ]
        for name in ("token_ids", "targets", "answer", "scored"):
            joined = np.concatenate([part[name] for part in parts])
            np.testing.assert_array_equal(joined, batch[name])
        assert {int(part["lengths"]) for part in parts} == {batch["lengths"]}


def test_odd_shares_of_sub_batches():
    whole = batches(batch_size=24)
    shares = [
        batches(batch_size=24, context=tf.distribute.InputContext(12, host, 12))
        for host in range(12)
    ]
    for step, batch in enumerate(whole):
        joined = np.concatenate([share[step]["token_ids"] for share in shares])
        np.testing.assert_array_equal(joined, batch["token_ids"])


def test_a_batch_that_replicas_cannot_share():
    with pytest.raises(ValueError, match=r"3 replicas.*16 examples"):
        batches(context=tf.distribute.InputContext(1, 0, 3))


def test_the_length_of_a_step_is_that_of_its_batch():
    for step, batch in enumerate(batches()):
        length = int(pipeline.length_at(3, step, LENGTHS, Uniform()))
        assert batch["lengths"] == 2 * length


def test_layout_of_a_batch():
    sample = {
        "inputs": tf.constant([[1, 0, 1]]),
        "targets": tf.constant([[1, 0]]),
        "mask": tf.constant([[True, False]]),
    }
    batch = pipeline.assemble(TASKS["reverse_string"], sample, 7)
    assert batch["token_ids"].numpy().tolist() == [[1, 0, 1, 2, 2, 0, 0]]
    assert batch["targets"].numpy().tolist() == [[0, 0, 0, 1, 0, 0, 0]]
    assert batch["answer"].numpy().tolist() == [
        [False, False, False, True, True, False, False]
    ]
    assert batch["scored"].numpy().tolist() == [
        [False, False, False, True, False, False, False]
    ]
    assert batch["lengths"] == 5


@pytest.mark.parametrize("name", TASKS)
def test_every_task_fits_its_total_length(name):
    padded = max(TASKS[name].total_length(length) for length in LENGTHS)
    for batch in batches(name, padded_length=padded, last_step=3):
        assert batch["token_ids"].shape == (16, padded)
        assert batch["answer"].any()
        assert (batch["scored"] <= batch["answer"]).all()


def test_evaluation_differs_from_training_and_between_batches():
    def drawn(**changes):
        arguments = {"seed": 3, "index": 0, "batch_size": 16, "length": 5}
        batch = pipeline.evaluation_batch(
            TASKS["reverse_string"],
            **{**arguments, **changes},
            padded_length=12,
        )
        return batch["token_ids"].numpy()

    np.testing.assert_array_equal(drawn(), drawn())
    assert (drawn() != drawn(index=1)).any()
    assert (drawn() != drawn(seed=4)).any()
    for batch in batches(lengths=(5,)):
        assert (drawn() != batch["token_ids"]).any()


def test_buckets_are_the_cheapest_choice():
    lengths, count = [2, 3, 3, 7, 8, 12, 13, 20], 3

    def cost(buckets):
        return sum(min(b for b in buckets if b >= n) ** 2 for n in lengths)

    choices = itertools.combinations(sorted(set(lengths)), count)
    best = min(cost(choice) for choice in choices if choice[-1] == 20)
    buckets = pipeline.length_buckets(lengths, count)
    assert len(buckets) == count and cost(buckets) == best


def test_few_lengths_get_a_bucket_each():
    assert pipeline.length_buckets([5, 2, 5], 4) == (2, 5)


def test_bucket_of_a_length():
    found = [int(pipeline.bucket_of(n, (4, 8, 12))) for n in (1, 4, 5, 8, 12)]
    assert found == [0, 0, 1, 1, 2]


def test_seeds_differ_by_every_number():
    seeds = {
        tuple(pipeline.fold_in(*numbers).numpy())
        for numbers in itertools.product((0, 1, -1), (0, 1, 7), (0, 1))
    }
    assert len(seeds) == 18
