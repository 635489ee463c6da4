"""Padded batches of a task for a model that answers at empty tokens.

The input is followed by one empty token for each output token, and by padding.
The curriculum chooses one length for each step. An example of the task
reverse_string at length 3, padded to 8 tokens:

    inputs     1 0 1
    targets    1 0 1

becomes

    token_ids  1 0 1 2 2 2 0 0    2 is the empty token
    targets    0 0 0 1 0 1 0 0
    answer     . . . x x x . .    where the loss is measured
    scored     . . . x x x . .    where accuracy is measured
    lengths    6
"""

import tensorflow as tf

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in


def training_dataset(
    task, *, lengths, curriculum, batch_size, seed, padded_length, **steps
):
    """Returns the batches of some training steps, one for each replica.

    Args:
        task: `Task` that draws the examples.
        lengths: Increasing training lengths, in tokens.
        curriculum: `Curriculum` that chooses the length of each step.
        batch_size: int. Number of examples in a global batch.
        seed: int. Seed of the data.
        padded_length: int. Number of tokens to which each example is padded.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        `tf.data.Dataset` of batches in the format of `assemble`.
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
    """Returns a padded batch of one length for evaluation.

    Args:
        task: `Task` that draws the examples.
        seed: int. Seed of the data.
        index: int or scalar int tensor, at least 0. Index of the batch.
        batch_size: int or scalar int tensor. Number of examples.
        length: int or scalar int tensor. Length of the problems.
        padded_length: int or scalar int tensor. Number of tokens to which
            each example is padded.

    Returns:
        Dict in the format of `assemble`.
    """
    # A negative number gives a different seed from that of any training step.
    sample = task.sample(fold_in(seed, -length, index), batch_size, length)
    return assemble(task, sample, padded_length)


def assemble(task, sample, padded_length):
    """Arranges a sample as padded model inputs and targets.

    Args:
        task: `Task` of the sample.
        sample: Dict returned by `task.sample`: inputs `(B, n)`, targets and
            mask `(B, m)`.
        padded_length: int or scalar int tensor, at least `n + m`. Number of
            tokens P. The shapes are static only if it is an int.

    Returns:
        A dict: `"token_ids"`, int32 `(B, P)`, the inputs, an empty token with
        the id `task.input_vocabulary_size` for each output, and padding;
        `"lengths"`, the scalar `n + m`; `"targets"`, int32 `(B, P)`, which are
        at the empty tokens and 0 elsewhere; `"answer"` and `"scored"`, bool
        `(B, P)`, true where loss and accuracy are measured, respectively.
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
