import numpy as np
import pytest
import tensorflow as tf

from datasets.curricula import Uniform
from datasets.tasks import TASKS
from datasets.tasks import batches as task_batches
from datasets.tasks.indirect_indexing import IndirectIndexing
from datasets.tasks.local_count import LocalCount
from datasets.tasks.mqar import MQAR
from datasets.tasks.needle import Needle
from datasets.tasks.two_back import TwoBack
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


def test_layout_of_a_causal_batch():
    sample = {
        "inputs": tf.constant([[1, 0, 1]]),
        "targets": tf.constant([[1, 0]]),
        "mask": tf.constant([[True, False]]),
    }
    batch = task_batches.assemble_causal(TASKS["reverse_string"], sample, 7)
    # 2 ends the input, and 4 is the output 1.
    assert batch["token_ids"].numpy().tolist() == [[1, 0, 1, 2, 4, 0, 0]]
    expected = task_batches.assemble(TASKS["reverse_string"], sample, 7)
    for name in expected.keys() - {"token_ids"}:
        np.testing.assert_array_equal(batch[name], expected[name])
    assert task_batches.count_causal_ids(TASKS["reverse_string"]) == 5


def test_layout_of_answers_in_place():
    sample = {
        "inputs": tf.constant([[9, 40, 9]]),
        "targets": tf.constant([[7]]),
        "mask": tf.constant([[True]]),
    }
    batch = task_batches.assemble_causal(TASKS["mqar"], sample, 5)
    assert batch["token_ids"].numpy().tolist() == [[9, 40, 9, 0, 0]]
    assert batch["targets"].numpy().tolist() == [[0, 0, 7, 0, 0]]
    assert batch["answer"].numpy().tolist() == [
        [False, False, True, False, False]
    ]
    assert batch["lengths"] == 3
    assert task_batches.count_causal_ids(TASKS["mqar"]) == 64


SMALL = {
    "mqar": MQAR(input_vocabulary_size=8, output_vocabulary_size=4),
    "local_count": LocalCount(
        input_vocabulary_size=3, output_vocabulary_size=4
    ),
    "indirect_indexing": IndirectIndexing(
        input_vocabulary_size=6, output_vocabulary_size=4
    ),
    "needle": Needle(input_vocabulary_size=8, output_vocabulary_size=4),
    "two_back": TwoBack(input_vocabulary_size=4, output_vocabulary_size=4),
}


@pytest.mark.parametrize(
    "name", [name for name, task in TASKS.items() if task.answers_in_place]
)
def test_answers_in_place_depend_on_earlier_tokens_alone(name):
    task, length = SMALL.get(name, TASKS[name]), 8
    sample = task.sample((0, 1), 4000, length)
    inputs, targets = sample["inputs"].numpy(), sample["targets"].numpy()
    first = inputs.shape[1] - targets.shape[1]
    answers, repeated = {}, 0
    for row, of_row in zip(inputs.tolist(), targets.tolist(), strict=True):
        for place, answer in enumerate(of_row):
            before = tuple(row[: first + place + 1])
            repeated += before in answers
            assert answers.setdefault(before, answer) == answer
    assert repeated > 50


@pytest.mark.parametrize("name", TASKS)
def test_every_task_fits_its_lengths(name):
    task = TASKS[name]
    padded = max(task.total_length(length) for length in LENGTHS)
    assemble = task_batches.assemble, task_batches.assemble_causal
    ids = task.input_vocabulary_size + 1, task_batches.count_causal_ids(task)
    for length in LENGTHS:
        sample = task.sample((0, length), 16, length)
        tokens = task.total_length(length), task.causal_length(length)
        for arrange, size, total in zip(assemble, ids, tokens, strict=True):
            batch = arrange(task, sample, padded)
            batch = {key: np.asarray(x) for key, x in batch.items()}
            assert_fits(batch, padded)
            assert batch["lengths"] == total
            assert batch["token_ids"].max() < size


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
