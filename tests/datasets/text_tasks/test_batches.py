"""Prompts and answers as tensors."""

from unittest import mock

import numpy as np
import tensorflow as tf

from datasets.text_tasks import TEXT_TASKS, batches
from datasets.text_tasks.examples import training_examples
from datasets.text_tasks.vocabulary import WordVocabulary


def test_unknown_words_and_spaces():
    vocabulary = WordVocabulary(TEXT_TASKS["parity"]())
    ids = vocabulary.tokenize("1, w7 No")
    assert ids[2] == vocabulary.unknown
    assert vocabulary.detokenize(ids) == ["1", ",", "[UNKNOWN]", "No"]


def test_targets_are_shifted_and_only_answers_are_scored():
    task = TEXT_TASKS["copy"]()
    vocabulary = WordVocabulary(task)
    examples = mock.Mock()
    examples.problem.side_effect = {4: (1, 2), 7: (3,)}.get
    examples.length.side_effect = {4: 2, 7: 1}.get
    examples.write.side_effect = lambda problem: (
        task.write_prompt(problem),
        task.write_answer(problem),
    )
    batch = batches.read_batch(
        {2: examples}.get, vocabulary, tf.constant(2), tf.constant([4, 7]), 9
    )
    names = np.array(vocabulary.words)
    assert [" ".join(row) for row in names[batch["token_ids"]]] == [
        "Copy : w1 w2 [SEP] w1 w2 [END] [PAD]",
        "Copy : w3 [SEP] w3 [END] [PAD] [PAD] [PAD]",
    ]
    assert [" ".join(row) for row in names[batch["targets"]]] == [
        ": w1 w2 [SEP] w1 w2 [END] [PAD] [PAD]",
        ": w3 [SEP] w3 [END] [PAD] [PAD] [PAD] [PAD]",
    ]
    scored = [[0, 0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0, 0]]
    assert batch["scored"].numpy().astype(int).tolist() == scored
    assert batch["prompt_lengths"].numpy().tolist() == [5, 4]
    assert batch["problem_lengths"].numpy().tolist() == [2, 1]
    assert batch["lengths"].numpy().tolist() == [8, 6]


def read_rows(name, lengths, size, steps, **context):
    """The token ids of each batch."""
    task = TEXT_TASKS[name]()
    dataset = batches.training_dataset(
        training_examples(task, lengths, size=size),
        WordVocabulary(task),
        batch_size=8,
        seed=3,
        padded_length=48,
        first_step=0,
        last_step=steps,
        **context,
    )
    return np.stack(
        [batch["token_ids"] for batch in dataset.as_numpy_iterator()]
    )


def test_an_epoch_has_every_example_once_in_random_order():
    found = read_rows("copy_repeated", [2, 3], 32, 8)
    rows = list(map(tuple, found.reshape(64, -1)))
    assert len(set(rows[:32])) == 32
    assert set(rows[:32]) == set(rows[32:])
    assert rows[:32] != rows[32:]


def test_a_stream_does_not_repeat_itself_and_replicas_share_a_batch():
    whole = read_rows("copy", [10, 20], 0, 3)
    assert len(np.unique(whole.reshape(24, -1), axis=0)) == 24
    context = tf.distribute.InputContext(2, 1, 2)
    share = read_rows("copy", [10, 20], 0, 3, context=context)
    np.testing.assert_array_equal(share, whole[:, 4:])
