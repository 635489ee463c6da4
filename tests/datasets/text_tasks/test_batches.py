"""Prompts and answers as tensors."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text

from datasets.text_tasks import TEXT_TASKS, base, batches
from datasets.text_tasks.examples import length_examples, training_examples
from datasets.text_tasks.scratchpad import FIELDS
from datasets.text_tasks.vocabulary import WordVocabulary


@pytest.mark.parametrize("name", ["addition", "lego", "copy_twice", "scan"])
def test_tokens_are_the_words_that_tensorflow_text_finds(name):
    task = TEXT_TASKS[name]()
    fields = FIELDS if task.step_words else ()
    vocabulary = WordVocabulary(task, has_scratchpad=bool(fields))
    examples = length_examples(task, task.tested_lengths[-1], fields=fields)
    texts = [
        text
        for index in range(20)
        for text in examples.write(examples.problem(index))
    ]
    split = tensorflow_text.regex_split(texts, rf"{base.WORD}|\s+", base.WORD)
    for text, found in zip(texts, split.to_list(), strict=True):
        ids = vocabulary.tokenize(text)
        words = [word.decode() for word in found]
        assert vocabulary.detokenize([*ids, vocabulary.end, 3, 4]) == words
        assert vocabulary.unknown not in ids


def test_a_word_of_another_task():
    vocabulary = WordVocabulary(TEXT_TASKS["parity"]())
    ids = vocabulary.tokenize("1, w7 No")
    assert ids[2] == vocabulary.unknown
    assert vocabulary.detokenize(ids) == ["1", ",", "[UNKNOWN]", "No"]


def test_spaces_do_not_count():
    tokenize = WordVocabulary(TEXT_TASKS["addition"]()).tokenize
    first, second = "The answer is 1 2.", " The answer  is 12 ."
    assert tokenize(first) == tokenize(second)


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

    def read(indices, padded_length):
        return batches.read_batch(
            {2: examples}.get,
            vocabulary,
            tf.constant(2),
            tf.constant(indices, tf.int64),
            padded_length,
        )

    batch = read([4, 7], 9)
    names = np.array(vocabulary.words)
    assert [" ".join(row) for row in names[batch["token_ids"]]] == [
        "Copy : w1 w2 [SEP] w1 w2 [END] [PAD]",
        "Copy : w3 [SEP] w3 [END] [PAD] [PAD] [PAD]",
    ]
    assert [" ".join(row) for row in names[batch["targets"]]] == [
        ": w1 w2 [SEP] w1 w2 [END] [PAD] [PAD]",
        ": w3 [SEP] w3 [END] [PAD] [PAD] [PAD] [PAD]",
    ]
    assert batch["scored"].numpy().astype(int).tolist() == [
        [0, 0, 0, 0, 1, 1, 1, 0, 0],
        [0, 0, 0, 1, 1, 0, 0, 0, 0],
    ]
    assert batch["prompt_lengths"].numpy().tolist() == [5, 4]
    assert batch["problem_lengths"].numpy().tolist() == [2, 1]
    assert batch["lengths"].numpy().tolist() == [8, 6]
    # Nothing is cut.
    with pytest.raises(ValueError, match="could not broadcast"):
        read([4], 6)


def read_all(examples, steps, **context):
    dataset = batches.training_dataset(
        examples,
        WordVocabulary(examples.task),
        batch_size=8,
        seed=3,
        padded_length=48,
        first_step=0,
        last_step=steps,
        **context,
    )
    return list(dataset.as_numpy_iterator())


def test_an_epoch_has_every_example_once_in_random_order():
    task = TEXT_TASKS["copy_repeated"]()
    examples = training_examples(task, [2, 3], size=32)
    found = read_all(examples, 8)
    rows = [tuple(row) for batch in found for row in batch["token_ids"]]
    assert len(set(rows[:32])) == 32
    assert set(rows[:32]) == set(rows[32:])
    assert rows[:32] != rows[32:]


def test_a_stream_does_not_repeat_itself_and_replicas_share_a_batch():
    task = TEXT_TASKS["copy"]()
    examples = training_examples(task, [10, 20], size=0)
    assert len(examples) == 0
    whole = read_all(examples, 3)
    rows = np.concatenate([batch["token_ids"] for batch in whole])
    assert len(np.unique(rows, axis=0)) == 24
    context = tf.distribute.InputContext(
        num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=2
    )
    share = read_all(examples, 3, context=context)
    np.testing.assert_array_equal(
        share[1]["token_ids"], whole[1]["token_ids"][4:]
    )
