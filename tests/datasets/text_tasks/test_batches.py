import types

import numpy as np
import tensorflow as tf

from datasets.text_tasks import TEXT_TASKS, batches
from datasets.text_tasks.examples import training_examples
from datasets.text_tasks.vocabulary import WordVocabulary


def test_unknown_words_and_words_after_the_end():
    vocabulary = WordVocabulary(TEXT_TASKS["parity"]())
    ids = vocabulary.tokenize("1, w7 No")
    assert ids[2] == vocabulary.unknown
    ids += [vocabulary.end, 3]
    assert vocabulary.detokenize(ids) == ["1", ",", "[UNKNOWN]", "No"]


def test_targets_are_shifted_and_only_answers_are_scored():
    task = TEXT_TASKS["copy"]()
    vocabulary = WordVocabulary(task)
    examples = types.SimpleNamespace(
        problem={4: (1, 2), 7: (3,)}.get,
        length={4: 2, 7: 1}.get,
        write=lambda x: (task.write_prompt(x), task.write_answer(x)),
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


def test_an_epoch_has_every_example_once_in_random_order():
    task = TEXT_TASKS["copy_repeated"]()
    dataset = batches.training_dataset(
        training_examples(task, [2, 3], size=32),
        WordVocabulary(task),
        batch_size=8,
        seed=3,
        padded_length=48,
        first_step=0,
        last_step=8,
    )
    rows = [
        tuple(row)
        for batch in dataset.as_numpy_iterator()
        for row in batch["token_ids"].tolist()
    ]
    assert len(set(rows[:32])) == 32
    assert set(rows[:32]) == set(rows[32:])
    assert rows[:32] != rows[32:]
