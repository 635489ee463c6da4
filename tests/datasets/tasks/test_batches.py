"""Layout of batches for encoders and causal models."""

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from datasets.tasks import batches as task_batches
from datasets.tasks.batches import assemble, assemble_causal
from tests.datasets.tasks.test_conformance import SMALL_ROWS
from tests.datasets.test_indexed import batches

SAMPLES = {
    "reverse_string": ([1, 0, 1], [1, 0], [1, 0]),
    "mqar": ([9, 40, 9], [7], [1]),
}


# 2 is the empty token of an encoder; of a causal model it ends the input, and
# 4 is the output 1. Answers of mqar are in place.
@pytest.mark.parametrize(
    ("function", "name", "token_ids", "places"),
    [
        (assemble, "reverse_string", [1, 0, 1, 2, 2, 0, 0], [3, 4]),
        (assemble_causal, "reverse_string", [1, 0, 1, 2, 4, 0, 0], [3, 4]),
        (assemble_causal, "mqar", [9, 40, 9, 0, 0], [2]),
    ],
)
def test_layout_of_a_batch(function, name, token_ids, places):
    inputs, targets, mask = (tf.constant([part]) for part in SAMPLES[name])
    sample = {"inputs": inputs, "targets": targets, "mask": mask > 0}
    batch = function(TASKS[name], sample, len(token_ids))
    expected = {
        key: np.zeros((1, len(token_ids)), int)
        for key in ("targets", "answer", "scored")
    }
    expected["targets"][0, places] = targets
    expected["answer"][0, places] = 1
    expected["scored"][0, places] = mask
    expected |= {"token_ids": [token_ids], "lengths": places[-1] + 1}
    batch = {key: values.numpy() for key, values in batch.items()}
    np.testing.assert_equal(batch, expected)


def test_causal_ids_and_lengths():
    task, in_place = TASKS["reverse_string"], TASKS["mqar"]
    assert task_batches.count_causal_ids(task) == 5
    assert task_batches.count_causal_ids(in_place) == 64
    assert task.causal_length(3) == 6
    assert in_place.causal_length(64) == 48


@pytest.mark.parametrize(
    "name",
    [
        *("flip_flop", "indirect_indexing", "local_count", "mqar", "needle"),
        *("two_back", "words_a5", "words_s3", "words_s5"),
    ],
)
def test_answers_in_place_depend_on_earlier_tokens_alone(name):
    task = SMALL_ROWS[name].task or TASKS[name]
    assert task.answers_in_place
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


def test_evaluation_differs_from_training_and_between_batches():
    def drawn(seed=3, index=0):
        batch = task_batches.evaluation_batch(
            TASKS["reverse_string"],
            seed=seed,
            index=index,
            batch_size=16,
            length=5,
            padded_length=12,
        )
        return batch["token_ids"].numpy()

    np.testing.assert_array_equal(drawn(), drawn())
    assert (drawn() != drawn(index=1)).any()
    assert (drawn() != drawn(seed=4)).any()
    for batch in batches(lengths=(5,)):
        assert (drawn() != batch["token_ids"]).any()
