"""Padded batches of a task for an encoder or a causal model.

An encoder answers at empty tokens: the input is followed by one empty token for
each output token, and by padding. The curriculum chooses one length for each
step. An example of the task reverse_string at length 3, padded to 8 tokens:

    inputs     1 0 1
    targets    1 0 1

becomes

    token_ids  1 0 1 2 2 2 0 0    2 is the empty token
    targets    0 0 0 1 0 1 0 0
    answer     . . . x x x . .    where the loss is measured
    scored     . . . x x x . .    where accuracy is measured
    lengths    6

A causal model also reads the correct answer before each output, whose ids come
after those of the input and of the token that ends the input:

    token_ids  1 0 1 2 4 3 0 0    2 ends the input; 4 and 3 are outputs 1 and 0
    targets    0 0 0 1 0 1 0 0

If the answers of a task are in place, it answers at the last tokens of the
input instead.
"""

import tensorflow as tf

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in


def training_dataset(
    task,
    *,
    lengths,
    curriculum,
    batch_size,
    seed,
    padded_length,
    causal=False,
    **steps,
):
    """Returns the batches of some training steps, one for each replica.

    Args:
        task: `Task` that draws the examples.
        lengths: Increasing training lengths, in tokens.
        curriculum: `Curriculum` that chooses the length of each step.
        batch_size: int. Number of examples in a global batch.
        seed: int. Seed of the data.
        padded_length: int. Number of tokens to which each example is padded.
        causal: bool. Whether the batches are for a causal model.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        `tf.data.Dataset` of batches in the format of `assemble`.
    """

    def draw(step, number, size):
        length = length_at(seed, step, lengths, curriculum)
        sample = task.sample(fold_in(seed, step, 1 + number), size, length)
        return arrange(task, sample, padded_length)

    arrange = assemble_causal if causal else assemble
    return indexed_dataset(draw, batch_size=batch_size, **steps)


def length_at(seed, step, lengths, curriculum):
    """Returns the length of all examples of a step, a scalar int32 tensor."""
    return curriculum.length_at(fold_in(seed, step, 0), step, lengths)


def evaluation_batch(
    task, *, seed, index, batch_size, length, padded_length, causal=False
):
    """Returns a padded batch of one length for evaluation.

    Args:
        task: `Task` that draws the examples.
        seed: int. Seed of the data.
        index: int or scalar int tensor, at least 0. Index of the batch.
        batch_size: int or scalar int tensor. Number of examples.
        length: int or scalar int tensor. Length of the problems.
        padded_length: int or scalar int tensor. Number of tokens to which
            each example is padded.
        causal: bool. Whether the batch is for a causal model.

    Returns:
        Dict in the format of `assemble`.
    """
    # A negative number gives a different seed from that of any training step.
    sample = task.sample(fold_in(seed, -length, index), batch_size, length)
    arrange = assemble_causal if causal else assemble
    return arrange(task, sample, padded_length)


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
    empty = tf.fill(tf.shape(sample["targets"]), task.input_vocabulary_size)
    token_ids = tf.concat([sample["inputs"], empty], axis=1)
    return _pad(token_ids, sample, padded_length)


def assemble_causal(task, sample, padded_length):
    """Arranges a sample as padded inputs of a causal model and targets.

    Args:
        task: `Task` of the sample.
        sample: As of `assemble`.
        padded_length: int or scalar int tensor, at least `n + m`, or n if
            `task.answers_in_place`. Number of tokens P.

    Returns:
        A dict as of `assemble`. `"token_ids"` has the input. Unless
        `task.answers_in_place`, then come `V = task.input_vocabulary_size` and
        `V + 1 + target` for all targets but the last one. The targets are at
        the last m tokens before the padding.
    """
    token_ids = sample["inputs"]
    if not task.answers_in_place:
        first = task.input_vocabulary_size
        read = tf.pad(
            sample["targets"][:, :-1] + first + 1,
            [[0, 0], [1, 0]],
            constant_values=first,
        )
        token_ids = tf.concat([token_ids, read], axis=1)
    return _pad(token_ids, sample, padded_length)


def count_causal_ids(task):
    """Returns the number of token ids of `assemble_causal`."""
    inputs = task.input_vocabulary_size
    if task.answers_in_place:
        return inputs
    return inputs + 1 + task.output_vocabulary_size


def _pad(token_ids, sample, padded_length):
    """Pads tokens, and targets at the last of them."""
    used, outputs = tf.shape(token_ids)[1], tf.shape(sample["targets"])[1]

    def pad(values, before):
        after = padded_length - before - tf.shape(values)[1]
        values = tf.pad(values, [[0, 0], [before, after]])
        static = tf.get_static_value(padded_length)
        return tf.ensure_shape(values, (None, static))

    return {
        "token_ids": pad(token_ids, 0),
        "lengths": used,
        "targets": pad(sample["targets"], used - outputs),
        "answer": pad(tf.ones_like(sample["mask"]), used - outputs),
        "scored": pad(sample["mask"], used - outputs),
    }
