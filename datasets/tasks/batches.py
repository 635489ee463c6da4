"""Batches of a task, padded, for a model that answers in empty tokens.

A curriculum draws one length for every step.

    inputs   1 0 1   targets  1 0 1    at reverse_string, length 3
    ->
    token_ids  1 0 1 2 2 2 0 0         2 is the empty output token
    targets    0 0 0 1 0 1 0 0
    answer     . . . x x x . .         where the loss is measured
    scored     . . . x x x . .         where accuracy is measured
    lengths    6
"""

import tensorflow as tf

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in


def training_dataset(
    task, *, lengths, curriculum, batch_size, seed, padded_length, **steps
):
    """Returns the batches of some training steps, one per replica.

    Args:
        task: The `Task` to draw from.
        lengths: Lengths to draw from for every step.
        curriculum: The `Curriculum` that draws them.
        batch_size: Examples in a global batch.
        seed: Integer seed of the data.
        padded_length: Number of tokens that every example is padded to.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        A `tf.data.Dataset` of batches as `assemble` makes them.
    """

    def draw(step, number, size):
        length = length_at(seed, step, lengths, curriculum)
        sample = task.sample(fold_in(seed, step, 1 + number), size, length)
        return assemble(task, sample, padded_length)

    return indexed_dataset(draw, batch_size=batch_size, **steps)


def length_at(seed, step, lengths, curriculum):
    """Returns the length of all examples of a step, a scalar int32 tensor."""
    return curriculum.length_at(fold_in(seed, step, 0), step, lengths)


def evaluation_batch(task, *, seed, index, batch_size, length, padded_length):
    """Returns batch number `index` to evaluate at one length, padded."""
    # Negative numbers, which no training step has.
    sample = task.sample(fold_in(seed, -length, index), batch_size, length)
    return assemble(task, sample, padded_length)


def assemble(task, sample, padded_length):
    """Lays a sample out as model inputs and targets, padded at the end.

    Args:
        task: The task of the sample.
        sample: Inputs `(B, n)`, targets and mask `(B, m)`.
        padded_length: Number of tokens P, at least `n + m`; static shapes
            need an int.

    Returns:
        A dict: `"token_ids"`, int32 `(B, P)`: the inputs, an empty token
        `task.input_vocabulary_size` for each output, padding; `"lengths"`,
        the scalar `n + m`; `"targets"`, int32 `(B, P)`, at the empty tokens;
        `"answer"` and `"scored"`, bool `(B, P)`, where loss and accuracy are
        measured.
    """
    inputs, targets = sample["inputs"], sample["targets"]
    before, outputs = tf.shape(inputs)[1], tf.shape(targets)[1]

    def place(values):
        after = padded_length - before - outputs
        values = tf.pad(values, [[0, 0], [before, after]])
        static = tf.get_static_value(padded_length)
        return tf.ensure_shape(values, (None, static))

    empty = tf.fill(tf.shape(targets), task.input_vocabulary_size)
    rest = tf.pad(inputs, [[0, 0], [0, padded_length - before]])
    return {
        "token_ids": place(empty) + rest,
        "lengths": before + outputs,
        "targets": place(targets),
        "answer": place(tf.ones_like(sample["mask"])),
        "scored": place(sample["mask"]),
    }
