"""Layout of batches for encoders and causal models."""

import numpy as np
import pytest
import tensorflow as tf

from datasets.curricula import Uniform
from datasets.tasks import TASKS
from datasets.tasks import batches as task_batches
from tests.datasets.tasks.test_conformance import SMALL_ROWS, every_task
from tests.datasets.test_indexed import LENGTHS, all_batches, batches


def test_the_length_of_a_step_is_that_of_its_batch():
    for step, batch in enumerate(all_batches()):
        length = int(task_batches.length_at(3, step, LENGTHS, Uniform()))
        assert batch["lengths"] == 2 * length


def arrange(function, name, inputs, targets, mask, padded_length):
    sample = {
        "inputs": tf.constant([inputs]),
        "targets": tf.constant([targets]),
        "mask": tf.constant([mask]) > 0,
    }
    batch = function(TASKS[name], sample, padded_length)
    return {key: np.asarray(tensor, int) for key, tensor in batch.items()}


# 2 is the empty token of an encoder; of a causal model it ends the input, and
# 4 is the output 1. Answers of mqar are in place.
@pytest.mark.parametrize(
    ("function", "name", "sample", "token_ids", "places"),
    [
        (
            task_batches.assemble,
            "reverse_string",
            ([1, 0, 1], [1, 0], [1, 0]),
            [1, 0, 1, 2, 2, 0, 0],
            [3, 4],
        ),
        (
            task_batches.assemble_causal,
            "reverse_string",
            ([1, 0, 1], [1, 0], [1, 0]),
            [1, 0, 1, 2, 4, 0, 0],
            [3, 4],
        ),
        (
            task_batches.assemble_causal,
            "mqar",
            ([9, 40, 9], [7], [1]),
            [9, 40, 9, 0, 0],
            [2],
        ),
    ],
)
def test_layout_of_a_batch(function, name, sample, token_ids, places):
    _, targets, mask = sample
    batch = arrange(function, name, *sample, len(token_ids))
    expected = {
        key: np.zeros((1, len(token_ids)), int)
        for key in ("targets", "answer", "scored")
    }
    expected["targets"][0, places] = targets
    expected["answer"][0, places] = 1
    expected["scored"][0, places] = mask
    expected |= {"token_ids": [token_ids], "lengths": places[-1] + 1}
    assert batch.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_array_equal(batch[key], values, err_msg=key)


def test_numbers_of_causal_ids():
    assert task_batches.count_causal_ids(TASKS["reverse_string"]) == 5
    assert task_batches.count_causal_ids(TASKS["mqar"]) == 64


@pytest.mark.parametrize(
    "name", [name for name, task in TASKS.items() if task.answers_in_place]
)
def test_answers_in_place_depend_on_earlier_tokens_alone(name):
    task = SMALL_ROWS[name].task or TASKS[name]
    sample = task.sample((0, 1), 4000, 8)
    inputs, targets = sample["inputs"].numpy(), sample["targets"].numpy()
    first = inputs.shape[1] - targets.shape[1]
    answers, repeated = {}, 0
    for row, of_row in zip(inputs.tolist(), targets.tolist(), strict=True):
        for place, answer in enumerate(of_row):
            before = tuple(row[: first + place + 1])
            repeated += before in answers
            assert answers.setdefault(before, answer) == answer
    assert repeated > 50


def assert_fits(batch, padded):
    assert batch["token_ids"].shape == (16, padded)
    assert batch["answer"].any()
    assert (batch["scored"] <= batch["answer"]).all()


@every_task
def test_every_task_fits_its_lengths(name):
    task = TASKS[name]
    padded = max(task.total_length(length) for length in LENGTHS)
    assemble = task_batches.assemble, task_batches.assemble_causal
    ids = task.input_vocabulary_size + 1, task_batches.count_causal_ids(task)
    for length in LENGTHS:
        sample = task.sample((0, length), 16, length)
        tokens = task.total_length(length), task.causal_length(length)
        for function, size, total in zip(assemble, ids, tokens, strict=True):
            batch = function(task, sample, padded)
            batch = {key: np.asarray(x) for key, x in batch.items()}
            assert_fits(batch, padded)
            assert batch["lengths"] == total
            assert batch["token_ids"].max() < size


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "causal"), [("needle", True), ("binary_addition", False)]
)
def test_a_dataset_has_the_batches_of_its_steps(name, causal):
    task = TASKS[name]
    padded = max(task.total_length(length) for length in LENGTHS)
    for batch in batches(
        name, padded_length=padded, last_step=3, causal=causal
    ):
        assert_fits(batch, padded)
        size = task_batches.count_causal_ids(task)
        limit = size if causal else task.input_vocabulary_size + 1
        assert batch["token_ids"].max() < limit


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
