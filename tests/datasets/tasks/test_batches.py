import numpy as np
import pytest
import tensorflow as tf

from datasets.curricula import Uniform
from datasets.tasks import TASKS
from datasets.tasks import batches as task_batches
from tests.datasets.test_indexed import LENGTHS, all_batches, batches
from tests.products import product


def test_the_length_of_a_step_is_that_of_its_batch():
    for step, batch in enumerate(all_batches()):
        length = int(task_batches.length_at(3, step, LENGTHS, Uniform()))
        assert batch["lengths"] == 2 * length


def test_layout_of_a_batch():
    sample = {
        "inputs": tf.constant([[1, 0, 1]]),
        "targets": tf.constant([[1, 0]]),
        "mask": tf.constant([[True, False]]),
    }
    batch = task_batches.assemble(TASKS["reverse_string"], sample, 7)
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
    task = TASKS[name]
    padded = max(task.total_length(length) for length in LENGTHS)
    for length in LENGTHS:
        sample = task.sample((0, length), 16, length)
        batch = task_batches.assemble(task, sample, padded)
        assert_fits({key: np.asarray(x) for key, x in batch.items()}, padded)


@pytest.mark.parametrize("name", product(TASKS, keep=["reverse_string"]))
def test_every_task_fits_its_total_length_in_a_dataset(name):
    padded = max(TASKS[name].total_length(length) for length in LENGTHS)
    for batch in batches(name, padded_length=padded, last_step=3):
        assert_fits(batch, padded)


def assert_fits(batch, padded):
    assert batch["token_ids"].shape == (16, padded)
    assert batch["answer"].any()
    assert (batch["scored"] <= batch["answer"]).all()


def test_evaluation_differs_from_training_and_between_batches():
    def drawn(**changes):
        arguments = {"seed": 3, "index": 0, "batch_size": 16, "length": 5}
        batch = task_batches.evaluation_batch(
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
